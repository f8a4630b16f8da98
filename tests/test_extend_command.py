"""Extending a search from the command, as a person does it."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lastarm import Closed, Extended, LogUniform, SuccessiveHalving, search
from lastarm.cli import main
from lastarm.journal import read

PROGRAM = """
import json, pathlib, sys
step, upto, state = float(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
file = state / "progress.json"
done, x = json.loads(file.read_text()) if file.exists() else (0, 1.0)
with open("tally", "a") as tally:
    tally.write("x" * (upto - done))
for _ in range(done, upto):
    x -= step * (x * x - 2)
file.write_text(json.dumps([upto, x]))
print(abs(x * x - 2))
"""
MODULE = """
class Root:
    def start(self, config, seed):
        return [config["step"], 1.0]
    def train(self, state, pulls):
        with open("tally", "a") as tally:
            tally.write("x" * pulls)
        for _ in range(pulls):
            state[1] -= state[0] * (state[1] * state[1] - 2)
        return state
    def loss(self, state):
        return abs(state[1] ** 2 - 2)
    def test(self, state):
        with open("tested", "a") as tested:
            tested.write("x")
        return self.loss(state) + 1
root = Root()
"""
TUNE = ("tune", "--arms", "8", "--budget", "96", "--param", "step=log:0.01:0.3")
PROGRAMMED = ("--", sys.executable, "train.py", "{step}", "{upto}", "{state}")


class Command:
    """The command, in a folder of its own, and what it says."""

    def __init__(self, capsys: pytest.CaptureFixture[str], module: str) -> None:
        self._capsys = capsys
        self.module = (f"{module}:root",)

    def __call__(self, *words: str, code: int = 0) -> tuple[str, str]:
        with pytest.raises(SystemExit) as leaving:
            main(list(words))
        printed = self._capsys.readouterr()
        assert leaving.value.code == code, printed.err
        return printed.out, printed.err

    def asked(self, *words: str) -> Any:
        return json.loads(self(*words, "--json")[0])

    def tuned(self, form: Sequence[str]) -> None:
        self(*TUNE, "--journal", "j.jsonl", *form)


@pytest.fixture
def lastarm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("train.py").write_text(PROGRAM)
    module = f"rooted_{tmp_path.name}"  # modules are imported once, and their folders differ
    Path(f"{module}.py").write_text(MODULE)
    return Command(capsys, module)


def tally() -> int:
    return len(Path("tally").read_text())


@pytest.mark.parametrize("what", ["program", "module"])
def test_a_search_is_extended_by_its_journal_and_trains_no_step_twice(
    lastarm: Command, what: str
) -> None:
    lastarm.tuned(PROGRAMMED if what == "program" else lastarm.module)
    first = lastarm.asked("show", "j.jsonl")
    assert first["budget"] == tally() == 96
    result = lastarm.asked("resume", "j.jsonl", "--budget", "384")
    assert (result["complete"], result["budget"], result["repeated"]) == (True, 384, 0)
    assert first["pulls"] < result["pulls"] == tally() <= 384
    assert result["loss"] <= first["loss"]
    events = read("j.jsonl")
    assert Extended(384) in events
    assert sum(isinstance(event, Closed) for event in events) == 2
    if what == "module":
        assert Path("tested").read_text() == "xx", "the test loss is computed once a stretch"
        assert result["test_loss"] == result["loss"] + 1

    shown = lastarm.asked("show", "j.jsonl")
    assert (shown["digest"], shown["budget"]) == (result["digest"], 384)
    one, two = shown["stretches"]
    assert (one["budget"], two["budget"]) == (96, 384)
    assert (one["pulls"], two["pulls"]) == (96, result["pulls"] - 96)
    assert (one["arm"], one["loss"]) == (first["arm"], first["loss"])
    assert (two["arm"], two["test_loss"]) == (result["arm"], result["test_loss"])
    page, _ = lastarm("show", "j.jsonl")
    assert "budget=96 → 384" in page
    assert "lastarm resume j.jsonl --budget 768" in page


def with_budget(budget: str) -> list[str]:
    return [budget if word == "96" else word for word in TUNE]


def test_any_of_its_commands_gives_the_answer_of_the_extended_search(lastarm: Command) -> None:
    lastarm.tuned(lastarm.module)
    result = lastarm.asked("resume", "j.jsonl", "--budget", "384")
    before = Path("j.jsonl").read_bytes()
    for words in (
        ("resume", "j.jsonl"),
        ("resume", "j.jsonl", "--budget", "384"),
        ("resume", "j.jsonl", "--budget", "96"),
        (*TUNE, "--journal", "j.jsonl", *lastarm.module),
        (*with_budget("384"), "--journal", "j.jsonl", *lastarm.module),
    ):
        again = lastarm.asked(*words)
        assert again.items() <= result.items(), "all but how busy the workers were"
        assert again["budget"] == 384
    assert Path("j.jsonl").read_bytes() == before
    assert "384" in lastarm("resume", "j.jsonl")[1]


def test_the_command_with_a_larger_budget_extends_too(lastarm: Command) -> None:
    lastarm.tuned(lastarm.module)
    answer, _ = lastarm(*with_budget("200"), "--journal", "j.jsonl", *lastarm.module)
    assert "pulls of a budget of 200" in answer
    assert 96 < tally() <= 200


def test_what_is_refused_and_what_to_do(lastarm: Command) -> None:
    lastarm.tuned(lastarm.module)
    _, error = lastarm("resume", "j.jsonl", "--budget", "95", code=3)
    assert "95" in error
    _, error = lastarm("resume", "j.jsonl", "--budget", "many", code=2)
    assert "budget='many'" in error
    other = [word.replace("0.3", "0.4") for word in with_budget("384")]
    _, error = lastarm(*other, "--journal", "j.jsonl", *lastarm.module, code=3)
    assert "space" in error
    assert Extended(384) not in read("j.jsonl")


def test_killed_while_it_is_extended_it_is_resumed_without_saying_how_far(
    lastarm: Command,
) -> None:
    lastarm.tuned(lastarm.module)
    whole = lastarm.asked("resume", "j.jsonl", "--budget", "384")
    lines = Path("j.jsonl").read_bytes().splitlines(keepends=True)
    extended = next(n for n, line in enumerate(lines) if b'"extended"' in line)
    for kept in (extended + 1, extended + 4):
        Path("j.jsonl").write_bytes(b"".join(lines[:kept]))
        shown = lastarm.asked("show", "j.jsonl")
        assert not shown["complete"]
        assert [stretch["complete"] for stretch in shown["stretches"]] == [True, False]
        assert "lastarm resume j.jsonl\n" in lastarm("show", "j.jsonl")[0]
        assert lastarm.asked("resume", "j.jsonl")["digest"] == whole["digest"]


def test_the_winner_of_the_larger_budget_goes_where_it_is_told(lastarm: Command) -> None:
    lastarm(*TUNE, "--journal", "j.jsonl", "--output", "best", *PROGRAMMED)
    first = Path("best/progress.json").read_text()
    _, error = lastarm("resume", "j.jsonl", "--budget", "200")
    assert "best" in error
    assert Path("best/progress.json").read_text() == first
    os.mkdir("elsewhere")
    os.chdir("elsewhere")
    lastarm("resume", "../j.jsonl", "--budget", "384", "--output", "better")
    level, _ = json.loads(Path("elsewhere/better/progress.json").read_text())
    assert level == lastarm.asked("show", "j.jsonl")["level"] > json.loads(first)[0]


def test_a_search_of_python_says_how_it_is_extended(
    lastarm: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def generator(config: dict[str, Any]) -> Any:
        while True:
            yield config["x"]

    monkeypatch.setattr(sys, "argv", ["script.py"])
    policy = SuccessiveHalving(8, 96)
    search(generator, {"x": LogUniform(1, 10)}, policy=policy, journal="j.jsonl")
    lastarm("resume", "j.jsonl")  # it has ended, so nothing is left to do
    lines = Path("j.jsonl").read_bytes().splitlines(keepends=True)
    Path("j.jsonl").write_bytes(b"".join(lines[:-1]))
    lastarm("resume", "j.jsonl", code=2)
    answer, _ = lastarm("resume", "j.jsonl", "--budget", "400", code=2)
    assert "budget=400" in answer


def test_a_table_goes_on_from_where_its_rows_are(lastarm: Command) -> None:
    rows = [[arm + 9 / (1 + step) for step in range(200)] for arm in range(16)]
    Path("t.csv").write_text("\n".join(",".join(map(str, row)) for row in rows))
    lastarm("replay", "t.csv", "--budget", "128", "--journal", "j.jsonl")
    result = lastarm.asked("resume", "j.jsonl", "--budget", "512")
    assert (result["pulls"], result["budget"], result["repeated"]) == (512, 512, 0)
    lastarm("replay", "t.csv", "--policy", "asha", "--budget", "9999", "--journal", "asha.jsonl")
    answer, _ = lastarm("resume", "asha.jsonl", "--budget", "20000")
    assert "20,000 changed nothing" in answer
    assert "--budget" not in lastarm("show", "asha.jsonl")[0], "no more is advised"
    _, error = lastarm("resume", "j.jsonl", "--output", "x", code=2)
    assert "--output" in error
