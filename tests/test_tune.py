"""`lastarm tune`, `resume` and `show`, as a person meets them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from lastarm import LogUniform, SuccessiveHalving, search
from lastarm.cli import display, main
from lastarm.events import Failure, Loss, Opened
from lastarm.journal import read

LASTARM = [sys.executable, "-m", "lastarm"]

PROGRAM = """
import json, os, pathlib, signal, sys
step, upto, state, *does = sys.argv[1:]
step, upto, state = float(step), int(upto), pathlib.Path(state)
file = state / "progress.json"
done, x = json.loads(file.read_text()) if file.exists() else (0, 1.0)
file.write_text("half")
with open("tally", "a") as tally:
    tally.write("x" * (upto - done))
for _ in range(done, upto):
    x -= step * (x * x - 2)
if does == ["fail"] and step > 0.5:
    sys.exit("the step is too large")
if does == ["die"] and step > 0.5:
    os.kill(os.getpid(), signal.SIGTERM)
file.write_text(json.dumps([upto, x]))
print("some words first")
print(json.dumps({"loss": abs(x * x - 2), "x": x}) if does != ["number"] else abs(x * x - 2))
"""

MODULE = """
import time
class Root:
    def start(self, config, seed):
        return [config["step"], 1.0]
    def train(self, state, pulls):
        print("training")
        time.sleep(PAUSE)
        for _ in range(pulls):
            state[1] -= state[0] * (state[1] * state[1] - 2)
        return state
    def loss(self, state):
        return abs(state[1] ** 2 - 2)
    def test(self, state):
        return self.loss(state) + 1
def generator(config):
    x = 1.0
    while True:
        x -= config["step"] * (x * x - 2)
        yield abs(x * x - 2)
