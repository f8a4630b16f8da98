"""Secrets on command lines, in errors and in metrics reach no file and no screen."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastarm import Configs, Uniform, masking, search
from lastarm.cli import main
from lastarm.errors import JournalNotWritten, OtherSearch, OtherSecret
from lastarm.events import Event, Failure, Loss, Opened
from lastarm.journal import file, read
from lastarm.masking import is_same, masked_data, masked_text, masked_words, without_hashes
from lastarm.runners import Simulated

SECRET = "hunter2"


@pytest.fixture(autouse=True, scope="module")
def quick_hash() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(masking, "ROUNDS", 100)
        yield


# The rule ---------------------------------------------------------------------------------------

HIDDEN = [
    f"api_key='{SECRET}'",
    f'api_key="{SECRET}"',
    f"API_KEY={SECRET}",
    f"token: {SECRET}",
    f'{{"token":"{SECRET}","lr":0.1}}',
    f"{{'AccessToken': '{SECRET}'}}",
    f'{{\\"password\\": \\"{SECRET}\\"}}',
    f"os.environ['AWS_SECRET_ACCESS_KEY'] = '{SECRET}'",
    f"connect(user='me', password = b'{SECRET}')",
    f"myPassword=>{SECRET}",
    f"credentials={SECRET}, lr=0.1",
    f"X-Api-Key: {SECRET}",
    f"token: Bearer {SECRET}",
    f"./train --api-key {SECRET} --lr 0.1",
    f"./train --api-key '{SECRET} too' --lr 0.1",
    f"./train --api-key={SECRET} --lr 0.1",
    f"./train -password {SECRET}",
    f"Command '['./train', '--api-key', '{SECRET}', '--lr', '1']' returned non-zero status 1.",
    f'["--token","{SECRET}"]',
    f"credentials={{'user': 'me', 'word': ['{SECRET}', ')']}}, lr=0.1",
    f"password=(a){SECRET}",
    f"api_keys: ['{SECRET}', '{SECRET}",
    f"https://me:{SECRET}@host/path",
    f"postgresql+psycopg2://me:{SECRET}@host:5432/db",
    f"redis://:{SECRET}@host",
    f"https://host/path?token={SECRET}&lr=3",
    f"password='{SECRET} in a text that was cut o",
    f"key_size=256,password={SECRET}",
    f"password: str = '{SECRET}'",
    f"token: SecretStr | None = '{SECRET}'",
    f"token = '''{SECRET}'''",
    f"assert password == '{SECRET}'",
    f"token != {SECRET}",
    f"if (token := {SECRET})",
    f"./train --token\t{SECRET}",
]

SHOWN = [
    "KeyError: 'lr'",
    "KeyboardInterrupt",
    "jwt.InvalidTokenError: it has expired",
    "key_size=256, token_length: 12, max_tokens=1e6",
    "tokens=512",
    "secret=None, use_token: True",
    "./train --max-tokens 512 --token-length={token_length?} --key {model.key}",
    "./train --tokenizer bert --keyword=a",
    "unexpected keyword argument 'token'",
    "the mapping with the keys 'accuracy' has no 'loss'",
    "https://host:8080/me@home",
    "ssh://git@host:22/path",
]


@pytest.mark.parametrize("text", HIDDEN)
def test_a_text_has_no_secrets(text: str) -> None:
    masked = masked_text(text)
    assert SECRET not in masked
    assert "***" in masked
    assert masked_text(masked) == masked


@pytest.mark.parametrize("name", ["--api-key-2 ", "PASSWORD_1=", "secret2: ", "token_v2=", "key="])
def test_a_number_is_a_secret_too_if_the_name_says_so(name: str) -> None:
    assert masked_text(f"{name}123456") == f"{name}***"


@pytest.mark.parametrize("text", SHOWN)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert masked_text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "key='" + "'" * 60_000,
        "a" * 60_000,
        "token" * 12_000,
        "--" + "key-" * 15_000,
        "key_size=1," * 6_000,
        "a://b:" * 10_000,
        "key : " * 10_000,
        "password=\\" * 6_000,
        "key=[" * 10_000,
        "key=['" * 10_000,
        "key=(" + "'\\" * 20_000,
    ],
    ids=lambda text: text[:12],
)
def test_masking_a_long_text_takes_no_time_to_speak_of(text: str) -> None:
    masked_text(text)  # with a square of its length, this would take minutes


FORMS = ["{}", "--api-key={}", "--env=API_KEY={}", "TOKEN={}", "https://me:{}@host"]


@settings(max_examples=20, deadline=None)
@given(secret=st.text(min_size=6).filter(lambda text: not text.startswith("--")), data=st.data())
def test_whatever_a_secret_is_its_hash_stands_in_its_place(secret: str, data: Any) -> None:
    form = data.draw(st.sampled_from(FORMS[:-1]))
    words = ["./train", "--password", form.format(secret), "--lr", "0.1"]
    masked = masked_words(words)
    assert secret not in " ".join(without_hashes(masked))
    assert is_same(masked, words)
    assert not is_same(masked, [word.replace(secret, f"{secret}!") for word in words])


def test_a_secret_may_begin_with_white_space() -> None:
    assert masked_words(["--env=API_KEY=\nabc"], hashes=False) == ["--env=API_KEY=***"]


@pytest.mark.parametrize("form", FORMS)
def test_two_hashes_of_one_secret_differ(form: str) -> None:
    words = ["./train", "--password", form.format(SECRET)]
    assert masked_words(words) != masked_words(words)
    assert without_hashes(masked_words(words)) == masked_words(words, hashes=False)


def test_data_keep_their_numbers() -> None:
    told = {
        "api_key": SECRET,
        "tokens": 512,
        "key_accuracy": 0.5,
        "credentials": {"user": SECRET, "more": [SECRET, 3]},
        "notes": [f"token={SECRET}", None],
    }
    assert masked_data(told) == {
        "api_key": "***",
        "tokens": 512,
        "key_accuracy": 0.5,
        "credentials": {"user": "***", "more": ["***", 3]},
        "notes": ["token=***", None],
    }


# Errors and metrics -----------------------------------------------------------------------------


class Leaking:
    """Arm 1 cannot log in, and the others tell how they did."""

    def start(self, config: Any, seed: int) -> dict[str, Any]:
        return {"n": config["n"], "pulls": 0}

    def train(self, state: dict[str, Any], pulls: int) -> dict[str, Any]:
        if state["n"] == 1:
            password = "hunter" + "2"
            raise RuntimeError(f"cannot log in: password={password!r}, at https://me:{password}@h")
        return state | {"pulls": state["pulls"] + pulls}

    def loss(self, state: dict[str, Any]) -> Any:
        notes = [f"logged in with --api-key {SECRET}"]
        return {"loss": state["n"] + 1 / state["pulls"], "token": SECRET, "notes": notes}


RUNNERS: dict[str, dict[str, Any]] = {
    "serial": {"runner": "serial"},
    "batched": {"runner": "batched"},
    "simulated": {"runner": Simulated},
    "processes": {"runner": "processes", "workers": 1},
}


@pytest.mark.parametrize("runner", RUNNERS.values(), ids=list(RUNNERS))
def test_no_secret_of_an_error_or_a_metric_reaches_the_journal(
    runner: dict[str, Any], tmp_path: Path
) -> None:
    path, seen = tmp_path / "j.jsonl", list[Event]()
    space = Configs([{"n": n} for n in range(4)])
    found = search(
        Leaking(), space, arms=4, budget=16, journal=path, on_event=seen.append, **runner
    )
    assert SECRET not in path.read_text()
    assert SECRET not in repr(seen)
    assert SECRET not in found.report(tmp_path / "report.html").read_text()
    failure = found.failures[1]
    assert failure.error == "RuntimeError: cannot log in: password=***, at https://***@h"
    assert "in train" in failure.traceback
    metrics = next(event.metrics for event in seen if isinstance(event, Loss))
    assert metrics == {"token": "***", "notes": ["logged in with --api-key ***"]}


@pytest.mark.parametrize("runner", ["serial", "batched"])
def test_half_a_secret_is_not_left_where_a_traceback_is_cut_off(runner: Any) -> None:
    def long(config: Any) -> Iterator[float]:
        if config["n"]:
            raise RuntimeError(f"password='{'abc' * 30_000}'\nthe end")
        while True:
            yield 1.0

    found = search(long, Configs([{"n": 0}, {"n": 1}]), arms=2, budget=8, runner=runner)
    assert found.failures[1].traceback == "the end\n"
    assert "abc" not in found.failures[1].error


def test_a_warning_about_the_test_loss_has_no_secret() -> None:
    class Tested(Leaking):
        def test(self, state: Any) -> float:
            raise RuntimeError(f"token={SECRET}")

    with pytest.warns(UserWarning, match=r"token=\*\*\*$"):
        search(Tested(), Configs([{"n": 0}, {"n": 2}]), arms=2, budget=8)


# Commands ---------------------------------------------------------------------------------------

TRAIN = """
import sys
x, upto, key = float(sys.argv[1]), int(sys.argv[2]), sys.argv[4]
if x > 0.4:
    sys.exit(f"cannot log in with --api-key {key}")
