"""The paper's protocol, §5: trials of many searches, each with its own journal.

In every trial the split, the order of the samples and the arms are drawn afresh. For every policy
there is one search for each budget of a doubling sequence, with counters at 0 again: "we do not
warm start upon doubling". Its error is that of its recommendation J_t on TEST, its wall-clock time
what training and looking took. Arms are trained one at a time, as in the paper; `together`, many
in one kernel.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from functools import cache, partial
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from signal import SIGTERM
from typing import Any, TypedDict

from lastarm.papers.jamieson2015.experiments import Experiment, InThePaper
from lastarm.papers.jamieson2015.parts import Settings, Stopped
from lastarm.papers.jamieson2015.searches import searched
from lastarm.runners import AnyRunner, Serial
from lastarm.signals import stop_on_signals
from lastarm.trainers import arm_seed


class Row(TypedDict):
    """One search: what it was allowed, what it spent, and what it found."""

    trial: int
    policy: str
    budget: int
    pulls: int
    observations: int
    train_seconds: float
    loss_seconds: float
    val_loss: float
    test_loss: float


def run(
    experiment: Experiment, settings: Settings, *, together: bool = False
) -> tuple[Any, list[Row]]:
    """The data, and all searches of all trials; those that are in journals are read there."""
    data = _data(experiment.load, settings.data, settings.quick)
    kind = f"{experiment.name}-{data.name}{'-together' * together}{'-quick' * settings.quick}"
    trials = settings.trials or experiment.trials
    one = partial(
        trial,
        experiment,
        settings.data,
        settings.quick,
        settings.seed,
        settings.journals / kind,
        together,
    )
    found: dict[int, list[Row]] = {}
    for number, rows in _performed(one, trials, settings.workers):
        found[number] = rows
        settings.progress(len(found), trials)
    return data, [row for number in range(trials) for row in found[number]]


def _performed(
    one: Callable[[int], list[Row]], trials: int, workers: int
) -> Iterator[tuple[int, list[Row]]]:
    if workers == 1:
        yield from ((number, one(number)) for number in range(trials))
        return
    with (
        stop_on_signals() as stop,
        ProcessPoolExecutor(workers, get_context("spawn"), _end_with_the_parent) as pool,
    ):
        numbers = {pool.submit(one, number): number for number in range(trials)}
        left = set(numbers)
        try:
            while left:
                done, left = wait(left, timeout=0.2, return_when=FIRST_COMPLETED)
                if stop():
                    raise Stopped(stop.signal or SIGTERM)
                yield from ((numbers[future], future.result()) for future in done)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in active_children():
                process.kill()  # what it was at is in its journal
            raise


def _end_with_the_parent() -> None:
    """A worker whose parent was killed would go on, and hold the journals."""
    parent = parent_process()
    assert parent

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def trial(
    experiment: Experiment,
    given: str | None,
    quick: bool,
    seed: int,
    journals: Path,
    together: bool,
    number: int,
) -> list[Row]:
    """All searches of one trial."""
    own_seed = arm_seed(seed, number)
    trainer: Any = experiment.problem(_data(experiment.load, given, quick), own_seed)
    _compile(trainer)
    folder = journals / f"trial-{number:03d}"
    runner: AnyRunner = None if together else partial(Serial, group=experiment.arms)
    rows: list[Row] = []
    for name, most in experiment.policies.items():
        for budget in (budget for budget in experiment.budgets if budget <= most):
            journal = folder / f"{name}-{budget}.jsonl"
            once = partial(
                searched,
                trainer,
                experiment.space,
                InThePaper(experiment.arms, budget, of=name, seed=own_seed),
                journal,
                seed=own_seed,
                runner=runner,
            )
            result = once()
            if result.spent.repeated:  # it was stopped, and its seconds are not those of a search
                journal.unlink()
                result = once()
            assert result.loss is not None
            assert result.test_loss is not None
            rows.append(
                Row(
                    trial=number,
                    policy=name,
                    budget=budget,
                    pulls=result.spent.pulls,
                    observations=result.spent.observations,
                    train_seconds=result.spent.train_seconds,
                    loss_seconds=result.spent.loss_seconds,
                    val_loss=result.loss,
                    test_loss=result.test_loss,
                )
            )
    return rows


@cache
def _data(load: Callable[..., Any], given: str | None, quick: bool) -> Any:
    return load(given, quick=quick)


def _compile(trainer: Any) -> None:
    """Have the kernels compiled before the first search is timed."""
    batch = trainer.start([{"lambda": 1.0, "gamma": 1.0, "rank": 2, "sigma": 1.0}], [0])
    trainer.train(batch, [0], 1)
    trainer.losses(batch, [0])
    trainer.tests(batch, [0])
