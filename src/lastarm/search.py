"""The front door: wiring only."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lastarm.errors import AllArmsFailed, InvalidArgument, whole_number
from lastarm.events import Closed, Event, Opened, Pull
from lastarm.journal import Journal, Unwritten
from lastarm.ledger import Ledger
from lastarm.loop import run
from lastarm.policy import Policy, describe, fresh
from lastarm.result import Result
from lastarm.runners import MakeRunner, Serial
from lastarm.signals import stop_on_signals
from lastarm.trainers import Config, Trainer, as_loss


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
    stopped, and a call with other arguments is refused. `on_event` sees every event as it counts.
    Ctrl-C or SIGTERM ends the search with the recommendation so far; a second one ends it at once.

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
    opened = Opened(
        seed=seed,
        policy=describe(policy),
        space={"configs": _digest(json.dumps(list(configs), sort_keys=True, default=repr))},
        trainer={"trainer": type(trainer).__qualname__, **_fingerprint(trainer)},
        versions={"lastarm": version("lastarm"), "python": platform.python_version()},
        command=tuple(sys.argv),
    )
    ledger = Ledger()

    def count(event: Event) -> None:
        ledger.add(event)
        if on_event:
            on_event(event)

    with (
        closing(Unwritten() if journal is None else Journal(journal, opened)) as notebook,
        closing(runner(trainer, configs, seed)) as hands,
        stop_on_signals() as stop,
    ):
        for event in run(policy, hands, notebook, retries=retries, stopping=stop):
            count(event)
        arm, complete = policy.recommendation, policy.finished
        if arm is None:
            if complete:
                raise AllArmsFailed(ledger.causes())
            state = None
        else:
            last = Pull(arm, upto=ledger.curves[arm][-1][0])
            ending = complete and not ledger.closed
            state = hands.state(last, retrain=ending)
            if ending:
                closed = Closed(arm, _test_loss(trainer, state))
                notebook.append(closed)
                notebook.sync()
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


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _fingerprint(trainer: Any) -> dict[str, Any]:
    return dict(trainer.fingerprint()) if hasattr(trainer, "fingerprint") else {}


def _test_loss(trainer: Any, state: Any) -> float | None:
    """Asked once; an error here must not cost the search its answer."""
    try:
        test_loss = trainer.test(state) if hasattr(trainer, "test") else None
        return None if test_loss is None else as_loss(test_loss)
    except Exception as error:
        warnings.warn(f"the test loss could not be computed: {error!r}", stacklevel=3)
        return None
