"""What a search gives back, and what it shows meanwhile."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from rich.cells import cell_len

from lastarm import Batched, Choice, Result, Serial, Simulated, SuccessiveHalving, Uniform, search
from lastarm.errors import ImpossibleValue
from lastarm.events import Closed, Event, Failure, Loss, Pull, Work
from lastarm.journal import read
from lastarm.ledger.utilisation import Timesheet, Utilisation
from lastarm.report import progress
from lastarm.trainers import Config
from tests.refusals import raised


def arms(config: Config) -> Iterator[float]:
    if config["kind"] == "bad":
        raise RuntimeError("no\x1b[31m such kind")
    for level in range(1, 10**9):
        yield config["x"] + 1 / level


SPACE = {"x": Uniform(0, 1), "kind": Choice("good", "bad")}


@pytest.fixture(scope="module")
def result() -> Any:
    return search(
        arms, SPACE, policy=SuccessiveHalving(8, 96), include=[{"x": 0.5, "kind": "bad"}]
    )


def test_printed_it_is_a_table(result: Any) -> None:
    lines = str(result).splitlines()
    assert lines[0].startswith(f"Arm {result.arm} is recommended: loss {result.loss:.6g}")
    (heading,) = (
        n for n, line in enumerate(lines) if line.split()[:3] == ["arm", "pulls", "loss"]
    )
    rows = [line.split() for line in lines[heading + 1 :]]
    assert rows[0][0] == str(result.arm)
    assert len(rows) == 8
    assert rows[-1][2] == "RuntimeError"
    assert "\x1b" not in str(result)


def test_printed_it_has_the_settings_of_every_branch_of_its_space() -> None:
    branches = [{"x": Uniform(0, 1), "C": 1.5}, {"x": Uniform(2, 3), "depth": 4}]

    def falling(config: Config) -> Iterator[float]:
        yield from (config["x"] + 1 / level for level in range(1, 99))

    result = search(falling, branches, arms=8, budget=96)
    assert {len(config) for config in result.configs} == {2}
    (heading,) = (line for line in str(result).splitlines() if line.split()[:1] == ["arm"])
    assert {"x", "C", "depth"} <= set(heading.split())


def test_it_can_be_had_as_a_dataframe(result: Any) -> None:
    frame = result.to_dataframe()
    own = ["arm", "recommended", "pulls", "loss", "error", "losses"]
    assert list(frame.columns) == [*own, "x", "kind"]
    assert list(frame["recommended"]) == [arm == result.arm for arm in range(8)]
    assert list(frame["arm"]) == list(range(8))
    assert frame.loc[0, "error"].startswith("RuntimeError")
    assert frame.loc[result.arm, "loss"] == result.loss
    curves = result.to_dataframe(curves=True)
    assert len(curves) == result.spent.observations
    assert list(curves.columns) == ["arm", "pulls", "loss"]


def test_settings_and_metrics_have_columns_of_their_own() -> None:
    def arm(config: Config) -> Iterator[dict[str, float]]:
        while True:
            yield {"loss": 0.5, "accuracy": 0.25, "error": 1.0}

    space = {"loss": Choice("hinge", "log"), "x": Uniform(0, 1)}
    found = search(arm, space, policy=SuccessiveHalving(4, 16))
    frame = found.to_dataframe()
    own = ["arm", "recommended", "pulls", "loss", "error", "losses"]
    assert list(frame.columns) == [*own, "param_loss", "x", "accuracy", "metric_error"]
    assert set(frame["param_loss"]) <= {"hinge", "log"}
    curves = found.to_dataframe(curves=True)
    assert list(curves.columns) == ["arm", "pulls", "loss", "accuracy", "metric_error"]
    assert found.metrics[0][found.curves[0][0][0]] == {"accuracy": 0.25, "error": 1.0}


def test_include_comes_first_and_the_rest_is_drawn_by_the_seed(result: Any) -> None:
    assert result.configs[0] == {"x": 0.5, "kind": "bad"}
    other = search(arms, SPACE, policy=SuccessiveHalving(8, 96), seed=3)
    assert other.configs[1:] != result.configs[1:]


SCRIPT = """
import time
from lastarm import SuccessiveHalving, Uniform, search
def arm(config):
    for level in range(1, 1000):
        time.sleep(0.01)
        yield config["x"] + 1 / level
