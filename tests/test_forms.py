"""The forms in which a trainer may come: functions, generators, programs; and the laws of all."""

import functools
import math
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import UserDict
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lastarm.errors import BadLoss
from lastarm.testing.trainers import CheckTrainer, trainer_checks
from lastarm.trainers.any_trainer import as_trainer
from lastarm.trainers.functions import Functions, NoState
from lastarm.trainers.generators import BadYield, Generated
from lastarm.trainers.losses import observation
from lastarm.trainers.maximized import Maximized
from lastarm.trainers.programs import Program, ProgramFailed
from lastarm.trainers.recorded import RecordedCurves
from tests.refusals import refused

RATE = {"rate": 0.25}


def trained(trainer: Any, config: Any, *steps: int, seed: int = 0) -> Any:
    state = trainer.start(config, seed)
    for pulls in steps:
        state = trainer.train(state, pulls)
    return state


def curve(trainer: Any, config: Any, *steps: int, seed: int = 0) -> list[Any]:
    state, losses = trainer.start(config, seed), []
    for pulls in steps:
        state = trainer.train(state, pulls)
        losses.append(trainer.loss(state))
    return losses


# What a look gives -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "kept"),
    [
        (True, True),
        (None, None),
        ("ok", "ok"),
        (np.bool_(True), True),
        (np.float32(0.5), 0.5),
        (np.array(7), 7),
        (Decimal("0.5"), 0.5),
        (Fraction(1, 4), 0.25),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (10**400, "inf"),
        (2**70, float(2**70)),
        ((1, [2.0, {"a": math.inf}]), [1, [2.0, {"a": "inf"}]]),
        ({1: {2: 3}}, {"1": {"2": 3}}),
        (np.array([1, 2]), "array([1, 2])"),
        (1 + 2j, "(1+2j)"),
        ([0] * 5000, "list of 5000"),
    ],
)
def test_a_metric_is_kept_as_json_can_hold_it(metric: object, kept: object) -> None:
    assert observation({"loss": 1, "metric": metric}) == (1.0, {"metric": kept})


def test_no_metric_is_an_error() -> None:
    class Hostile:
        ndim = 0

        def item(self) -> float:
            raise RuntimeError("no")

        def __repr__(self) -> str:
            raise RuntimeError("no")

    loss, metrics = observation({"loss": 0.5, "a": Hostile(), "c": {*range(999)}, Hostile(): 1})
    assert loss == 0.5
    assert metrics is not None
    assert metrics["a"] == "a Hostile that cannot be shown"
    assert all(isinstance(name, str) for name in metrics)
    assert len(metrics["c"]) == 200


def test_any_mapping_with_a_loss_is_valid_and_one_without_is_refused() -> None:
    assert observation(UserDict({"loss": np.float64(0.5)})) == (0.5, None)
    for value, kind in (({"accuracy": 1, 3: 4}, "dict"), ({}, "dict"), ({"loss": "0.5"}, "str")):
        with pytest.raises(BadLoss) as refusal:
            observation(value)
        assert refusal.value.kind == kind


# A pair of functions -----------------------------------------------------------------------------


def descend(config: dict[str, Any], state: Any, pulls: int) -> float:
    x = 1.0 if state is None else state
    for _ in range(pulls):
        x -= config["rate"] * 2 * x
    return x


def walk(config: dict[str, Any], state: Any, pulls: int, seed: int) -> list[Any]:
    random, x = state or (np.random.default_rng(seed), config.pop("from"))
    return [random, x + float(sum(random.normal() for _ in range(pulls)))]


def squared(state: float) -> float:
    return state * state


def test_a_function_is_given_the_state_that_it_returned() -> None:
    given: list[Any] = []

    def train(config: Any, state: Any, pulls: int) -> str:
        given.append((config, state, pulls))
        return f"{state} {pulls}"

    trainer = Functions(train, loss=len, test=lambda state: -len(state))
    state = trained(trainer, {"a": 1}, 2, 3)
    assert given == [({"a": 1}, None, 2), ({"a": 1}, "None 2", 3)]
    assert trainer.unwrap(state) == "None 2 3"
    assert (trainer.loss(state), trainer.test(state)) == (8, -8)
    assert not hasattr(Functions(train, len), "test")


