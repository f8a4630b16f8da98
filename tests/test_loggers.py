"""Loggers: what is written while a search runs is what its journal gives when it is replayed."""

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from lastarm import Uniform, search
from lastarm.errors import InvalidArgument
from lastarm.events import Event, Loss
from lastarm.journal import read
from lastarm.report.loggers import Logger, MLflow, TensorBoard, WeightsAndBiases
from lastarm.report.loggers.logger import module_of
from lastarm.runners import Serial
from lastarm.trainers import Config
from tests.eventually import eventually
from tests.refusals import refused

EACH = partial(Serial, group=1)  # a loss is told before the next pull, as without a journal
SPACE = [{"x": Uniform(0, 1), "layers": [(1, 2)]}, {"x": Uniform(0, 1), "kind": "b"}]


def arms(config: Config) -> Iterator[Any]:
    if config["x"] > 0.5:
        raise ValueError("too large")
    for level in range(1, 100):
        yield {"loss": config["x"] + 1 / level, "accuracy": 1 - config["x"], "note": "a text"}


def run(journal: Path, on_event: Any = None, budget: int = 64) -> Any:
    numbers: Any = {"arms": 8, "budget": budget, "seed": 0, "runner": EACH}
    return search(arms, SPACE, journal=journal, on_event=on_event, **numbers)