print(x / upto)
"""


def command(folder: Path, *more: str, key: str = SECRET, budget: int = 12) -> list[str]:
    program = folder / "train.py"
    program.write_text(TRAIN)
    ours = ["--arms", "4", "--budget", str(budget), "--journal", str(folder / "j.jsonl")]
    theirs = [sys.executable, str(program), "{x}", "{upto}", "--api-key", key, *more]
    return ["tune", "--param", "x=uniform:0:1", *ours, "--", *theirs]


def ended(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert isinstance(left.value.code, int)
    return left.value.code


def test_a_secret_on_the_command_line_is_not_stored_and_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    journal = str(tmp_path / "j.jsonl")
    address = f"--store=https://me:{SECRET}@host"
    assert ended(command(tmp_path, address)) == 0
    opened, *events = read(journal)
    assert isinstance(opened, Opened)
    assert any(isinstance(event, Failure) for event in events)
    assert without_hashes(opened.command)[-3:] == ["--api-key", "***", "--store=https://***@host"]
    assert without_hashes(opened.trainer["argv"])[-3:] == without_hashes(opened.command)[-3:]

    for shown in (["show"], ["show", "--json"], ["report"], ["export", "-o", "arms.csv"]):
        assert ended([shown[0], journal, *shown[1:]]) == 0
    assert ended(["export", journal, "-o", "events.csv"]) == 0

    # It is not run again, and what to run is printed.
    before = Path(journal).read_bytes()
    for more in ([], ["--budget", "24"], ["--trust"]):
        capsys.readouterr()
        assert ended(["resume", journal, *more]) == 2
        said = capsys.readouterr().out
        assert "--api-key '***' '--store=https://***@host'" in said
        assert f"in {tmp_path}" in "".join(said.split("\n")[0])
        assert "--budget 24 to extend it" in said or not more or more == ["--trust"]
    assert Path(journal).read_bytes() == before

    # The same command resumes and extends it; with another secret it is another search.
    assert ended(command(tmp_path, address, budget=24)) == 0
    assert ended(command(tmp_path, address, key="hunter3", budget=24)) == 3
    said = capsys.readouterr().err
    assert "another value for ***" in said
    assert "hunter3" not in said
    files = (each.read_bytes() for each in tmp_path.iterdir() if each.suffix != ".states")
    assert not any(SECRET.encode() in content for content in files)


@pytest.fixture
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Journals are written as lastarm 0.1 wrote them."""
    monkeypatch.setattr(file, "without_secrets", lambda opened: opened)