def test_a_function_that_wants_a_seed_gets_the_arms_and_may_spoil_its_config() -> None:
    trainer = Functions(walk, loss=lambda state: state[1])
    config = {"from": 0.0}
    assert curve(trainer, config, 1, 1, seed=3) == curve(trainer, config, 1, 1, seed=3)
    assert curve(trainer, config, 1, seed=3) != curve(trainer, config, 1, seed=4)
    pinned = Functions(functools.partial(walk, seed=5), loss=lambda state: state[1])
    assert curve(pinned, config, 1, seed=3) == curve(pinned, config, 1, seed=4)


def test_a_function_that_returns_no_state_is_told_so() -> None:
    trainer = Functions(lambda config, state, pulls: None, loss=lambda state: 0.0)
    with pytest.raises(NoState) as refusal:
        trained(trainer, {}, 1)
    assert refusal.value.function.endswith("<lambda>")


def test_functions_that_cannot_be_called_are_refused_at_once() -> None:
    with refused("train", squared):
        Functions(squared, squared)
    losses: list[Any] = [descend, 0.5]
    for loss in losses:
        with refused("loss", loss):
            Functions(descend, loss)


def test_functions_are_remembered_by_name() -> None:
    trainer = Functions(functools.partial(descend), squared)
    assert trainer.fingerprint() == {
        "train": f"{__name__}.descend",
        "loss": f"{__name__}.squared",
    }
    assert "test" in Functions(descend, squared, squared).fingerprint()


# A generator -------------------------------------------------------------------------------------


def descent(config: dict[str, Any]) -> Iterator[float]:
    x = 1.0
    while True:
        x -= config["rate"] * 2 * x
        yield x * x


def resumable(config: dict[str, Any], seed: int, resume: Any = None) -> Iterator[Any]:
    """Changes its state in place, and computes its loss only when that is looked at."""
    state = resume or {"random": np.random.default_rng(seed), "x": config["rate"], "epoch": 0}
    while state["epoch"] < 6:
        state["x"] += state["random"].normal()
        state["epoch"] += 1
        yield (lambda: {"loss": state["x"], "epoch": state["epoch"]}), state


def test_a_generator_goes_on_once_a_pull() -> None:
    assert curve(Generated(descent), RATE, 1, 2) == [0.25, 0.015625]


def test_a_loss_is_computed_only_when_it_is_looked_at_and_then_once() -> None:
    looks: list[int] = []

    def look(epoch: int) -> int:
        looks.append(epoch)
        return epoch

    def counted(config: Any) -> Iterator[Any]:
        for epoch in range(100):
            yield functools.partial(look, epoch)

    trainer = Generated(counted)
    state = trained(trainer, {}, 10)
    assert looks == []
    assert [trainer.loss(state), trainer.loss(state)] == [9, 9]
    assert looks == [9]


def test_a_look_that_raises_can_be_tried_again() -> None:
    tries: list[int] = []

    def look() -> int:
        tries.append(1)
        return 1 // (len(tries) - 1)

    trainer = Generated(lambda config: iter([look]))
    state = trained(trainer, {}, 1)
    with pytest.raises(ZeroDivisionError):
        trainer.loss(state)
    assert trainer.loss(state) == 1


def test_a_generator_that_ends_keeps_its_last_loss() -> None:
    def short(config: Any) -> Iterator[float]:
        yield 0.5
        yield 0.25

    assert curve(Generated(short), {}, 1, 5, 100) == [0.5, 0.25, 0.25]
    assert curve(Generated(short), {}, 7) == [0.25]


def test_a_generator_that_yields_nothing_has_no_loss() -> None:
    def empty(config: Any) -> Iterator[float]:
        yield from ()

    with pytest.raises(BadYield) as refusal:
        trained(Generated(empty), {}, 1)
    assert refusal.value.function.endswith("empty")


def test_what_a_generator_raises_is_its_own_error() -> None:
    def raising(config: Any) -> Iterator[float]:
        yield 0.5
        raise RuntimeError("diverged")

    with pytest.raises(RuntimeError, match="diverged"):
        trained(Generated(raising), {}, 2)


def test_a_generator_lives_in_its_process_unless_it_can_resume() -> None:
    with pytest.raises(TypeError, match="`resume`"):
        pickle.dumps(trained(Generated(descent), RATE, 1))


