"""What a trainer is: how one arm is begun, trained further, and looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import numpy as np

Config = Mapping[str, Any]
State = TypeVar("State")


class Trainer(Protocol[State]):
    """Three functions; the state that goes between them is the trainer's own affair.

    Training a + b pulls must be training a, then b, and nothing may depend on anything but the
    arguments. `train` may change the state it is given, as long as it returns the one to go on
    with. Optional:

    - `test(state) → float`, asked once, of the recommended arm;
    - `fingerprint() → dict`, what a journal should remember of the data, so that resuming with
      other data is refused;
    - `save(state, path)` and `load(path) → state`, for states that pickle does not carry well;
    - `unwrap(state)`, what of the state is the user's own, for the result;
    - `restores = True`, if a `train` that raises leaves the state it was given as it was;
    - `starts_processes = True`, if it starts others, which are to end when the search does.
    """

    def start(self, config: Config, seed: int) -> State:
        """An arm with these settings, not pulled yet."""

    def train(self, state: State, pulls: int) -> State:
        """The same arm, `pulls` pulls later."""

    def loss(self, state: State) -> float | Mapping[str, Any]:
        """What is observed: lower is better. With metrics beside it, a mapping with "loss"."""


def arm_seed(seed: int, arm: int) -> int:
    """The seed of an arm's own training: a function of the search's seed and its number."""
    return int(np.random.SeedSequence([seed, arm]).generate_state(1)[0])