class Recorded(Logger):
    """Keeps what it is to write."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[Any, ...]] = []

    def begin(self, about: Mapping[str, Any]) -> None:
        self.written.append(("begin", about))

    def begin_arm(self, arm: int, config: Mapping[str, Any]) -> None:
        self.written.append(("arm", arm, config))

    def observe(self, arm: int, level: int, values: Mapping[str, float]) -> None:
        self.written.append(("observe", arm, level, values))

    def improve(self, pulls: int, values: Mapping[str, float]) -> None:
        self.written.append(("improve", pulls, values))

    def extend(self, budget: int) -> None:
        self.written.append(("extend", budget))

    def end_arm(self, arm: int, error: str | None) -> None:
        self.written.append(("end arm", arm, error))

    def end(self, answer: Mapping[str, Any] | None) -> None:
        self.written.append(("end", answer))


def test_replayed_it_is_what_was_written_live(tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"
    live, again, extended = Recorded(), Recorded(), Recorded()
    result = run(journal, live)
    again.replay(journal)
    assert again.written == live.written
    assert live.written[-1][1]["arm"] == result.arm
    assert live.written[-1][1]["config"]["x"] == result.config["x"]
    assert 0 < len(result.failures) < 8
    for arm, failure in result.failures.items():
        assert ("end arm", arm, failure.error) in live.written
    run(journal, extended, budget=128)
    replayed = Recorded()
    replayed.replay(journal)
    assert replayed.written == extended.written
    assert ("extend", 128) in extended.written


def test_a_search_that_was_stopped_ends_without_an_answer(tmp_path: Path) -> None:
    live, again = Recorded(), Recorded()

    def stop(event: Event) -> None:
        live(event)
        if isinstance(event, Loss) and event.pull.upto > 2:
            raise KeyError

    with pytest.raises(KeyError):
        run(tmp_path / "j.jsonl", stop)
    live.close()
    again.replay(tmp_path / "j.jsonl")
    assert again.written[-1] == live.written[-1] == ("end", None)
    assert again.written == live.written


def test_without_a_journal_only_what_the_search_is_remains_unknown(tmp_path: Path) -> None:
    with_journal, without = Recorded(), Recorded()
    run(tmp_path / "j.jsonl", with_journal)
    search(arms, SPACE, arms=8, budget=64, seed=0, on_event=without)
    assert without.written[0] == ("begin", {})
    assert without.written[1:] == with_journal.written[1:]


def test_a_score_is_written_by_its_name_also_without_a_journal(tmp_path: Path) -> None:
    live, again, without = Recorded(), Recorded(), Recorded()
    for logger, journal in ((live, tmp_path / "j.jsonl"), (without, None)):
        space = {"x": Uniform(0, 0.5)}
        named: Any = {"maximize": True, "metric": "gain", "journal": journal, "on_event": logger}
        result = search(arms, space, arms=4, budget=16, runner=EACH, **named)
    again.replay(tmp_path / "j.jsonl")
    assert again.written == live.written
    assert without.written[1:] == live.written[1:]
    assert result.loss is not None
    assert live.written[-1][1]["gain"] == -result.loss
    values = [one[-1] for one in live.written if one[0] == "observe"]
    assert all(one["gain"] == -one["loss"] for one in values)
    best = [one[-1] for one in live.written if one[0] == "improve"]
    assert best[-1] == {
        "lowest loss": min(one["loss"] for one in values),
        "highest gain": max(one["gain"] for one in values),
    }


def test_a_logger_writes_one_search(tmp_path: Path) -> None:
    logger = Recorded()
    run(tmp_path / "j.jsonl", logger)
    logger.close()
    with pytest.raises(InvalidArgument):
        logger(read(tmp_path / "j.jsonl")[0])


def test_an_error_at_the_beginning_is_not_hidden_by_the_end(tmp_path: Path) -> None:
    class Refusing(Recorded):
        def begin(self, about: Mapping[str, Any]) -> None:
            if at == "begin":
                raise OSError("there is no server")

        def begin_arm(self, arm: int, config: Mapping[str, Any]) -> None:
            raise OSError("there is no server")

        def end_arm(self, arm: int, error: str | None) -> None:
            raise KeyError(arm)

    for at in ("begin", "begin_arm"):
        with pytest.raises(OSError, match="no server"):
            run(tmp_path / f"{at}.jsonl", Refusing())


@pytest.mark.parametrize("given", [[Recorded()], Recorded, "mlflow"])
def test_what_is_not_called_with_events_is_refused_before_training(given: Any) -> None:
    with refused("on_event", given):
        search(arms, SPACE, arms=8, budget=64, on_event=given)


def test_the_error_for_a_missing_package_names_an_extra_that_exists() -> None:
    extras = Path(__file__).parents[1].joinpath("pyproject.toml").read_text()
    for extra in ("mlflow", "tensorboard", "wandb"):
        assert f"\n{extra} = [" in extras
        with pytest.raises(InvalidArgument) as refusal:
            module_of("Some Tool", "there_is_not_such_a_package", extra)
        assert f"lastarm[{extra}]" in str(refusal.value)


# The real ones ---------------------------------------------------------------------------------


def runs_of_mlflow(folder: Path, name: str) -> Any:
    """What MLflow has of a search, without ids and times."""
    import mlflow  # noqa: PLC0415

    client = mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db")
    experiment = client.get_experiment_by_name("tests").experiment_id
    every = client.search_runs([experiment])
    (parent,) = (one for one in every if one.info.run_name == name)
    found = {}
    for one in every:
        tags = {key: tag for key, tag in one.data.tags.items() if key.startswith("lastarm")}
        if one is parent or one.data.tags.get("mlflow.parentRunId") == parent.info.run_id:
            curves = {
                key: [
                    (point.step, point.value)
                    for point in client.get_metric_history(one.info.run_id, key)
                ]
                for key in one.data.metrics
            }
            own = "search" if one is parent else one.info.run_name
            found[own] = (one.info.status, one.data.params, tags, curves)
    return found


def runs_of_tensorboard(folder: Path, name: str) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import (  # noqa: PLC0415
        EventAccumulator,
    )

    found = {}
    for place in sorted((folder / name).iterdir()):
        events = EventAccumulator(str(place), size_guidance={"tensors": 0})
        events.Reload()
        found[place.name] = {
            tag: [(event.step, str(event.tensor_proto)) for event in events.Tensors(tag)]
            for tag in events.Tags()["tensors"]
            if not tag.startswith("_hparams_")
        }
        assert place.name == "search" or "_hparams_/session_start_info" in events.Tags()["tensors"]
    return found


def records_of(content: bytes) -> Iterator[bytes]:
    """The records of a .wandb file, a log in the format of LevelDB: blocks of 32 KiB."""
    at, begun = 7, b""
    while at + 7 <= len(content):
        if (left := 32768 - at % 32768) < 7:
            at += left
            continue
        size, kind = struct.unpack("<HB", content[at + 4 : at + 7])
        begun += content[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # it is whole, or this was its last part
            yield begun
            begun = b""


def runs_of_wandb(folder: Path, name: str) -> Any:
    from wandb.proto import wandb_internal_pb2  # noqa: PLC0415

    found = {}
    for path in (folder / "wandb").glob("offline-run-*/*.wandb"):
        own, group, code = "", "", None
        rows: list[Any] = []
        summary: dict[str, Any] = {}
        config: dict[str, Any] = {}
        for data in records_of(path.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            if record.HasField("run"):
                own, group = record.run.display_name, record.run.run_group
                config = {
                    one.key: one.value_json
                    for one in record.run.config.update
                    if one.key != "_wandb"
                }
            elif record.HasField("history"):
                rows.append(_values(record.history.item))
            elif record.HasField("summary"):
                summary |= _values(record.summary.update)
            elif record.HasField("exit"):
                code = record.exit.exit_code
        if group == name:
            found[own] = (config, rows, summary, code)
    return found


def _values(items: Any) -> dict[str, Any]:
    named = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}
    return {name: value for name, value in named.items() if not name.startswith("_")}


TOOLS: dict[str, tuple[Callable[[Path, str], Logger], Callable[[Path, str], Any]]] = {
    "mlflow": (
        lambda folder, name: MLflow("tests", name, tracking_uri=f"sqlite:///{folder}/mlflow.db"),
        runs_of_mlflow,
    ),
    "tensorboard": (lambda folder, name: TensorBoard(folder / name), runs_of_tensorboard),
    "wandb": (
        lambda folder, name: WeightsAndBiases("tests", name, mode="offline", folder=folder),
        runs_of_wandb,
    ),
}


@pytest.mark.frameworks
@pytest.mark.parametrize("tool", TOOLS)
def test_the_real_one_has_the_same_live_and_replayed(tool: str, tmp_path: Path) -> None:
    if not find_spec(tool):
        pytest.skip(f"{tool} is not installed: make frameworks")
    make, runs = TOOLS[tool]
    result = run(tmp_path / "j.jsonl", make(tmp_path, "live"))
    make(tmp_path, "replayed").replay(tmp_path / "j.jsonl")
    # W&B writes its files by another process, which may still be at it.
    eventually(lambda: all(len(runs(tmp_path, name)) == 9 for name in ("live", "replayed")))
    eventually(lambda: runs(tmp_path, "live") == runs(tmp_path, "replayed"))
    live = runs(tmp_path, "live")
    assert len(live) == 9, "one for the search, and one for each arm"
    assert str(result.arm) in str(live["search"])
    losses = str([one for name, one in live.items() if name.endswith(str(result.arm))])
    assert "accuracy" in losses


@pytest.mark.frameworks
@pytest.mark.parametrize("tool", TOOLS)
def test_the_real_one_takes_any_name_and_writes_again_apart(tool: str, tmp_path: Path) -> None:
    if not find_spec(tool):
        pytest.skip(f"{tool} is not installed: make frameworks")
    make, runs = TOOLS[tool]
    names = ("lr (max)", "/lr", "a/../b", "..", "epoch=3")

    def odd(config: Config) -> Iterator[Any]:
        while True:
            yield {"loss": config["/lr"], **{f"{name}!": 1.0 for name in names}}

    def searched() -> Any:
        space = {name: Uniform(0, 1) for name in names}
        return search(odd, space, arms=2, budget=4, on_event=make(tmp_path, "odd"))

    searched()
    once = runs(tmp_path, "odd")
    searched()
    if tool == "tensorboard":  # the others have names of their own for each run
        assert len(list((tmp_path / "odd/arm-0000").iterdir())) == 1
        assert runs(tmp_path, "odd/2") == once