@pytest.mark.parametrize("looked", [True, False])
def test_a_generator_that_can_resume_does_so_at_any_level(looked: bool) -> None:
    trainer, levels = Generated(resumable), range(1, 10)
    whole = curve(trainer, RATE, *[1] * 9)
    assert whole[5] == whole[8] != whole[4]
    for level in levels:
        state = trained(trainer, RATE, level)
        if looked:
            trainer.loss(state)
        saved = pickle.dumps(state)
        trainer.train(state, 2)  # which changes the state in place
        resumed = pickle.loads(saved)
        other = Generated(resumable)
        assert other.loss(resumed) == whole[level - 1]
        assert [other.loss(other.train(resumed, 1)) for _ in range(level, 9)] == whole[level:]


def test_at_first_a_default_of_resume_is_what_it_begins_with() -> None:
    def counting(config: Any, resume: int = 7) -> Iterator[Any]:
        while True:
            resume += 1
            yield resume, resume

    trainer = Generated(counting)
    state = pickle.loads(pickle.dumps(trained(trainer, {}, 2)))
    assert trainer.loss(state) == 9
    assert trainer.loss(trainer.train(state, 1)) == 10


def test_one_that_stopped_by_itself_is_not_started_again() -> None:
    def stops(config: Any, resume: Any) -> Iterator[Any]:
        assert resume is None, "it had ended"
        yield 0.5, "state"

    trainer = Generated(stops)
    state = pickle.loads(pickle.dumps(trained(trainer, {}, 2)))
    assert trainer.loss(trainer.train(state, 3)) == 0.5


@pytest.mark.parametrize("yielded", [0.5, (0.5, None), (1, 2, 3)])
def test_one_that_can_resume_yields_the_state_to_resume_from(yielded: object) -> None:
    def forgetful(config: Any, resume: Any) -> Iterator[Any]:
        yield yielded

    with pytest.raises(BadYield):
        trained(Generated(forgetful), {}, 1)


def test_the_state_beside_a_loss_is_what_is_tested_and_given_back() -> None:
    def modelling(config: Any) -> Iterator[Any]:
        yield 0.5, "model"

    trainer = Generated(modelling, test=len)
    state = trained(trainer, {}, 1)
    assert (trainer.loss(state), trainer.test(state), trainer.unwrap(state)) == (0.5, 5, "model")
    assert not hasattr(Generated(modelling), "test")
    with pytest.raises(BadYield):
        Generated(descent, test=len).test(trained(Generated(descent), RATE, 1))


def test_generator_functions_with_other_parameters_are_refused_at_once() -> None:
    def with_data(config: Any, data: Any) -> Iterator[float]:
        yield 0.5

    with refused("function", with_data):
        Generated(with_data)
    assert curve(Generated(functools.partial(with_data, data=1)), {}, 1) == [0.5]


# A program ---------------------------------------------------------------------------------------


def program(code: str, *arguments: str) -> Program:
    return Program([sys.executable, "-c", code.replace("{", "{{").replace("}", "}}"), *arguments])


def failing(code: str, *arguments: str) -> ProgramFailed:
    trainer = program(code, *arguments)
    with pytest.raises(ProgramFailed) as caught:
        trained(trainer, {}, 1)
    return caught.value


COUNTING = """
import pathlib, sys
count = pathlib.Path(sys.argv[1], "count")
done = int(count.read_text()) if count.exists() else 0
done += int(sys.argv[2])
assert done == int(sys.argv[3])
count.write_text(str(done))
if sys.argv[4:] == ["fail"]:
    sys.exit(3)
print("training ...")
print(1 / done)
"""


def counting() -> Program:
    return program(COUNTING, "{state}", "{pulls}", "{upto}")


def test_a_program_finds_in_its_folder_what_it_left_there() -> None:
    trainer = counting()
    assert curve(trainer, {}, 1, 3, 4) == [1.0, 0.25, 0.125]
    state = trained(trainer, {}, 5)
    assert Path(state, "count").read_text() == "5"
    assert repr(state) == f"ArmFolder({str(state.path)!r}, pulls=5)"


def test_a_failed_attempt_leaves_the_folder_as_it_was() -> None:
    trainer = program(COUNTING, "{state}", "{pulls}", "{upto}", "{how}")
    state = trained(trainer, {"how": "well"}, 2)
    state.values["how"] = "fail"
    with pytest.raises(ProgramFailed) as failure:
        trainer.train(state, 1)
    assert failure.value.code == 3
    assert Path(state, "count").read_text() == "2"
    assert trainer.loss(state) == 0.5
    state.values["how"] = "well"
    assert trainer.loss(trainer.train(state, 2)) == 0.25


