"""How every search of the reproduction is run: journalled, and ended by a signal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lastarm.batched import BatchedTrainer
from lastarm.papers.jamieson2015.parts import Stopped
from lastarm.policy import Policy
from lastarm.result import Result
from lastarm.runners import AnyRunner
from lastarm.searching import search
from lastarm.signals import stop_on_signals
from lastarm.space import Space


def searched(
    trainer: BatchedTrainer[Any, Any],
    space: Space,
    policy: Policy,
    journal: Path,
    *,
    seed: int = 0,
    runner: AnyRunner = None,
) -> Result:
    """Run a search to its end, or take up the one that is in the journal."""
    journal.parent.mkdir(parents=True, exist_ok=True)
    with stop_on_signals() as stop:
        result = search(
            trainer,
            space,
            policy=policy,
            runner=runner,
            seed=seed,
            journal=journal,
            checkpoints=False,  # at most a search of some seconds is trained again
            progress=False,
        )
    if stop.signal:
        raise Stopped(stop.signal)
    return result
