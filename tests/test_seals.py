"""Seals say which journals and states this user's own searches have written."""

import json
import os
import pickle
import pty
import shutil
import stat
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from faults.disk import as_state
from lastarm import Checkpoints, Result, SuccessiveHalving, Uniform, search
from lastarm.checkpoints import StateFolder
from lastarm.cli import main
from lastarm.errors import InvalidArgument, KeyNotSafe, NothingSealed, StatesNotTrusted
from lastarm.events import Event, Loss, Opened, Pull
from lastarm.journal import Journal, read
from lastarm.journal.header import header_of
from lastarm.journal.lines import encode, fields_of
from lastarm.journal.seals import SealRule, Seals, with_seal
from lastarm.journal.secret import KEY_FILE, own_secret
from lastarm.testing.runners import Drifting

FIXTURES = Path(__file__).parent / "fixtures" / "journals_0_1"
ANOTHER = 65534  # a user that every system has, and that no test runs as
OPENED = Opened(seed=0, policy={"name": "uniform"}, space={}, trainer={})

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as a second user")


def use_key(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setenv(KEY_FILE, str(path))


@pytest.fixture(autouse=True)
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The secret of this user."""
    path = tmp_path / "keys" / "ours"
    use_key(monkeypatch, path)
    return path


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """The secret of another user, or of this one on another machine."""
    return tmp_path / "keys" / "theirs"


def in_child(act: Callable[[], object]) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# The secret --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_secret_is_made_once_for_this_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int
) -> None:
    monkeypatch.delenv(KEY_FILE)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    before = os.umask(mask)
    try:
        secret = own_secret()
    finally:
        os.umask(before)
    path = tmp_path / "state" / "lastarm" / "key"
    assert own_secret() == secret
    assert len(secret.key) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["key"]
    assert secret.key.decode() not in repr(secret)


def test_a_secret_is_in_the_home_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (KEY_FILE, "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert own_secret().key
    assert len([path for path in tmp_path.rglob("lastarm/key") if path.is_file()]) == 1


def test_looking_for_a_secret_makes_none(key: Path) -> None:
    assert own_secret(make=False) != own_secret(make=False)
    assert not key.exists()


def test_processes_that_make_a_secret_at_the_same_time_have_the_same(
    tmp_path: Path, key: Path
) -> None:
    heard, says = os.pipe()
    begun: list[int] = []
    for number in range(8):
        if (child := os.fork()) == 0:
            os.close(says)
            os.read(heard, 1)  # until all are there
            (tmp_path / f"{number}").write_bytes(own_secret().key)
            os._exit(0)
        begun.append(child)
    os.close(says)
    for child in begun:
        os.waitpid(child, 0)
    os.close(heard)
    assert {(tmp_path / f"{number}").read_bytes() for number in range(8)} == {own_secret().key}
    assert [path.name for path in key.parent.iterdir()] == [key.name]


def test_a_key_file_may_be_linked_to(
    key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = own_secret()
    (tmp_path / "link").symlink_to(key)
    use_key(monkeypatch, tmp_path / "link")
    assert own_secret() == secret


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_key_file_that_is_open_to_others_is_refused(key: Path, mode: int) -> None:
    own_secret()
    key.chmod(mode)
    with pytest.raises(KeyNotSafe) as refused:
        search_in(key.parent.with_name("j.jsonl"))
    assert refused.value.path == key
    assert not key.parent.with_name("j.jsonl").exists()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, Path.touch])
def test_what_is_no_secret_is_refused(key: Path, make: Callable[[Path], object]) -> None:
    key.parent.mkdir()
    make(key)
    key.chmod(0o600)
    with pytest.raises(KeyNotSafe):
        own_secret()


@as_root
def test_a_key_file_of_another_user_is_refused(key: Path) -> None:
    own_secret()
    os.chown(key, ANOTHER, ANOTHER)
    with pytest.raises(KeyNotSafe):
        own_secret()


def test_a_home_that_does_not_exist_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (KEY_FILE, "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert own_secret().why
    assert own_secret(make=False).why
    assert list(tmp_path.iterdir()) == []


@as_root
def test_nothing_is_put_into_the_home_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(tmp_path, ANOTHER, ANOTHER)
    use_key(monkeypatch, tmp_path / "state" / "key")
    assert "another user" in own_secret().why
    assert list(tmp_path.iterdir()) == []


@as_root
def test_a_user_without_a_home_has_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (KEY_FILE, "XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)

    def act() -> None:
        os.setgroups([])
        os.setgid(54321)
        os.setuid(54321)
        assert own_secret().why
        assert own_secret(make=False).why

    in_child(act)


# The search --------------------------------------------------------------------------------------


class Exploding(NamedTuple):
    """A state that touches a file when it is loaded."""

    marker: Path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.marker,)


class Stopped(Exception):
    """Ends a search midway."""


def stop_after(most: int) -> Callable[[Event], None]:
    losses = 0

    def stop(event: Event) -> None:
        nonlocal losses
        losses += isinstance(event, Loss)
        if losses == most:
            raise Stopped

    return stop


def search_in(path: Path, **arguments: Any) -> Result:
    """A search of 4 arms and 6 losses."""
    policy = arguments.pop("policy", SuccessiveHalving(arms=4, budget=16))
    return search(Drifting(), {"limit": Uniform(0, 1)}, policy=policy, journal=path, **arguments)


def stopped_search(path: Path) -> None:
    """The same, after the first rung."""
    with pytest.raises(Stopped):
        search_in(path, on_event=stop_after(4))


def rewrite(path: Path, change: Callable[[Event], Event]) -> None:
    """Change events of a journal, with checksums that are right again."""
    written, after = b"", ""
    for event in read(path):
        line, after = encode(change(event), durable=0, after=after)
        written += line
    path.write_bytes(written)


def as_version_0_1(event: Event) -> Event:
    if isinstance(event, Opened):
        return replace(event, identity="", seal="")
    if isinstance(event, Loss) and event.saved:
        return event._replace(saved=event.saved._replace(seal=""))
    return event


def own_states(path: Path) -> list[bool]:
    """Of each loss whose state was saved, whether it has this user's seal."""
    events = read(path)
    seals = Seals(header_of(events), own_secret())
    assert seals.rule is not SealRule.UNSEALED
    return [
        bool(event.saved.seal) and seals.vouch_for(event.pull, event.saved)
        for event in events
        if isinstance(event, Loss) and event.saved
    ]


@contextmanager
def nothing_warned() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def whole(tmp_path: Path) -> Result:
    """The undisturbed search."""
    return search_in(tmp_path / "whole.jsonl")


@pytest.mark.parametrize("runner", ["serial", "processes"])
def test_a_search_seals_its_journal_and_its_states(
    tmp_path: Path, whole: Result, runner: str
) -> None:
    path = tmp_path / "j.jsonl"
    assert search_in(path, runner=runner).digest == whole.digest
    assert Seals(header_of(read(path)), own_secret()).rule is SealRule.OWN
    assert own_states(path) == [True] * 6


@pytest.mark.parametrize("how", ["renamed", "copied", "linked to"])
def test_a_journal_with_another_name_is_still_sealed(
    tmp_path: Path, whole: Result, how: str
) -> None:
    path, other = tmp_path / "j.jsonl", tmp_path / "other.jsonl"
    stopped_search(path)
    if how == "linked to":
        other.symlink_to(path)
    else:
        shutil.copy2(path, other)
        shutil.copytree(f"{path}.states", f"{other}.states")
    if how == "renamed":
        path.unlink()
    with nothing_warned():
        result = search_in(other)
    assert (result.digest, result.spent.repeated) == (whole.digest, 0)


@pytest.mark.parametrize("runner", ["serial", "processes"])
def test_states_of_a_moved_journal_are_trained_again_to_the_same_digest(
    tmp_path: Path, whole: Result, theirs: Path, monkeypatch: pytest.MonkeyPatch, runner: str
) -> None:
    path, marker = tmp_path / "j.jsonl", tmp_path / "executed"
    stopped_search(path)
    bomb = as_state(Exploding(marker))

    def explode(event: Event) -> Event:
        if not isinstance(event, Loss) or not event.saved:
            return event
        file = tmp_path / "j.jsonl.states" / f"arm-{event.pull.arm}-at-{event.pull.upto}.state"
        file.write_bytes(bomb)
        digest = sha256(bomb).hexdigest()
        return event._replace(saved=event.saved._replace(digest=digest, size=len(bomb)))

    rewrite(path, explode)
    use_key(monkeypatch, theirs)
    with pytest.warns(StatesNotTrusted, match=r"Checkpoints\(trust=True\)") as warned:
        result = search_in(path, runner=runner)
    assert len([each for each in warned if each.category is StatesNotTrusted]) == 1
    assert (result.digest, result.complete) == (whole.digest, True)
    assert result.spent.repeated > 0
    assert result.spent.pulls == whole.spent.pulls
    assert not marker.exists()
    assert own_states(path) == [False] * 4 + [True] * 2


@pytest.mark.parametrize("runner", ["serial", "processes"])
def test_states_of_a_moved_journal_are_loaded_if_they_are_trusted(
    tmp_path: Path, whole: Result, theirs: Path, monkeypatch: pytest.MonkeyPatch, runner: str
) -> None:
    path = tmp_path / "j.jsonl"
    stopped_search(path)
    use_key(monkeypatch, theirs)
    with nothing_warned():
        result = search_in(path, checkpoints=Checkpoints(trust=True), runner=runner)
    assert (result.digest, result.spent.repeated) == (whole.digest, 0)


def test_a_journal_that_is_moved_with_the_key_is_as_it_was(
    tmp_path: Path, whole: Result, key: Path, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_search(tmp_path / "j.jsonl")
    theirs.write_bytes(key.read_bytes().strip())  # an editor may leave the last newline out
    theirs.chmod(0o600)
    use_key(monkeypatch, theirs)
    with nothing_warned():
        assert search_in(tmp_path / "j.jsonl").spent.repeated == 0


def test_a_search_that_is_stopped_keeps_the_states_that_it_did_not_trust(
    tmp_path: Path, whole: Result, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j.jsonl"
    stopped_search(path)
    use_key(monkeypatch, theirs)
    with pytest.warns(StatesNotTrusted):
        search_in(path, seconds=1e-9)
    with nothing_warned():
        result = search_in(path, checkpoints=Checkpoints(trust=True))
    assert (result.digest, result.spent.repeated) == (whole.digest, 0)


def test_a_moved_journal_is_extended_to_the_same_digest(
    tmp_path: Path, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = SuccessiveHalving(arms=4, budget=64)
    for name in ("j.jsonl", "other.jsonl"):
        search_in(tmp_path / name)
    right = search_in(tmp_path / "other.jsonl", policy=more)
    use_key(monkeypatch, theirs)
    with pytest.warns(StatesNotTrusted):
        result = search_in(tmp_path / "j.jsonl", policy=more)
    assert result.digest == right.digest
    assert result.spent.repeated > 0


def exchanged(one: Loss, other: Loss, event: Event) -> Event:
    """With what is saved of one arm in the line of another."""
    if event in (one, other):
        assert isinstance(event, Loss)
        return event._replace(saved=other.saved if event == one else one.saved)
    return event


def test_the_state_of_another_arm_is_not_loaded(tmp_path: Path, whole: Result) -> None:
    path = tmp_path / "j.jsonl"
    stopped_search(path)
    one, other, *_ = (event for event in read(path) if isinstance(event, Loss))
    files = [
        tmp_path / "j.jsonl.states" / f"arm-{loss.pull.arm}-at-{loss.pull.upto}.state"
        for loss in (one, other)
    ]
    for file, content in zip(files, [file.read_bytes() for file in files][::-1], strict=True):
        file.write_bytes(content)
    rewrite(path, lambda event: exchanged(one, other, event))
    assert own_states(path) == [False, False, True, True]
    with pytest.warns(StatesNotTrusted):
        assert search_in(path).digest == whole.digest


def test_a_state_is_vouched_for_in_its_own_journal_at_its_own_level_only(tmp_path: Path) -> None:
    for name in ("one.jsonl", "two.jsonl"):
        search_in(tmp_path / name)
    one, two = (read(tmp_path / name) for name in ("one.jsonl", "two.jsonl"))
    assert one[0] == two[0]  # the same search, and yet another journal
    ours, others = (Seals(header_of(events), own_secret()) for events in (one, two))
    loss = next(event for event in one if isinstance(event, Loss))
    assert loss.saved is not None
    assert ours.vouch_for(loss.pull, loss.saved)
    assert not others.vouch_for(loss.pull, loss.saved)
    assert not ours.vouch_for(replace(loss.pull, upto=loss.pull.upto + 1), loss.saved)
    for seal in ("", "x", "é", "\ud800"):
        assert not ours.vouch_for(loss.pull, loss.saved._replace(seal=seal))


def test_states_of_version_0_1_are_loaded_and_sealed_from_then_on(
    tmp_path: Path, whole: Result
) -> None:
    path = tmp_path / "j.jsonl"
    stopped_search(path)
    rewrite(path, as_version_0_1)
    assert b'"seal"' not in path.read_bytes()
    with nothing_warned():
        result = search_in(path)
    assert (result.digest, result.spent.repeated) == (whole.digest, 0)
    assert own_states(path) == [False] * 4 + [True] * 2
    with nothing_warned():
        assert search_in(path).state is not None


@pytest.mark.parametrize("path", sorted(FIXTURES.rglob("*.jsonl")), ids=lambda path: path.name)
def test_journals_of_version_0_1_are_written_as_they_were(path: Path) -> None:
    for event, line in zip(read(path), path.read_bytes().splitlines(), strict=True):
        fields = json.loads(line)
        for name in ("durable", "after", "sum", "plain_moves"):  # the last was given up since
            fields.pop(name, None)
        assert list(fields_of(event).items()) == list(fields.items())


def test_seals_are_in_no_comparison_of_headers(
    tmp_path: Path, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal(tmp_path / "j.jsonl", OPENED):
        pass
    use_key(monkeypatch, theirs)
    with Journal(tmp_path / "j.jsonl", OPENED) as journal:
        assert journal.events == [OPENED]
        assert journal.seals.rule is SealRule.FOREIGN


def test_a_header_that_was_changed_is_not_ours() -> None:
    secret = own_secret()
    sealed = with_seal(replace(OPENED, command=("lastarm", "tune", "a\udcffé")), secret)
    assert Seals(sealed, secret).rule is SealRule.OWN
    for changed in (
        {"command": ("lastarm", "tune", "b")},
        {"folder": "/tmp"},
        {"identity": "0" * 16},
        {"seal": ""},
        {"seal": "0" * 32},
        {"seed": 1},
    ):
        assert Seals(replace(sealed, **changed), secret).rule is SealRule.FOREIGN
    assert Seals(replace(sealed, identity=""), secret).rule is SealRule.OLD


def test_where_no_secret_can_be_kept_files_alone_are_judged(
    tmp_path: Path, whole: Result, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j.jsonl"
    (tmp_path / "file").touch()
    use_key(monkeypatch, tmp_path / "file" / "key")
    with pytest.warns(NothingSealed, match=KEY_FILE) as warned:
        stopped_search(path)
    assert len(warned) == 1
    assert b'"seal"' not in path.read_bytes()
    with pytest.warns(NothingSealed) as warned:
        result = search_in(path)
    assert len(warned) == 1
    assert (result.digest, result.spent.repeated) == (whole.digest, 0)
    # It is not a journal of version 0.1: with a secret, its states are not trusted.
    use_key(monkeypatch, theirs)
    with pytest.warns(StatesNotTrusted):
        assert search_in(path).digest == whole.digest


def test_trust_is_true_or_false() -> None:
    with pytest.raises(InvalidArgument, match="trust"):
        Checkpoints(trust="yes")  # type: ignore[arg-type]


def test_a_search_without_a_journal_needs_no_secret(key: Path) -> None:
    limits = {"limit": Uniform(0, 1)}
    assert search(Drifting(), limits, policy=SuccessiveHalving(arms=4, budget=16)).complete
    assert not key.exists()


# The command -------------------------------------------------------------------------------------


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def run_at_terminal(answers: str, *arguments: object) -> tuple[int, str]:
    """The exit code at a terminal where a person gives these answers, and what is to be seen."""
    child, terminal = pty.fork()
    if child == 0:
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as ended:
            os._exit(ended.code if isinstance(ended.code, int) else 1)
        finally:
            os._exit(1)
    os.write(terminal, answers.encode())
    seen = b""
    try:
        while read_now := os.read(terminal, 4096):
            seen += read_now
    except OSError:  # on Linux, the end
        pass
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), seen.decode()


PROGRAM = ("--", "sh", "-c", "touch ran; echo {upto} > {state}/pulls; echo {x}")
TUNE = ("tune", "--arms", "4", "--budget", "16", "--param", "x=uniform:0:1", "--json")


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The journal of a command that was stopped; its program tells that it was run."""
    path = tmp_path / "j.jsonl"
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("lastarm.cli.tune.search", partial(search, on_event=stop_after(4)))
        with pytest.raises(Stopped):
            main([*TUNE, "--journal", str(path), "--trust-states", *PROGRAM])
    (tmp_path / "ran").unlink()
    return path


def ran(journal: Path) -> bool:
    """Whether its program was run since."""
    return journal.with_name("ran").exists()


def test_the_command_of_ones_own_journal_is_run(
    stopped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("resume", stopped) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["repeated"] == 0
    assert "seal" not in said.err
    assert ran(stopped)


@pytest.mark.parametrize("version", ["0.1", "0.2"])
def test_a_command_without_our_seal_is_refused(
    stopped: Path, theirs: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, version: str
) -> None:
    if version == "0.1":
        rewrite(stopped, as_version_0_1)
    else:
        use_key(monkeypatch, theirs)
    before = stopped.read_bytes()
    assert run("resume", stopped) == 2
    said = capsys.readouterr()
    assert "--trust" in said.err
    assert "touch ran" in said.err  # the command is shown
    assert said.out == ""
    assert not ran(stopped)
    assert stopped.read_bytes() == before
    assert run("resume", stopped, "--trust") == 0
    assert ran(stopped)


def test_states_are_trusted_by_the_person_and_not_by_the_journal(
    stopped: Path, theirs: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert "--trust-states" in header_of(read(stopped)).command
    copy = shutil.copytree(stopped.parent, stopped.parent / "copy") / stopped.name
    use_key(monkeypatch, theirs)
    assert run("resume", stopped, "--trust") == 0
    trained_again = capsys.readouterr()
    assert run("resume", copy, "--trust", "--trust-states") == 0
    loaded = capsys.readouterr()
    assert trained_again.err.count("--trust-states") == 2  # in the command, and in the warning
    assert loaded.err.count("--trust-states") == 1
    again, at_once = json.loads(trained_again.out), json.loads(loaded.out)
    assert again["digest"] == at_once["digest"]
    assert again["repeated"] > at_once["repeated"] == 0


def test_a_person_at_a_terminal_is_asked_about_the_command(
    stopped: Path, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_key(monkeypatch, theirs)
    code, seen = run_at_terminal("n\n", "resume", stopped)
    assert code == 2
    assert "Run this command?" in seen
    assert not ran(stopped)
    code, seen = run_at_terminal("y\nn\n", "resume", stopped)
    assert code == 0
    assert ran(stopped)
    assert "StatesNotTrusted" not in seen
    assert "Traceback" not in seen


@pytest.mark.parametrize(("answer", "repeats"), [("y", False), ("n", True)])
def test_a_person_at_a_terminal_is_asked_about_states(
    stopped: Path, theirs: Path, monkeypatch: pytest.MonkeyPatch, answer: str, repeats: bool
) -> None:
    use_key(monkeypatch, theirs)
    code, seen = run_at_terminal(f"{answer}\n", "resume", stopped, "--trust")
    assert code == 0
    assert seen.count("Load them?") == 1
    assert (Result.of(read(stopped)).spent.repeated > 0) is repeats


def test_a_person_is_not_asked_about_a_journal_of_their_own(stopped: Path) -> None:
    code, seen = run_at_terminal("", "resume", stopped)
    assert code == 0
    assert "[y/N]" not in seen


def test_replay_keeps_no_states(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "curves.csv").write_text("3,2,1\n4,3,2\n5,4,3\n6,5,4\n")
    path = tmp_path / "j.jsonl"
    assert run("replay", tmp_path / "curves.csv", "--budget", "8", "--journal", path) == 0
    assert run("resume", path) == 0
    assert run("resume", path, "--trust-states") == 2
    assert "--trust-states" in capsys.readouterr().err


def test_the_output_of_a_search_whose_states_are_not_trusted(
    stopped: Path, theirs: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert run("resume", stopped) == 0
    use_key(monkeypatch, theirs)
    assert run("resume", stopped, "--trust", "--output", "best") == 1
    assert "--trust-states" in capsys.readouterr().err
    assert run("resume", stopped, "--trust", "--trust-states", "--output", "best") == 0
    assert Path("best/pulls").read_text() == "6\n"


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (SealRule.OWN, "It has this user's seal"),
        (SealRule.FOREIGN, "It has no seal of this user"),
        (SealRule.OLD, "version 0.1"),
        (SealRule.UNSEALED, "no secret can be kept"),
    ],
)
def test_show_says_which_rule_applies(
    tmp_path: Path,
    theirs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rule: SealRule,
    says: str,
) -> None:
    path = tmp_path / "j.jsonl"
    stopped_search(path)
    if rule is SealRule.FOREIGN:
        use_key(monkeypatch, theirs)
    if rule is SealRule.OLD:
        rewrite(path, as_version_0_1)
    if rule is SealRule.UNSEALED:
        use_key(monkeypatch, path / "key")
    assert run("show", path) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert says in said
    assert ("unless --trust-states" in said) == (rule is SealRule.FOREIGN)
    assert run("show", path, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["seal"] == rule.value
    assert told["states_without_seal"] == (4 if rule is SealRule.FOREIGN else 0)
    assert not theirs.exists()


def test_show_works_with_a_key_that_is_open_to_others(
    stopped: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key.chmod(0o644)
    assert run("show", stopped) == 0
    assert "chmod 600" in " ".join(capsys.readouterr().out.split())
    assert run("show", stopped, "--json") == 0
    assert json.loads(capsys.readouterr().out)["seal"] is None
    assert run("resume", stopped) == 3


# A trainer's own files ---------------------------------------------------------------------------


class Filed(Drifting):
    """Writes and reads the files of states itself."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self._before = before

    def save(self, state: Any, path: Path) -> None:
        path.write_bytes(pickle.dumps(state))

    def load(self, path: Path) -> Any:
        self._before()
        return pickle.loads(path.read_bytes())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a folder is opened by its name")
def test_a_folder_that_is_exchanged_while_a_trainer_loads_is_of_no_use(tmp_path: Path) -> None:
    marker, path = tmp_path / "executed", tmp_path / "states"
    saved = StateFolder(path, Filed(), durable=True).save(Pull(0, 1), ["a state"])
    assert saved

    def exchange() -> None:
        path.rename(tmp_path / "moved")
        path.mkdir()
        (path / "arm-0-at-1.state").write_bytes(pickle.dumps(Exploding(marker)))

    folder = StateFolder(path, Filed(exchange), durable=True)
    assert folder.load(Pull(0, 1), saved) == ["a state"]
    assert not marker.exists()