def test_an_arms_folders_are_gone_when_it_is() -> None:
    trainer = counting()
    first = trained(trainer, {}, 1)
    second = trainer.train(first, 1)
    paths = first.path.parent, second.path.parent
    assert all(path.exists() for path in paths)
    del first
    assert [path.exists() for path in paths] == [False, True]
    del second
    assert not paths[1].exists()


def test_a_saved_folder_is_the_same_bytes_every_time(tmp_path: Path) -> None:
    trainer = counting()
    state = trained(trainer, {}, 3)
    trainer.save(state, tmp_path / "one")
    trainer.save(state, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    loaded = pickle.loads(pickle.dumps(trainer)).load(tmp_path / "one")
    assert trainer.loss(loaded) == 1 / 3
    assert trainer.loss(trainer.train(loaded, 1)) == 0.25
    trainer.save(loaded, tmp_path / "three")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "three").read_bytes()
    with pytest.raises(TypeError, match=r"Program\.save"):
        pickle.dumps(state)


@pytest.mark.skipif(not shutil.which("sh"), reason="needs a shell")
def test_a_shell_script_is_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "train"
    script.write_text('#!/bin/sh\necho "$1" >> "$3/rates"\necho "0.$2"\n')
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    trainer = Program(["./train", "{rate}", "{upto}", "{state}"], names=["rate"])
    state = trained(trainer, RATE, 1, 4)
    assert trainer.loss(state) == 0.5
    assert Path(state, "rates").read_text() == "0.25\n0.25\n"
    assert trainer.fingerprint() == {"argv": ["./train", "{rate}", "{upto}", "{state}"]}


def test_arguments_arrive_as_they_are() -> None:
    awkward = {
        "text": "two words; $(touch x) `y` > z | * \"quoted\" 'too' \\ \n {rate}",
        "rate": np.float64(0.1),
        "single": np.float32(0.5),
        "tiny": 1e-300,
        "whole": np.int64(7),
        "flag": True,
        "nothing": "",
    }
    trainer = program(
        "import sys, json; print(json.dumps({'loss': 1, 'got': sys.argv[1:]}))",
        *("{text}", "{rate}", "x={single},{tiny}", "{whole}", "{flag}", "{nothing}", "{{rate}}"),
        "{seed}",
    )
    _, metrics = observation(trainer.loss(trained(trainer, awkward, 1, seed=9)))
    assert metrics is not None
    assert metrics["got"] == [
        *(awkward["text"], "0.1", "x=0.5,1e-300", "7", "True", "", "{rate}", "9"),
    ]


@pytest.mark.parametrize(
    ("printed", "loss", "metrics"),
    [
        ("0.5", 0.5, None),
        ("epoch 1\\n0.5\\n\\n  \\n", 0.5, None),
        ("0.9\\r0.5\\r\\n", 0.5, None),
        ("-inf", -math.inf, None),
        ('{"loss": 2, "accuracy": 0.5, "note": "é"}', 2.0, {"accuracy": 0.5, "note": "é"}),
        ('{"loss": 1, "x": Infinity}', 1.0, {"x": "inf"}),
    ],
)
def test_the_last_line_is_the_loss(printed: str, loss: float, metrics: object) -> None:
    trainer = program(f"import sys; sys.stdout.buffer.write('''{printed}'''.encode())")
    assert observation(trainer.loss(trained(trainer, {}, 1))) == (loss, metrics)


def test_a_program_may_print_nan() -> None:
    trainer = program("print('nan')")
    assert math.isnan(trainer.loss(trained(trainer, {}, 1)))


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("", "empty"),
        ("print(0.5); print('done')", "'done'"),
        ("print('[0.5]')", "'[0.5]'"),
        ("print('true')", "'true'"),
        ("print('[' * 50_000)", "'[[["),
        ("print('x' * 10**6)", f"'{'x' * 200}'"),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\xfe')", "'��'"),
    ],
)
def test_a_program_that_prints_no_loss_has_failed(code: str, shown: str) -> None:
    error = failing(code)
    assert error.code == 0
    assert shown in str(error)


def test_a_loss_in_json_must_be_a_number() -> None:
    for code in ("print('{\"loss\": null}')", "print('{\"accuracy\": 1}')"):
        with pytest.raises(BadLoss):
            trained(program(code), {}, 1)


