"""The front door: wiring only."""

from __future__ import annotations

import platform
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lastarm.canonical import fingerprint
from lastarm.errors import AllArmsFailed, InvalidArgument, whole_number
from lastarm.events import Closed, Event, Opened, Pull
from lastarm.journal import Journal, Unwritten
from lastarm.ledger import Ledger
from lastarm.loop import run
from lastarm.policy import Policy, describe, fresh
from lastarm.result import Result
from lastarm.runners import MakeRunner, Serial
from lastarm.signals import stop_on_signals
from lastarm.trainers import Config, Trainer, arm_seed, as_loss


def search(
    trainer: Trainer[Any],
    configs: Sequence[Config],
    *,
    policy: Policy,
    runner: MakeRunner = Serial,
    journal: str | Path | None = None,
    seed: int = 0,
    retries: int = 0,
    on_event: Callable[[Event], None] | None = None,
) -> Result:
    """Find the best of `configs`, training as many of them as far as the policy asks for.

    Arm i has `configs[i]`. With a `journal`, the same call resumes a search that was killed or
    stopped, and a call with other arguments is refused. `on_event` sees every event as it counts,
    on resuming also those of before. Ctrl-C or SIGTERM ends the search with the recommendation so
    far; a second one ends it at once.

    >>> from lastarm import RecordedCurves, SuccessiveHalving
    >>> curves = RecordedCurves([[0.9, 0.8, 0.8, 0.8], [0.9, 0.5, 0.3, 0.2], [0.7, 0.6, 0.6, 0.6]])
    >>> rows = [{"row": 0}, {"row": 1}, {"row": 2}]
    >>> result = search(curves, rows, policy=SuccessiveHalving(arms=3, budget=12))
    >>> result.config, result.loss, result.spent.pulls, result.complete
    ({'row': 1}, 0.2, 12, True)

    All arms failing is an error, `AllArmsFailed`, that lists the causes.
    """
    seed = whole_number("seed", seed, 0, "what all randomness is derived from")
    retries = whole_number("retries", retries, 0, "how often a failed pull is tried again")
    if len(configs) != policy.arms:
        raise InvalidArgument(
            f"there are {len(configs)} configs, but the policy is for arms={policy.arms}: "
            "give one config for each arm."
        )
    policy = fresh(policy)
    ledger = Ledger()

    def count(event: Event) -> None:
        ledger.add(event)
        if on_event:
            on_event(event)

    with (
        closing(_journal(journal, seed, policy, configs, trainer)) as written,
        closing(runner(trainer, configs, seed)) as running,
        stop_on_signals() as stop,
    ):
        for event in run(policy, running, written, retries=retries, stopping=stop):
            count(event)
        arm, complete, state = policy.recommendation, policy.finished, None
        if arm is None and complete:
            raise AllArmsFailed(ledger.causes())
        if arm is not None:
            last = Pull(arm, upto=ledger.curves[arm][-1][0])
            state = running.state(last)
            if complete and not ledger.closed:
                closed, state = _close(trainer, configs[arm], last, state, seed)
                written.append(closed)
                written.sync()
                count(closed)
    return Result(
        arm=arm,
        config=None if arm is None else configs[arm],
        loss=None if arm is None else ledger.curves[arm][-1][1],
        test_loss=ledger.closed.test_loss if ledger.closed else None,
        complete=complete,
        spent=ledger.spent,
        digest=ledger.digest(arm),
        curves=ledger.curves,
        failures=ledger.failures,
        state=state,
        stopped_by=stop.signal,
    )


def _journal(
    path: str | Path | None,
    seed: int,
    policy: Policy,
    configs: Sequence[Config],
    trainer: Trainer[Any],
) -> Journal | Unwritten:
    if path is None:
        return Unwritten()
    kind = {"kind": type(trainer).__qualname__}
    opened = Opened(
        seed=seed,
        policy=describe(policy),
        space={"configs": fingerprint(list(configs))},
        trainer=kind | (trainer.fingerprint() if hasattr(trainer, "fingerprint") else {}),
        versions={"lastarm": version("lastarm"), "python": platform.python_version()},
        command=tuple(sys.argv),
    )
    return Journal(path, opened)


def _close(trainer: Any, config: Config, last: Pull, state: Any, seed: int) -> tuple[Closed, Any]:
    """Test the recommended arm, once. An error here must not cost the search its answer."""
    if not hasattr(trainer, "test"):
        return Closed(last.arm), state
    trained = 0
    try:
        if state is None:  # lost in a crash
            trained = last.upto
            state = trainer.train(trainer.start(config, arm_seed(seed, last.arm)), trained)
        test_loss = trainer.test(state)
        test_loss = None if test_loss is None else as_loss(test_loss)
    except Exception as error:
        warnings.warn(f"the test loss could not be computed: {error!r}", stacklevel=3)
        test_loss = None
    return Closed(last.arm, test_loss, trained), state
