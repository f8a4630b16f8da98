"""DEHB: Hyperband whose configs come from differential evolution."""

from __future__ import annotations

import tempfile
from typing import Any

from dehb import DEHB
from loguru import logger

from arena.contenders.config_spaces import config_space
from arena.desk import Desk


def dehb(desk: Desk) -> None:
    """As it comes, with eta 3 and fidelities from one epoch to all of them."""
    logger.remove()
    with tempfile.TemporaryDirectory() as folder:
        asked: Any = DEHB(
            cs=config_space(desk.problem.space, desk.seed),
            min_fidelity=1,
            max_fidelity=desk.problem.max_pulls,
            eta=3,
            n_workers=1,
            seed=desk.seed,
            output_path=folder,
            log_level="ERROR",
        )
        while True:
            job = asked.ask()
            loss = desk.look(dict(job["config"]), round(job["fidelity"]))
            asked.tell(job, {"fitness": loss, "cost": job["fidelity"]})