def test_a_program_that_exits_badly_has_failed_and_its_standard_error_is_kept() -> None:
    error = failing(
        "import sys; print(0.5); print('x' * 100_000, file=sys.stderr);"
        "print('no GPU', file=sys.stderr); sys.stderr.buffer.write(b'\\n\\xff!\\n'); sys.exit(3)"
    )
    assert error.code == 3
    assert str(error).endswith(": �!")
    shown = "".join(traceback.format_exception(error))
    assert "no GPU\n" in shown
    assert "The command: " in shown
    assert 65_000 < len(shown) < 70_000


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_a_program_that_dies_by_a_signal_has_failed() -> None:
    code = "import os, signal; print(0.5, flush=True); os.kill(os.getpid(), signal.SIG{})"
    for name in ("SIGKILL", "SIGSEGV"):
        error = failing(code.format(name[3:]))
        assert error.code == -signal.Signals[name]
        assert name in str(error)


@pytest.mark.skipif(sys.platform != "linux", reason="uses a signal without a name")
def test_a_signal_without_a_name_has_a_number() -> None:
    error = failing("import os; os.kill(os.getpid(), 40)")
    assert error.code == -40
    assert "40" in str(error)


def test_a_program_may_print_any_amount() -> None:
    trainer = program(
        "import sys\n"
        "for _ in range(50): sys.stdout.write('x' * 10**6); sys.stderr.write('y\\n' * 10**5)\n"
        "print(); print(0.5)"
    )
    assert curve(trainer, {}, 1) == [0.5]


def test_a_program_has_nothing_to_read() -> None:
    assert curve(program("import sys; print(len(sys.stdin.read()))"), {}, 1) == [0.0]