@pytest.mark.usefixtures("as_before")
def test_a_journal_whose_command_is_not_masked_still_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ended(command(tmp_path)) == 0
    assert SECRET in (tmp_path / "j.jsonl").read_text()
    assert ended(["resume", str(tmp_path / "j.jsonl"), "--budget", "24"]) == 0


def test_parameters_with_such_names_are_searched_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    journal = str(tmp_path / "j.jsonl")
    names = ["key_size", "token_length", "tokens", "key"]
    theirs = [f"--{name}={{{name}}}" for name in names] + ["--max-tokens", "512"]
    theirs += ["--key-size", "{key_size}", "--tokenizer", "bert"]
    given = [word for name in names for word in ("--param", f"{name}=int:1:5")]
    ours = ["--arms", "2", "--budget", "4", "--journal", journal]
    count = "import sys; print(len(sys.argv))"
    assert ended(["tune", *given, *ours, "--", sys.executable, "-c", count, *theirs]) == 0
    opened = read(journal)[0]
    assert isinstance(opened, Opened)
    assert "***" not in Path(journal).read_text()
    assert ended(["resume", journal, "--budget", "8"]) == 0


def halved(config: Any) -> Iterator[float]:
    loss = config["x"]
    while True:
        loss /= 2
        yield loss


def test_a_script_is_told_that_a_secret_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begun(*words: str) -> Any:
        monkeypatch.setattr(sys, "argv", ["tune.py", *words])
        space = {"x": Uniform(0, 1)}
        path = tmp_path / "j.jsonl"
        return search(halved, space, arms=4, budget=16, journal=path, checkpoints=False)

    digest = begun("--api-key", SECRET, "--workers", "2").digest
    assert SECRET not in (tmp_path / "j.jsonl").read_text()
    assert begun("--api-key", SECRET, "--workers", "2").digest == digest
    assert begun("--api-key", "hunter3").digest == digest  # another command
    with pytest.warns(OtherSecret) as told:
        assert begun("--api-key", "hunter3", "--workers", "2").digest == digest
    assert "hunter" not in str(told[0].message)


