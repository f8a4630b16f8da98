"""How every search of the reproduction is run: journalled, and ended by a signal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lastarm.batched import BatchedTrainer, Single
from lastarm.papers.jamieson2015.parts import Stopped
from lastarm.policy import Policy
from lastarm.result import Result
from lastarm.runners import AnyRunner
from lastarm.search import search
from lastarm.space import Space


def searched(
    trainer: BatchedTrainer[Any, Any],
    space: Space,
    policy: Policy,
    journal: Path,
    *,
    seed: int = 0,
    runner: AnyRunner = "batched",
) -> Result:
    """Run a search to its end, or take up the one that is in the journal."""
    journal.parent.mkdir(parents=True, exist_ok=True)
    result = search(
        Single(trainer),
        space,
        policy=policy,
        runner=runner,
        seed=seed,
        journal=journal,
        checkpoints=False,  # at most a search of some seconds is trained again
        progress=False,
    )
    if result.stopped_by:
        raise Stopped(result.stopped_by)
    return result