@pytest.mark.parametrize(
    ("argv", "names", "given"),
    [
        ([], None, []),
        ("./train {rate}", None, "./train {rate}"),
        ([sys.executable, 3], None, [sys.executable, 3]),
        (["no-such-program"], None, ["no-such-program"]),
        (["./no-such-program", "{rate}"], None, ["./no-such-program", "{rate}"]),
        ([sys.executable, "{rats}"], ["rate"], [sys.executable, "{rats}"]),
        ([sys.executable, "{}"], ["rate"], [sys.executable, "{}"]),
        ([sys.executable, "{rate:.3f}"], None, "{rate:.3f}"),
        ([sys.executable, "{rate!r}"], None, "{rate!r}"),
        ([sys.executable, "{rate"], None, "{rate"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_at_once(
    argv: Any, names: list[str] | None, given: Any
) -> None:
    with refused("argv", given):
        Program(argv, names)


def test_a_parameter_cannot_have_the_name_of_a_placeholder() -> None:
    with refused("seed", ["seed"]):
        Program([sys.executable], ["seed"])
    with refused("upto", {"upto": 1}):
        Program([sys.executable]).start({"upto": 1}, 0)


def test_without_names_an_unknown_placeholder_is_refused_when_an_arm_begins() -> None:
    trainer = Program([sys.executable, "{rats}"])
    with refused("argv", trainer.argv):
        trainer.start(RATE, 0)


PRINTS_ITS_WORDS = "import json, sys; print(json.dumps(dict(loss=1, a=sys.argv[1:])))"
ECHO = [sys.executable, "-c", PRINTS_ITS_WORDS]


@pytest.mark.parametrize(
    ("words", "without", "having"),
    [
        (["--C={C?}", "x"], ["x"], ["--C=2", "x"]),
        (["--C", "{C?}", "x"], ["x"], ["--C", "2", "x"]),
        (["-C", "{C?}"], [], ["-C", "2"]),
        (["--verbose", "{C?}"], ["--verbose"], ["--verbose", "2"]),
        (["--rate", "{rate}{C?}"], ["--rate"], ["--rate", "0.52"]),
        (["{C?}"], [], ["2"]),
    ],
)
def test_an_argument_is_left_out_where_the_config_has_no_such_value(
    words: list[str], without: list[str], having: list[str]
) -> None:
    trainer = Program([*ECHO, *words], names=["rate", "C"])
    for config, seen in ({"rate": 0.5}, without), ({"rate": 0.5, "C": 2}, having):
        assert trainer.loss(trainer.train(trainer.start(config, 0), 1))["a"] == seen


def test_an_option_with_a_dash_is_left_out_with_its_value() -> None:
    trainer = Program([*ECHO, "--max-depth", "{max_depth?}"], names=["max_depth"])
    assert trainer.loss(trainer.train(trainer.start({}, 0), 1))["a"] == []


def test_a_program_cannot_be_left_out_nor_a_name_that_no_config_has() -> None:
    with refused("argv", ["{C?}"]):
        Program(["{C?}"], ["C"])
    with refused("argv", [*ECHO, "{D?}"]):
        Program([*ECHO, "{D?}"], ["C"])


def running(pid: int) -> bool:
    """Whether it runs: an orphan that has ended may wait for an init that never asks."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def until(what: Callable[[], Any], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.01)
    return False


def sleeping(path: Path) -> str:
    return (
        "import os, sys, time\n"
        f"with open({str(path) + '.new'!r}, 'w') as file: file.write(str(os.getpid()))\n"
        f"os.rename({str(path) + '.new'!r}, {str(path)!r})\n"
        "time.sleep(600)"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("runner", ["serial", "processes"])
def test_a_program_and_what_it_started_do_not_outlive_us(tmp_path: Path, runner: str) -> None:
    own, childs = tmp_path / "own", tmp_path / "child"
    program = (
        "import subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', {sleeping(childs)!r}])\n"
        f"{sleeping(own)}"
    )
    ours = (
        "import sys\n"
        "from lastarm import UniformAllocation, search\n"
        "from lastarm.trainers.programs import Program\n"
        f"trainer = Program([sys.executable, '-c', {program!r}])\n"
        f"search(trainer, {{'x': [1]}}, policy=UniformAllocation(1, 1), runner={runner!r})"
    )
    search_ = subprocess.Popen(
        [sys.executable, "-c", ours], env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    try:
        assert until(lambda: own.exists() and childs.exists(), 30)
        started = [int(file.read_text()) for file in (own, childs)]
        stat = Path(f"/proc/{started[0]}/stat").read_text()
        worker = int(stat.rpartition(")")[2].split()[1])
        assert (worker == search_.pid) == (runner == "serial")
        assert all(map(running, started))
    finally:
        search_.kill()
        if runner == "processes":
            os.kill(worker, signal.SIGKILL)
        search_.wait()
    assert until(lambda: not any(map(running, [worker, *started])), 30)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_an_interrupted_program_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    inner = sleeping(pid_file)
    trainer = program(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])")

    def interrupt() -> None:
        until(pid_file.exists, 30)
        os.kill(os.getpid(), signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        trained(trainer, {}, 1)
    interrupter.join()
    assert until(lambda: not running(int(pid_file.read_text())), 2)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_what_a_program_leaves_behind_does_not_change_its_folder_later(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    trainer = program(
        "import os, subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {sleeping(pid_file)!r}])\n"
        f"while not os.path.exists({str(pid_file)!r}): time.sleep(0.01)\n"
        "print(0.5)"
    )
    assert curve(trainer, {}, 1) == [0.5]
    assert until(lambda: not running(int(pid_file.read_text())), 2)


# Higher is better --------------------------------------------------------------------------------


def test_only_the_sign_changes() -> None:
    class Scored:
        restores = True

        def start(self, config: Any, seed: int) -> Any:
            return config

        def train(self, state: Any, pulls: int) -> Any:
            return state

        def loss(self, state: Any) -> Any:
            return state

    trainer = Maximized(Scored())
    assert trainer.loss({"loss": Decimal(2), "other": math.inf}) == {"loss": -2, "other": math.inf}
    assert trainer.loss(-math.inf) == math.inf
    assert str(trainer.loss(0.0)) == "0.0"
    assert trainer.restores
    assert trainer.fingerprint() == {"maximized": Scored.__qualname__}
    for absent in ("test", "save", "load", "unwrap"):
        assert not hasattr(trainer, absent)
    with pytest.raises(BadLoss):
        trainer.loss("high")


def test_what_the_trainer_can_do_is_passed_on_also_in_another_process() -> None:
    curves = RecordedCurves([[0.5, 0.25]], test=[0.75])
    trainer = pickle.loads(pickle.dumps(Maximized(curves)))
    assert trainer.test(trained(trainer, {"row": 0}, 1)) == -0.75
    assert trainer.fingerprint() == {"maximized": "RecordedCurves", **curves.fingerprint()}
    functions = Maximized(Functions(descend, squared))
    assert functions.unwrap(trained(functions, RATE, 1)) == 0.5
    untested = Maximized(Functions(descend, squared, test=lambda state: None))
    assert untested.test(trained(untested, RATE, 1)) is None


# What is taken for a trainer ---------------------------------------------------------------------


class Halving:
    def start(self, config: Any, seed: int) -> float:
        return 1.0

    def train(self, state: float, pulls: int) -> float:
        return float(state / 2**pulls)

    def loss(self, state: float) -> float:
        return state


class Descent:
    def __call__(self, config: dict[str, Any]) -> Iterator[float]:
        yield from descent(config)


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        return function(*arguments)

    return wrapper


@pytest.mark.parametrize(
    "given",
    [
        Halving(),
        Halving,
        descent,
        functools.partial(descent),
        Descent(),
        logged(descent),
        (descend, squared),
        [descend, squared, squared],
    ],
)
def test_a_trainer_may_come_in_many_forms(given: Any) -> None:
    assert curve(as_trainer(given), RATE, 2, 2) in ([0.25, 0.0625], [0.0625, 0.00390625])
    assert as_trainer(curves := RecordedCurves([[0.5]])) is curves


@pytest.mark.parametrize(
    ("given", "way_out"),
    [
        (lambda config: 0.5, "`yield`"),
        (functools.partial(descend, {}), "`yield`"),
        (SimpleNamespace(fit=len), "Estimator(model, X, y)"),
        (descent(RATE), "the generator function"),
        (RecordedCurves, "an instance"),
        (Descent, "start(config, seed)"),
        (0.5, "start(config, seed)"),
        ((descend,), "start(config, seed)"),
    ],
)
def test_anything_else_is_refused_with_the_way_out(given: Any, way_out: str) -> None:
    with refused("trainer", given) as refusal:
        as_trainer(given)
    assert way_out in str(refusal.value)


def test_a_pair_of_which_one_is_not_a_function_is_refused() -> None:
    pair: Any = (descend, 0.5)
    with refused("loss", 0.5):
        as_trainer(pair)


# The laws ----------------------------------------------------------------------------------------

FORMS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "functions": (lambda: Functions(descend, squared), RATE),
    "functions with a seed": (lambda: Functions(walk, lambda state: state[1]), {"from": 0.0}),
    "generator that can resume": (lambda: Generated(resumable), RATE),
    "program": (counting, {}),
    "maximized": (lambda: Maximized(Generated(resumable, test=len)), RATE),
}


@pytest.mark.parametrize("check", trainer_checks(), ids=lambda check: check.__name__)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_obeys_the_laws(form: str, check: CheckTrainer) -> None:
    check(*FORMS[form])


@pytest.mark.parametrize("check", trainer_checks(saves=False), ids=lambda check: check.__name__)
def test_a_generator_obeys_those_laws_that_hold_in_one_process(check: CheckTrainer) -> None:
    check(lambda: Generated(descent), RATE)


class Planted(Halving):
    """A trainer that obeys the laws, to be spoilt in one way each."""

    def start(self, config: Any, seed: int) -> Any:
        return [1.0, np.random.default_rng(seed)]

    def train(self, state: Any, pulls: int) -> Any:
        for _ in range(pulls):
            state[0] += state[1].normal()
        return state

    def loss(self, state: Any) -> Any:
        return state[0]


class CountsCalls(Planted):
    def train(self, state: Any, pulls: int) -> Any:
        return super().train(state, pulls + 1)


class RestartsAtEveryCall(Planted):
    def train(self, state: Any, pulls: int) -> Any:
        return super().train(self.start({}, 0), pulls)


class LooksWithItsOwnDice(Planted):
    def loss(self, state: Any) -> Any:
        return state[0] + 0 * state[1].normal()


class LooksOnceOnly(Planted):
    def loss(self, state: Any) -> Any:
        return state.pop(0)


class ChangesWhenTested(Planted):
    def test(self, state: Any) -> float:
        state[0] += 1
        return 0.0


class ForgetsItsSeed(Planted):
    def start(self, config: Any, seed: int) -> Any:
        return [1.0, np.random.default_rng()]


class SharesItsDice(Planted):
    dice = np.random.default_rng(0)

    def start(self, config: Any, seed: int) -> Any:
        return [1.0, self.dice]


class SavesHalf(Planted):
    def save(self, state: Any, path: Path) -> None:
        path.write_text(str(state[0]))

    def load(self, path: Path) -> Any:
        return [float(path.read_text()), np.random.default_rng(0)]


class SavesRoundly(Planted):
    def save(self, state: Any, path: Path) -> None:
        path.write_bytes(pickle.dumps([round(state[0], 3), state[1]]))

    def load(self, path: Path) -> Any:
        return pickle.loads(path.read_bytes())


class CannotBeSaved(Planted):
    def start(self, config: Any, seed: int) -> Any:
        return [*super().start(config, seed), lambda: None]


class SaysItInWords(Planted):
    def loss(self, state: Any) -> Any:
        return f"{state[0]}"


class SavesOnlyToLook(SavesHalf):
    """Obeys the laws, too: it says that its copies cannot be trained."""

    def continues(self, state: Any) -> bool:
        return False


class RemembersItsArms(SavesOnlyToLook):
    """What is trained from zero by another is not what this one has trained."""

    trainers = 0

    def __init__(self) -> None:
        RemembersItsArms.trainers += 1
        self.number = RemembersItsArms.trainers

    def start(self, config: Any, seed: int) -> Any:
        return [1.0, np.random.default_rng(seed + self.number)]


class MayContinue(Planted):
    def continues(self, state: Any) -> Any:
        return "1 time in 2"


class WeighsNothing(Planted):
    def size(self, state: Any) -> int:
        return 0


class Ends(Planted):
    """An arm ends after three pulls. It says so, and obeys the laws."""

    def start(self, config: Any, seed: int) -> Any:
        return [*super().start(config, seed), 0]

    def train(self, state: Any, pulls: int) -> Any:
        for _ in range(pulls):
            state[2] += 1
            if state[2] <= 3:
                state[0] += state[1].normal()
        return state

    def finished(self, state: Any) -> bool:
        return bool(state[2] >= 3)


class EndsTooSoon(Ends):
    def finished(self, state: Any) -> bool:
        return bool(state[2] >= 2)


class ComesBack(Ends):
    def train(self, state: Any, pulls: int) -> Any:
        state = super().train(state, pulls)
        if state[2] > 8:
            state[0] += 1
        return state


class ChangesItsMind(Ends):
    def finished(self, state: Any) -> bool:
        return bool(3 <= state[2] < 8)


class ForgetsThatItEnded(Ends):
    def save(self, state: Any, path: Path) -> None:
        path.write_bytes(pickle.dumps([*state[:2], 0]))

    def load(self, path: Path) -> Any:
        return pickle.loads(path.read_bytes())


class EndsWhenAsked(Planted):
    """Its arms end because they were asked, not at a level."""

    def finished(self, state: Any) -> bool:
        if len(state) == 2:
            state.append("asked")
        return True

    def train(self, state: Any, pulls: int) -> Any:
        return state if len(state) > 2 else super().train(state, pulls)


def law(name: str) -> CheckTrainer:
    (found,) = [check for check in trainer_checks() if name in check.__name__]
    return found


@pytest.mark.parametrize("check", trainer_checks(), ids=lambda check: check.__name__)
def test_the_trainers_that_are_spoilt_below_obey_the_laws(check: CheckTrainer) -> None:
    check(Planted, {})
    check(SavesOnlyToLook, {})
    check(Ends, {})


@pytest.mark.parametrize(
    ("make", "broken"),
    [
        (CountsCalls, "a_plus_b"),
        (RestartsAtEveryCall, "a_plus_b"),
        (LooksWithItsOwnDice, "looking"),
        (ChangesWhenTested, "looking"),
        (ForgetsItsSeed, "same_seed"),
        (SharesItsDice, "same_seed"),
        (SavesHalf, "saved"),
        (SavesRoundly, "saved"),
        (CannotBeSaved, "saved"),
        (RemembersItsArms, "saved"),
        (MayContinue, "says"),
        (WeighsNothing, "says"),
        (EndsTooSoon, "finished"),
        (ComesBack, "finished"),
        (ChangesItsMind, "finished"),
        (ForgetsThatItEnded, "finished"),
        (EndsWhenAsked, "finished"),
    ],
)
def test_a_law_catches_the_trainer_that_breaks_it(make: Callable[[], Any], broken: str) -> None:
    with pytest.raises(AssertionError, match=r"\d|pickled"):  # it shows the losses, or the cause
        law(broken)(make, {})


def test_a_look_that_is_not_a_number_or_spoils_the_state_is_caught_too() -> None:
    with pytest.raises(BadLoss):
        law("number")(SaysItInWords, {})
    with pytest.raises((BadLoss, IndexError)):
        law("looking")(LooksOnceOnly, {})


def test_laws_may_be_obeyed_to_within_a_tolerance() -> None:
    (loosely,) = [check for check in trainer_checks(relative=0.01) if "saved" in check.__name__]
    loosely(SavesRoundly, {})
    assert len(trainer_checks(saves=False)) == len(trainer_checks()) - 1
