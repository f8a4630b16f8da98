"""Many arms take little memory, and what people read is as it was with few of them."""

from __future__ import annotations

import json
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastarm import SuccessiveHalving, loop
from lastarm.checkpoints import StateFolder
from lastarm.checkpoints.index import Index
from lastarm.errors import ImpossibleValue
from lastarm.events import Loss, Pull, Saved, Told, Work
from lastarm.journal import Unwritten
from lastarm.ledger import Ledger
from lastarm.space.drawn import Drawn

BYTES = 450  # that policy, loop and ledger may take for an arm, at most; dicts took twice as much
INDEX = "*/checkpoints/index.py"


class AtOnce:
    """A runner that knows all losses."""

    def __init__(self) -> None:
        self._started: list[Pull] = []

    @property
    def free(self) -> int:
        return 1 - len(self._started)

    def start(self, pull: Pull, attempt: int) -> None:
        self._started.append(pull)

    def wait(self, seconds: float) -> list[Told]:
        started, self._started = self._started, []
        return [Loss(pull, pull.arm * 7919 % 4001 + 1 / pull.upto, Work(1)) for pull in started]

    def state(self, pull: Pull) -> Any:
        return None

    def close(self) -> None: ...


def test_policy_loop_and_ledger_take_little_memory_for_an_arm() -> None:
    arms = 4096
    configs = Drawn({"x": arm} for arm in range(arms))
    tracemalloc.start()
    try:
        policy, ledger = SuccessiveHalving(arms, 20 * arms), Ledger()
        for event in loop.run(policy, AtOnce(), Unwritten(), configs):
            ledger.add(event)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert ledger.spent.observations == 2 * arms - 2
    assert peak <= BYTES * arms


VALUES = st.one_of(
    st.integers(), st.floats(), st.booleans(), st.none(), st.text(max_size=2), st.just([1])
)
CONFIGS = st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), max_size=12)


@given(CONFIGS)
def test_configs_are_given_back_as_they_were_drawn(configs: list[dict[str, Any]]) -> None:
    drawn = Drawn(configs)
    assert repr(list(drawn)) == repr(drawn) == repr(configs), "also types, names and their order"
    assert repr(drawn[1:]) == repr(configs[1:])
    assert repr(pickle.loads(pickle.dumps(drawn))) == repr(configs)
    for index in (len(configs), -len(configs) - 1):
        with pytest.raises(IndexError):
            drawn[index]


def test_curves_are_read_like_a_dict() -> None:
    seen = [(3, 1, 0.5), (0, 1, 0.25), (3, 4, 0.125)]
    curves = Ledger(Loss(Pull(arm, upto), loss) for arm, upto, loss in seen).curves
    assert curves == {3: [(1, 0.5), (4, 0.125)], 0: [(1, 0.25)]}
    assert list(curves) == [3, 0]
    assert 1 not in curves
    assert -1 not in curves
    assert curves.get(4) is None
    assert pickle.loads(pickle.dumps(curves)) == curves
    assert json.loads(json.dumps(dict(curves))) == {"3": [[1, 0.5], [4, 0.125]], "0": [[1, 0.25]]}


@pytest.mark.parametrize(("arm", "upto"), [(10**15, 1), (0, 2**80)])
def test_a_ledger_refuses_numbers_that_no_search_has(arm: int, upto: int) -> None:
    with pytest.raises(ImpossibleValue) as refusal:
        Ledger([Pull(0, 1), Pull(arm, upto)])
    assert (refusal.value.line, refusal.value.value) == (2, max(arm, upto))


def test_what_is_known_of_states_does_not_grow_with_the_pulls_of_an_arm(tmp_path: Path) -> None:
    index = Index(StateFolder(tmp_path, None, durable=True), disk=2**30)
    saved = Saved("0" * 64, 8)
    for pull in (Pull(arm, upto) for upto in range(1, 1001) for arm in (0, 1)):
        if pull == Pull(0, 500):
            tracemalloc.start()
        index.add(Loss(pull, 1 / pull.upto, saved=saved))
    held = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, INDEX)])
    tracemalloc.stop()  # other threads of this process may have something, too
    grown = sum(trace.size for trace in held.traces)
    assert index.latest(1) == (1000, saved)
    assert grown < 50_000