policy = SuccessiveHalving(8, 96)
result = search(arm, {"x": Uniform(0, 1)}, policy=policy, workers=WORKERS, progress=PROGRESS)
"""


def script(progress: str, workers: int = 1) -> str:
    return SCRIPT.replace("PROGRESS", progress).replace("WORKERS", f"{workers}")


@pytest.mark.parametrize(
    ("wanted", "shown", "workers"), [("None", True, 1), ("False", False, 1), ("None", True, 2)]
)
def test_progress_is_shown_on_a_terminal(wanted: str, shown: bool, workers: int) -> None:
    text = on_a_terminal(script(wanted, workers), columns=200)
    for part in ("successive-halving: rung", "arms to", "/96", "left", "lowest loss", "x="):
        assert (part in text) == shown
    assert ("workers busy" in text) == (workers > 1), "one alone is always busy"


def on_a_terminal(code: str, columns: int) -> str:
    """What is written to standard error, if that is a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": f"{columns}"},
    ) as process:
        os.close(theirs)
        written = b""
        try:
            while chunk := os.read(ours, 65536):
                written += chunk
        except OSError:  # the other end is closed
            pass
        os.close(ours)
    assert process.returncode == 0
    return written.decode(errors="replace")


def test_at_80_columns_it_keeps_bar_count_and_time_left() -> None:
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", on_a_terminal(script("None"), columns=80))
    lines = [line.rstrip() for line in re.split(r"[\r\n]+", text) if "left" in line]
    assert lines
    for line in lines:
        assert len(line) <= 80
        assert re.search(r"[━╸╺]{10} +\d+/96 pulls, \d+:\d\d:\d\d left", line)


@pytest.mark.parametrize("width", range(0, 200, 7))
@pytest.mark.parametrize("busy", ["", "97 %"])
def test_the_settings_are_shortened_first(width: int, busy: str) -> None:
    settings = "learning_rate=0.00123, größe ★=0.125, 学習率=0.25"
    told = progress.Told(
        "horizon-halving", "rung 3", "16 arms", "24", 96, 3840, "0:01:00", "0.25", busy, settings
    )
    before, after = told.fitted(width)
    assert cell_len(before) + cell_len(after) <= width
    whole = f" ({settings})" in after
    assert ("horizon-halving" in before) <= ("(" in after)
    assert ("rung" in before) <= ("loss" in after)
    assert whole or "(" not in after or after.endswith("…)")
    if width > 160:
        assert (whole, busy in after) == (True, True)


def steady(config: Config) -> Iterator[float]:
    while True:
        yield 0.125 + config["learning_rate"]


class Kernel:
    """A shell and displays as IPython documents them."""

    def __init__(self) -> None:
        self.drawn: list[dict[str, str]] = []

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        self.drawn.append(data)
        return SimpleNamespace(update=lambda data, raw: self.drawn.append(data))


@pytest.mark.parametrize("kernel", [True, False])
def test_a_notebook_shows_progress_without_being_asked(
    kernel: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    front = Kernel()
    shell = SimpleNamespace(kernel=front) if kernel else SimpleNamespace()  # as in a terminal
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=front.display))
    monkeypatch.setattr(progress, "EVERY", 0.0)
    space = {"learning_rate": Uniform(0, 1), "<b>": Uniform(0, 1)}
    search(steady, space, policy=SuccessiveHalving(8, 96))
    search(steady, space, policy=SuccessiveHalving(8, 96), progress=False)
    assert bool(front.drawn) == kernel
    if kernel:
        first, *lines, last = front.drawn
        assert set(first.values()) == set(last.values()) == {""}, "it is wiped away"
        assert all("/96 pulls" in line["text/plain"] for line in lines)
        assert "96/96 pulls" in lines[-1]["text/html"]
        assert "<b>" not in lines[-1]["text/html"]
    assert capsys.readouterr().err == ""


