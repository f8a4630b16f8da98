"""What a trainer is: it starts an arm, trains it further, and tells its loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import numpy as np

Config = Mapping[str, Any]
"""The hyperparameters of an arm: their names and values."""

State = TypeVar("State")


class Trainer(Protocol[State]):
    """Three functions. What the state is that they pass on is up to the trainer.

    Training a + b pulls must be the same as training a pulls, then b. Nothing may depend on
    anything but the arguments. `train` may change the state that it is given, as long as it
    returns the state to continue from. A trainer may also have:

    - `test(state) → float`: called once, for the recommended arm.
    - `fingerprint() → dict`: what a journal should remember of the data, so that resuming with
      other data is refused.
    - `version`, a whole number, 1 if it is left out: a larger number says that the same arguments
      give other losses than before. A journal of another version is never resumed.
    - `save(state, path)` and `load(path) → state`: for states that cannot be pickled well. The
      path is valid during the call only, and may be another one each time.
    - `continues(state) → bool`: whether a saved copy of this state can be trained further, to the
      same losses. True if it is left out. A copy that cannot is saved only to predict. If such an
      arm leaves the memory of its process, it is trained again from zero, to the same losses.
    - `size(state) → int`: about how many bytes it holds in memory. Without it, a state is pickled
      now and then to learn this. It is called after every pull, so it has to be quick.
    - `unwrap(state)`: the user's part of the state, for the result.
    - `on_all_rows(config, seed, pulls) → model`: a model that learns from all data, also from what
      arms are judged by, for `Result.refit`.
    - `restores = True`: a `train` that raises leaves the state that it was given unchanged.
    - `restarts = True`: arms cannot be trained further, so every level is trained from zero. Given
      a state that has had a pulls, `train` trains a + pulls in one go. Bringing an arm to b pulls
      then costs b pulls of the budget, whatever it had before. A search asks for each level by
      `start` and `train(state, b)`.
    - `finished(state) → bool`: whether more pulls would change nothing, as when a solver has come
      to its end. Where arms restart, such a state is used at higher levels, too, as long as it is
      in memory. `train` gets it, and returns it as it is. The price of a level stays.
    - `max_pulls`, a whole number: an arm can use no more pulls. A search gives it no more.
    - `expect(settings)`: called before a search with the values of each parameter (all that are
      listed, one of a range), for a trainer that depends on them.
    - `batched`: a batched trainer that trains the same arms, many in one call, or None. Where
      workers do not train them apart, it is used.
    - `choose_way(configs, begun)`: called before a search with some of its configs, for a trainer
      that measures whether its `batched` is faster, and says in its fingerprint what it chose.
      `begun` is what the journal's header says of the trainer, None in a new search: a search that
      is resumed takes the same way. There are no configs where arms are trained apart.
    - `ended(state) → int | None`: at which pull the arm's loop ended by itself, if it did. Then
      its loss stays.
    - `shown_as`, a `lastarm.trainers.metric.Metric`: what people read in place of the loss.
    - `resource`: what pulls are parts of, if they are no steps. Of "rows", a pull is 1 %, and
      people are told so. To be told of a journal, too, it has to be in the fingerprint.
    - `keep_alive(most)`: called before a search, for a trainer whose arms hold more than memory
      between pulls, such as a thread: how many may do so in a process. None: the default.
    - `let_go()`: called when a search ends, in each process that trained for it alone: ends what
      arms have left running there.
    - `starts_processes = True`: it starts processes, which must end when the search ends.
    """

    def start(self, config: Config, seed: int) -> State:
        """A new arm with this config and this seed, without any pulls."""

    def train(self, state: State, pulls: int) -> State:
        """The same arm, `pulls` pulls later."""

    def loss(self, state: State) -> float | Mapping[str, Any]:
        """The loss: lower is better. To report other metrics, return a mapping with "loss"."""


def continues(trainer: Any, state: Any) -> bool:
    """Whether a saved copy of this state can be trained further."""
    return not hasattr(trainer, "continues") or bool(trainer.continues(state))


def finished(trainer: Any, state: Any) -> bool:
    """Whether more pulls would change nothing, as far as the trainer can say.

    It is only asked where the state is in memory, so an error of it must not decide anything.
    """
    if not callable(getattr(trainer, "finished", None)):
        return False
    try:
        return bool(trainer.finished(state))
    except Exception:
        return False


def known_resource(given: Any) -> str:
    """What pulls are parts of, as a trainer or its journal says; "" if they are steps."""
    return given if isinstance(given, str) else ""


def arm_seed(seed: int, arm: int) -> int:
    """The seed for training an arm: a function of the seed of the search and the arm's number."""
    return int(np.random.SeedSequence([seed, arm]).generate_state(1)[0])