def test_show_says_what_to_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "j.jsonl"
    command = ("lastarm", "tune", "--", "./train", f"--api-key={SECRET}")
    with file.Journal(
        path, Opened(0, {"name": "uniform", "budget": 8}, {}, {}, {}, command, "/x")
    ):
        pass
    assert ended(["show", str(path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "It was begun by lastarm tune -- ./train '--api-key=***' in /x." in said
    assert "run the same command again, with your own values in place of ***" in said


# Modes ------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
@pytest.mark.parametrize("mask", [0o000, 0o777])
def test_a_rescued_journal_is_its_users_alone_whatever_the_umask(
    tmp_path: Path, mask: int
) -> None:
    path = tmp_path / "j.jsonl"

    def remove(event: Event) -> None:
        if isinstance(event, Loss):
            path.unlink(missing_ok=True)

    space = {"x": Uniform(0, 1)}
    numbers: dict[str, Any] = {"arms": 2, "budget": 8, "checkpoints": False}
    before = os.umask(mask)
    try:
        with pytest.raises(JournalNotWritten) as lost:
            search(halved, space, journal=path, on_event=remove, **numbers)
    finally:
        os.umask(before)
    assert stat.S_IMODE(lost.value.rescued.stat().st_mode) == 0o600


def test_another_program_is_refused_without_its_secrets(tmp_path: Path) -> None:
    opened = Opened(0, {}, {}, {"kind": "Program", "argv": ["./train", f"--key={SECRET}"]})
    with file.Journal(tmp_path / "j.jsonl", opened):
        pass
    with file.Journal(tmp_path / "j.jsonl", opened):
        pass
    other = Opened(0, {}, {}, {"kind": "Program", "argv": ["./train", f"--token={SECRET}"]})
    with pytest.raises(OtherSearch) as refused:
        file.Journal(tmp_path / "j.jsonl", other)
    assert SECRET not in str(refused.value)
    assert SECRET not in repr(refused.value.differences)