def test_progress_is_silent_elsewhere() -> None:
    done = subprocess.run(
        [sys.executable, "-c", script("None")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == done.stdout == ""


STEADY = [{"x": arm, "kind": "good"} for arm in range(16)]


def test_it_says_how_busy_the_workers_were() -> None:
    sixteen = partial(Simulated, workers=16, seconds_per_pull=1.0)
    found = search(arms, STEADY, policy=SuccessiveHalving(16, 256), runner=sixteen)
    # Rungs of 16, 8, 4 and 2 arms, of 4, 8, 16 and 32 pulls each.
    assert found.utilisation == Utilisation(workers=16, seconds=60.0, busy_seconds=256.0)
    assert found.utilisation.share == 256 / (16 * 60)
    sentence = "16 workers were busy 27 % of 60 s (idle 704 s in all)"
    assert sentence in str(found).splitlines()
    assert found.as_dict().items() >= {"workers": 16, "busy_seconds": 256.0}.items()


def test_worker_processes_are_busy_for_as_long_as_they_train_and_look() -> None:
    found = search(arms, STEADY, policy=SuccessiveHalving(16, 64), workers=2)
    assert found.utilisation
    assert found.utilisation.workers == 2
    spent = found.spent.train_seconds + found.spent.loss_seconds
    assert found.utilisation.busy_seconds == pytest.approx(spent)
    assert "2 workers were busy " in str(found)


@pytest.mark.parametrize("runner", [Serial, partial(Serial, group=8), Batched])
def test_what_is_performed_here_is_performed_by_one(runner: Any) -> None:
    found = search(arms, STEADY, policy=SuccessiveHalving(16, 64), runner=runner)
    assert found.utilisation
    assert found.utilisation.workers == 1
    assert "busy" not in str(found)


def test_a_timesheet_of_what_is_lost_and_what_is_under_way() -> None:
    sheet = Timesheet(workers=3)
    assert not sheet.began
    for arm in (0, 1, 2):
        sheet.add(Pull(arm, 4), now=10.0)
    assert sheet.began
    assert sheet.utilisation is None, "nothing is known as yet"
    lost = Failure(Pull(0, 4), "it died", work=Work(worker="a"), retried=True, lost=True)
    sheet.add(lost, now=12.0)
    sheet.add(Pull(0, 4), now=12.0)
    sheet.add(Loss(Pull(1, 4), 0.5, Work(4, 3.0, 0.5, "b")), now=14.0)
    # Two seconds of "a" are lost, "b" worked for 3.5, arms 2 and 0 are under way since 10 and 12.
    assert sheet.utilisation == Utilisation(workers=3, seconds=4.0, busy_seconds=3.5 + 4 + 2)
    sheet.add(Loss(Pull(2, 4), 0.5, Work(4, 6.0, 2.0, "c")), now=18.0)
    sheet.add(Loss(Pull(0, 4), 0.5, Work(4, 5.0, 0.0, "a")), now=18.0)
    assert sheet.utilisation == Utilisation(workers=3, seconds=8.0, busy_seconds=3.5 + 8 + 5)


def test_pulls_that_wait_for_the_worker_of_their_arm_make_nobody_busier() -> None:
    sheet = Timesheet(workers=2)
    for arm in range(5):
        sheet.add(Pull(arm, 4), now=0.0)
    sheet.add(Loss(Pull(0, 4), 0.5, Work(4, 3.0, 0.5, "a")), now=4.0)
    assert sheet.utilisation == Utilisation(workers=2, seconds=4.0, busy_seconds=8.0)


def test_workers_that_come_later_are_counted_while_they_are_there_at_once() -> None:
    sheet = Timesheet(workers=0)
    for arm in range(4):
        sheet.add(Pull(arm, 4), now=0.0)
    lost = Failure(Pull(3, 4), "it died", work=Work(worker="a"), retried=True, lost=True)
    for seconds, worker, now in ((4.0, "a", 4.0), (3.0, "b", 5.0), (2.0, "c", 8.0)):
        sheet.add(Loss(Pull(0, 4), 0.5, Work(4, seconds, worker=worker)), now)
    assert sheet.utilisation
    assert sheet.utilisation.workers == 2, "c came when a and b had done what is known of them"
    sheet.add(lost, now=9.0)
    assert sheet.utilisation.workers == 2, "when a died, nobody knows"
    sheet.add(Loss(Pull(1, 4), 0.5, Work(4, 2.0, worker="b")), now=10.0)
    sheet.add(Loss(Pull(2, 4), 0.5, Work(4, 8.0, worker="d")), now=10.0)
    assert sheet.utilisation.workers == 3
    assert sheet.utilisation.share <= 1


def test_the_threads_of_one_worker_that_came_later_are_counted() -> None:
    sheet = Timesheet(workers=0)
    for arm in range(4):
        sheet.add(Pull(arm, 4), now=0.0)
        sheet.add(Loss(Pull(arm, 4), 0.5, Work(4, 9.0, 0.5, "a")), now=10.0)
    assert sheet.utilisation == Utilisation(workers=4, seconds=10.0, busy_seconds=38.0)


def test_utilisation_in_words() -> None:
    assert str(Utilisation(1, 1234.5, 1234.5)) == (
        "1 worker was busy 100 % of 1,234 s (idle 0 s in all)"
    )
    assert str(Utilisation(2000, 0.5, 250.0)) == (
        "2,000 workers were busy 25 % of 0.5 s (idle 750 s in all)"
    )
    assert Utilisation(2, 0.0, 0.0).share == 1.0


def test_a_journal_that_lastarm_did_not_write_does_no_harm() -> None:
    seen: list[Event] = [Pull(0, 1, config={"x": 1}), Loss(Pull(0, 1), 0.5)]
    for claimed in (Closed(7, 1), Closed(0, 9)):
        found = Result.of([*seen, claimed])
        assert (found.arm, found.loss, found.complete) == (0, 0.5, False), "nothing of it was seen"
    assert Result.of([Loss(Pull(3, 1), 0.5)]).configs[3] == {}
    failed = Result.of([Failure(Pull(2, 1), "no")])
    assert "no" in str(failed)
    with raised(ImpossibleValue, line=3, name="arm", value=10**30):
        Result.of([*seen, Loss(Pull(10**30, 1), 0.25)])


@pytest.mark.parametrize("maximize", [False, True])
def test_a_journal_tells_the_result_that_the_search_gave(tmp_path: Any, maximize: bool) -> None:
    journal = tmp_path / "j.jsonl"
    found = search(
        arms, SPACE, policy=SuccessiveHalving(8, 96), journal=journal, maximize=maximize, seed=5
    )
    read_back = Result.of(read(journal))
    for name in ("arm", "config", "level", "loss", "complete", "spent", "digest", "curves"):
        assert getattr(read_back, name) == getattr(found, name)
    for name in ("policy", "rungs", "best_so_far", "maximized", "failures", "metrics"):
        assert getattr(read_back, name) == getattr(found, name)
    assert read_back.space.items() >= found.space.items(), (
        "the header also tells the configs apart"
    )
    assert found.maximized == maximize


def test_rungs_add_up_to_what_was_spent(result: Any) -> None:
    assert list(result.rungs) == sorted(result.rungs)
    assert sum(rung.pulls for rung in result.rungs.values()) == result.spent.pulls
    seconds = sum(rung.train_seconds for rung in result.rungs.values())
    assert seconds == pytest.approx(result.spent.train_seconds)
    assert [rung.arms for rung in result.rungs.values()] == [8, 4, 2]


def test_the_best_so_far_falls_to_the_lowest_loss_of_all(result: Any) -> None:
    pulls, losses = zip(*result.best_so_far, strict=True)
    assert list(pulls) == sorted(pulls)
    assert pulls[-1] <= result.spent.pulls
    assert list(losses) == sorted(set(losses), reverse=True)
    assert losses[-1] == min(loss for curve in result.curves.values() for _, loss in curve)
