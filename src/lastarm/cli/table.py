"""A table of recorded curves, as the command plays on it."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lastarm.arguments import whole_number
from lastarm.cli.options import policy_of
from lastarm.errors import InvalidArgument
from lastarm.events import Event, Loss, Pull
from lastarm.policies import ASHA
from lastarm.policies.named import name_of, takes
from lastarm.policies.parts.budgeted import Budgeted
from lastarm.result import Result
from lastarm.runners import Arms, Serial
from lastarm.searching import search
from lastarm.space import Configs
from lastarm.trainers import RecordedCurves
from lastarm.trainers.recorded import Position

GROUP = 256  # a recorded pull takes no time, so many share one wait for the disk


class Played(NamedTuple):
    """What a policy found, and which row of the file each arm was."""

    result: Result
    rows: list[int]

    @property
    def row(self) -> int | None:
        """The recommended row."""
        return None if self.result.arm is None else self.rows[self.result.arm]


class Places(Serial):
    """A runner for rows of a table, whose states need not be kept: each is a place in a row.

    `reached` says how far the arms are known to be.
    """

    def __init__(self, arms: Arms, reached: dict[int, int], *, group: int) -> None:
        super().__init__(arms, group=group)
        self._reached = reached

    def start(self, pull: Pull, attempt: int) -> None:
        """Go on from there, also if that was before a crash or in an earlier stretch."""
        if pull.arm in self._reached:
            known = Pull(pull.arm, self._reached[pull.arm])
            self._states.put_back(known, self.state(known))
        super().start(pull, attempt)

    def state(self, pull: Pull) -> Position:
        """It is always at hand."""
        return Position(self._arms.configs[pull.arm]["row"], pull.upto)


class Table:
    """Recorded curves, and the rows of them that are arms: all, or so many drawn by the seed."""

    def __init__(self, file: str, arms: Any, seed: Any, seconds_per_pull: float = 0.0) -> None:
        self.curves = RecordedCurves.load(file, seconds_per_pull=seconds_per_pull)
        self.seed = whole_number("seed", seed, 0, "what all randomness is derived from")
        rows, self.columns = self.curves.losses.shape
        self.rows = list(range(rows))
        if arms is not None:
            arms = whole_number("arms", arms, 1, "how many rows to draw")
            if arms > rows:
                raise InvalidArgument(
                    f"arms={arms} will not do: the table has {rows} rows. Draw at most {rows}."
                )
            drawn = np.random.default_rng(self.seed).choice(rows, arms, replace=False)
            self.rows = sorted(drawn.tolist())

    def policy(self, name: str | None, **options: Any) -> Budgeted:
        """A policy for this table: its longest curve and its seed are known."""
        name = name_of(name, options.get("max_pulls"))
        if takes(name, "max_pulls") and options.get("max_pulls") is None:
            options["max_pulls"] = self.columns
        if takes(name, "seed"):
            options["seed"] = self.seed
        return policy_of(name, arms=len(self.rows), **options)

    def play(self, policy: Budgeted, journal: str | None = None) -> Played:
        """Play a policy to its end, or until it is stopped."""
        rows = self.rows
        asynchronous = isinstance(policy, ASHA)
        if asynchronous:  # it begins arms one by one, so the file's order must not matter
            rows = np.random.default_rng(self.seed).permutation(rows).tolist()
        group = 1 if asynchronous or self.curves.seconds_per_pull else GROUP
        reached: dict[int, int] = {}

        def note(event: Event) -> None:
            if isinstance(event, Loss):
                reached[event.pull.arm] = event.pull.upto

        result = search(
            self.curves,
            Configs([{"row": row} for row in rows]),
            policy=policy,
            runner=partial(Places, reached=reached, group=group),
            journal=journal,
            checkpoints=False,
            seed=self.seed,
            on_event=note,
        )
        return Played(result, rows)