pair = (lambda config, state, pulls: config["step"] / pulls, lambda state: state)
root = Root()
"""
TUNE = ("tune", "--arms", "8", "--budget", "96", "--param", "step=log:0.01:1")
ROOT = ("--", sys.executable, "train.py", "{step}", "{upto}", "{state}")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("train.py").write_text(PROGRAM)
    name = f"trained_{tmp_path.name}"  # modules are imported once, and these differ
    Path(f"{name}.py").write_text(MODULE.replace("PAUSE", "0"))
    monkeypatch.setenv("TRAINED", name)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as leaving:
        main(list(arguments))
    assert isinstance(leaving.value.code, int)
    return leaving.value.code


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    assert run(*arguments[:at], "--json", *arguments[at:]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    assert run(*arguments) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("prints", [(), ("number",)])
def test_a_program_is_tuned_and_trains_no_step_twice(
    capsys: pytest.CaptureFixture[str], workers: str, prints: tuple[str, ...]
) -> None:
    found = asked(capsys, *TUNE, "--workers", workers, *ROOT, *prints)
    assert found["complete"]
    assert found["pulls"] == 96 == len(Path("tally").read_text())
    assert found["observations"] == 14
    assert found["repeated"] == 0
    assert found.keys() >= {"arm", "config", "loss", "digest", "policy", "budget"}
    assert 0.01 <= found["config"]["step"] <= 1


def test_its_metrics_and_its_failures_are_in_the_journal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = asked(capsys, *TUNE, "--journal", "j.jsonl", *ROOT, "fail")
    events = read("j.jsonl")
    assert all("x" in (e.metrics or {}) for e in events if isinstance(e, Loss))
    failures = [e for e in events if isinstance(e, Failure)]
    assert failures
    assert all("exited with code 1: the step is too large" in f.error for f in failures)
    assert all("the step is too large" in failure.traceback for failure in failures)
    assert found["config"]["step"] <= 0.5


def test_a_failed_attempt_leaves_the_folder_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    asked(capsys, *TUNE, "--retries", "2", "--journal", "j.jsonl", *ROOT, "die")
    failures = [e for e in read("j.jsonl") if isinstance(e, Failure)]
    assert {failure.work.attempt for failure in failures} == {1, 2, 3}
    assert all("SIGTERM" in failure.error for failure in failures), "not: it read 'half'"


def test_the_winners_folder_can_be_had(capsys: pytest.CaptureFixture[str]) -> None:
    for workers in ("1", "2"):
        found = asked(capsys, *TUNE, "--workers", workers, "--output", f"won{workers}", *ROOT)
        upto, x = json.loads((Path(f"won{workers}") / "progress.json").read_text())
        assert (upto, abs(x * x - 2)) == (28, found["loss"])
    assert "won1" in refused(capsys, *TUNE, "--output", "won1", *ROOT)


def test_an_output_that_cannot_be_is_refused_before_anything_is_trained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("taken").write_text("a file")
    for output in ("taken/won", "/dev/null/a/b/won", "/"):
        assert output in refused(capsys, *TUNE, "--output", output, *ROOT)
    assert not Path("tally").exists()


def test_an_output_that_is_taken_meanwhile_does_not_cost_the_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    takes_it = 'touch later; exec "$@"'
    command = ("--", "sh", "-c", takes_it, "sh", *ROOT[1:])
    assert run(*TUNE, "--json", "--output", "later/won", *command) == 2
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["complete"]
    (kept,) = (Path(word[:-1]) for word in said.err.split() if "lastarm-winner-" in word)
    upto, x = json.loads((kept / "progress.json").read_text())
    assert (upto, abs(x * x - 2)) == (28, found["loss"])
    shutil.rmtree(kept.parent)


def test_all_arms_failing_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert "8" in refused(capsys, *TUNE, "--", "false", "{step}", code=1)


@pytest.mark.parametrize("form", ["root", "Root", "generator", "pair"])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_trainer_from_a_module(
    capsys: pytest.CaptureFixture[str], form: str, workers: str
) -> None:
    found = asked(capsys, *TUNE, "--workers", workers, f"{os.environ['TRAINED']}:{form}")
    assert found["complete"]
    assert found["pulls"] == 96
    assert (found["test_loss"] is not None) == (form.lower() == "root")


def test_a_space_from_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    named = f"{os.environ['TRAINED']}:root"
    Path("plain.toml").write_text('step = "log:0.01:1"\nact = ["a", "b"]\nnumber = 3\n')
    found = asked(capsys, "tune", named, "--space", "plain.toml", "--arms", "8", "--budget", "96")
    assert found["config"]["act"] in ("a", "b")
    assert found["config"]["number"] == 3
    Path("tables.toml").write_text(
        '[[space]]\nkind = "small"\nstep = "uniform:0.01:0.1"\n'
        '[[space]]\nkind = "large"\nstep = "uniform:0.2:0.4"\n'
        '[[include]]\nkind = "large"\nstep = 0.35355\n'
    )
    found = asked(capsys, "tune", named, "--space", "tables.toml", "--arms", "8", "--budget", "96")
    assert found["config"] == {"kind": "large", "step": 0.35355}
    assert found["arm"] == 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((*TUNE,), "MODULE:TRAINER"),
        ((*TUNE, "os:path", *ROOT), "MODULE:TRAINER"),
        ((*TUNE, "os"), "MODULE:TRAINER"),
        ((*TUNE, "nowhere_to_be_found:x"), "ModuleNotFoundError"),
        ((*TUNE, "os:nothing"), "AttributeError"),
        ((*TUNE, "os:path"), "path"),
        ((*TUNE, "--", "./not-there", "{step}"), "not-there"),
        ((*TUNE, "--", "true", "{speed}"), "speed"),
        ((*TUNE[:5], *ROOT), "--param"),
        ((*TUNE[:5], "--param", "step", *ROOT), "NAME=DOMAIN"),
        ((*TUNE[:5], "--param", "step=log:0:1", *ROOT), "step"),
        ((*TUNE[:5], "--param", "step=log:1", *ROOT), "log:LOW:HIGH"),
        ((*TUNE[:5], "--param", "step=int:1:2.5", *ROOT), "step"),
        ((*TUNE[:5], "--param", "step=choice:", *ROOT), "step"),
        ((*TUNE, "--param", "step=1", *ROOT), "step"),
        ((*TUNE, "--param", "rate=lgo:1e-5:1", *ROOT), "lgo:1e-5:1"),
        ((*TUNE, "--space", "missing.toml", *ROOT), "missing.toml"),
        ((*TUNE, "--space", "train.py", *ROOT), "train.py"),
        ((*TUNE, "--workers", "0", *ROOT), "workers=0"),
        ((*TUNE, "--seconds", "-1", *ROOT), "seconds=-1"),
        ((*TUNE, "--policy", "asha", *ROOT), "--max-pulls"),
    ],
)
def test_what_cannot_be_tuned_is_said_in_a_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], named: str
) -> None:
    message = refused(capsys, *arguments)
    assert named in message
    assert message.count("\n") == 1
    assert not Path("tally").exists()


def slow(pause: float) -> list[str]:
    Path("slow.py").write_text(MODULE.replace("PAUSE", f"{pause}"))
    return [*LASTARM, *TUNE, "--journal", "j.jsonl", "slow:root"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_stopped_or_killed_it_is_resumed_by_name(
    capsys: pytest.CaptureFixture[str], number: signal.Signals, workers: str
) -> None:
    command = [*slow(0.1), "--workers", workers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        while not Path("j.jsonl").exists() or len(read("j.jsonl")) < 8:
            time.sleep(0.01)
        started.send_signal(number)
        printed, _ = started.communicate()
    if number == signal.SIGKILL:
        assert started.returncode == -number
    else:
        assert started.returncode == 128 + number
        assert "lastarm resume j.jsonl" in printed
    stopped = asked(capsys, "show", "j.jsonl")
    assert not stopped["complete"]
    assert not stopped["running"]
    moved = Path("moved")
    moved.mkdir()
    for file in ("j.jsonl", "j.jsonl.states"):
        Path(file).rename(moved / file)
    resumed = subprocess.run(
        [*LASTARM, "resume", str(moved / "j.jsonl")], capture_output=True, text=True, check=True
    )
    assert "tune --arms 8 --budget 96 --param step=log:0.01:1" in resumed.stderr
    whole = asked(capsys, *TUNE, f"{os.environ['TRAINED']}:root")
    shown = asked(capsys, "show", str(moved / "j.jsonl"))
    assert shown["digest"] == whole["digest"]
    assert shown["complete"]
    assert shown["repeated"] <= 2 * 16


def test_seconds_stop_it_with_a_recommendation_and_exit_code_0(
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = subprocess.run(
        [*slow(0.1), "--seconds", "1", "--json"], capture_output=True, text=True, check=True
    )
    answer = json.loads(done.stdout)
    assert not answer["complete"]
    assert answer["arm"] is not None


def test_timed_halving_plans_for_its_seconds_and_comes_to_its_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    timed = ("--policy", "timed-halving", "--max-pulls", "12", "--journal", "j.jsonl")
    seconds = ("--seconds", "0.000001")
    found = asked(capsys, *TUNE, *timed, *seconds, f"{os.environ['TRAINED']}:root")
    assert (found["complete"], found["pulls"]) == (True, 1), "one pull tells that it is too long"
    opened = read("j.jsonl")[0]
    assert isinstance(opened, Opened)
    assert opened.policy["seconds"] == 0.000001


def test_a_parameter_that_the_command_does_not_use_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(*TUNE, "--param", "gamma=uniform:0:1", *ROOT) == 0
    assert "{gamma}" in capsys.readouterr().err


def test_a_placeholder_that_only_some_branches_have_is_refused_before_training(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("space.toml").write_text(
        '[[space]]\nstep = "log:0.01:1"\nC = 1\n[[space]]\nstep = "log:0.01:1"\n'
    )
    words = ("tune", "--arms", "8", "--budget", "96", "--space", "space.toml", *ROOT)
    assert "{C?}" in refused(capsys, *words, "{C}")
    assert "{C?}" not in refused(capsys, *words, "{Cc?}")
    assert not Path("tally").exists()


def test_with_only_seconds_neither_arms_nor_a_budget_are_needed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("tune", "--param", "step=log:0.01:1", "--max-pulls", "2", "--seconds", "60")
    found = asked(capsys, *words, f"{os.environ['TRAINED']}:root")
    assert (found["policy"], found["budget"], found["complete"]) == ("timed-halving", None, True)
    assert found["arm"] is not None


def test_a_journal_that_others_may_write_to_is_not_executed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked(capsys, *TUNE, "--journal", "j.jsonl", *ROOT)
    Path("j.jsonl").chmod(0o666)
    Path("tally").unlink()
    assert "--trust" in refused(capsys, "resume", "j.jsonl")
    assert run("resume", "j.jsonl", "--trust") == 0
    assert not Path("tally").exists(), "it was complete, so nothing was trained"


def test_a_search_of_python_says_how_to_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def generator(config: dict[str, Any]) -> Any:
        while True:
            yield config["x"]

    monkeypatch.setattr(sys, "argv", ["my script.py", "--fast"])
    search(
        generator,
        {"x": LogUniform(1, 10)},
        policy=SuccessiveHalving(8, 96),
        journal="j.jsonl",
    )
    assert run("resume", "j.jsonl") == 0
    said = capsys.readouterr().out
    assert f"'my script.py' --fast in {os.getcwd()}" in said


def test_show_never_loads_a_state_and_never_shows_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hostile = "\x1b]0;owned\x07[red]"
    asked(capsys, *TUNE, "--param", f"{'x'}=choice:{hostile}", "--journal", "j.jsonl", *ROOT)
    for state in Path("j.jsonl.states").iterdir():
        state.write_bytes(b"cos\nsystem\n(S'touch owned'\ntR.")
    assert run("show", "j.jsonl") == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "[red]" in shown
    assert "complete" in shown
    assert not Path("owned").exists()
    found = asked(capsys, "show", "j.jsonl")
    assert {"arm", "config", "curve", "error"} <= found["arms"][0].keys()
    assert found["arms"][0]["config"]["x"] == hostile


def test_watch_follows_a_running_search_to_its_end() -> None:
    waits = "while not os.path.exists('seen'): time.sleep(0.01)"
    module = MODULE.replace("time.sleep(PAUSE)", waits).replace("import time", "import os, time")
    Path("slow.py").write_text(module)
    command = [*LASTARM, *TUNE, "--journal", "j.jsonl", "slow:root"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as started:
        while not Path("j.jsonl").exists():
            time.sleep(0.01)
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "200"}
        show = [*LASTARM, "show", "j.jsonl", "--watch"]
        with subprocess.Popen(
            show, stdout=subprocess.PIPE, text=True, env=environment
        ) as watching:
            assert watching.stdout
            assert watching.stdout.readline().endswith(": running\n")
            Path("seen").touch()
            last = watching.stdout.read()
        assert (watching.returncode, started.wait()) == (0, 0)
    assert ": complete\n" in last


SLEEPER = """#!/bin/sh
echo $$ >> pids
sleep 600 &
echo $! >> pids
wait
"""


def sleepers() -> list[int]:
    return (
        [int(line) for line in Path("pids").read_text().split()] if Path("pids").exists() else []
    )


@pytest.fixture
def sleeper() -> str:
    Path("sleeper.sh").write_text(SLEEPER)
    Path("sleeper.sh").chmod(0o755)
    return "./sleeper.sh"


def test_a_program_that_hangs_is_given_up_with_all_that_it_started(
    capsys: pytest.CaptureFixture[str], sleeper: str, alive: Callable[[int], bool]
) -> None:
    said = refused(
        capsys,
        *("tune", "--arms", "2", "--budget", "2", "--param", "x=uniform:0:1"),
        *("--pull-seconds", "1", "--", sleeper),
        code=1,
    )
    assert "1 s" in said
    assert len(sleepers()) == 4
    time.sleep(0.2)
    assert not any(map(alive, sleepers()))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_program_ends_with_the_search_with_all_that_it_started(
    sleeper: str, number: signal.Signals, alive: Callable[[int], bool]
) -> None:
    command = [*LASTARM, *TUNE, "--", sleeper]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as started:
        while len(sleepers()) < 2:
            time.sleep(0.01)
        started.send_signal(number)
        if number == signal.SIGINT:
            time.sleep(0.3)
            started.send_signal(number)
        started.communicate()
    deadline = time.monotonic() + 5
    while any(map(alive, sleepers())):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_program_has_the_users_environment_and_leaves_nothing_running(
    capsys: pytest.CaptureFixture[str], alive: Callable[[int], bool]
) -> None:
    Path("env.sh").write_text(
        'echo "${PYTHONPATH-none}" >> paths\nsleep 600 &\necho $! >> pids\n'
        'ln -sfn "$1/a" "$1/latest"; echo 1 > "$1/a"; cat "$1/latest" > /dev/null && echo 0.5\n'
    )
    os.environ.pop("PYTHONPATH", None)
    found = asked(capsys, *TUNE, "--journal", "j.jsonl", "--", "sh", "env.sh", "{state}")
    assert set(Path("paths").read_text().split()) == {"none"}
    assert found["repeated"] == 0
    assert len(sleepers()) == 14
    assert not any(map(alive, sleepers()))


@pytest.mark.parametrize("width", [30, 50, 80, 120])
def test_show_splits_no_name_of_a_setting(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["learning_rate_init", "model__momentum", "größe ★", "batch", "step"]
    space = {name: LogUniform(0.01, 1) for name in names}
    trainer: Any = lambda config, state, pulls: config["step"] / pulls, lambda state: state
    search(trainer, space, policy=SuccessiveHalving(8, 48), journal="wide.jsonl")
    monkeypatch.setattr(display.console, "_width", width)
    assert run("show", "wide.jsonl", "--top", "3") == 0
    printed = capsys.readouterr().out
    for heading in (*names, "arm", "pulls", "loss", "brought to", "lowest loss", "median loss"):
        assert heading in printed
    assert "…" not in printed
    assert max(map(cell_len, printed.splitlines())) <= width


def test_show_of_what_is_not_a_journal(capsys: pytest.CaptureFixture[str]) -> None:
    Path("circle").symlink_to("circle")
    for name, code in (("missing.jsonl", 3), ("train.py", 2), ("circle", 3)):
        assert name in refused(capsys, "show", name, code=code)
    assert "circle" in refused(capsys, "resume", "circle", code=3)
