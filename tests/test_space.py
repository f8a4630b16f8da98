"""Spaces: what is drawn, that it is drawn the same again, and what is refused."""

import json
import math
import pickle
from collections import Counter
from enum import IntEnum
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from lastarm.space import (
    Choice,
    Configs,
    Grid,
    Integer,
    LogUniform,
    Normal,
    Space,
    Uniform,
    describe,
    draw,
    size,
)
from tests.refusals import refused

seeds = st.integers(0, 2**63 - 1)
finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(min_value=5e-324, allow_infinity=False)
int64 = st.integers(-(2**63), 2**63 - 1)


class Size(IntEnum):
    SMALL = 1


SPACES: dict[str, Space] = {
    "continuous": {"lr": LogUniform(1e-5, 0.1), "p": Uniform(0, 1), "act": ["relu", "tanh"]},
    "finite": {"layers": Integer(1, 9, log=True), "act": Choice("relu", "tanh"), "epochs": 3},
    "too large to shuffle": {"a": Integer(0, 2000), "b": Integer(1, 2000, log=True)},
    "conditional": [{"kernel": "linear"}, {"kernel": "rbf", "gamma": LogUniform(0.1, 1)}],
    "conditional, finite": [{"k": [1, 2, 3]}, {"k": [3, 4, 5], "m": range(5)}],
    "grid": Grid({"lr": LogUniform(1e-5, 0.1), "layers": Integer(1, 6)}, samples=6),
    "configs": [{"row": row} for row in range(18)],
    "scipy": {"lr": scipy.stats.loguniform(1e-5, 0.1), "n": scipy.stats.randint(1, 5)},
}


# Domains ---------------------------------------------------------------------------------------


@given(ends=st.tuples(finite, finite).filter(lambda e: e[0] != e[1]), seed=seeds)
def test_a_uniform_number_is_a_float_between_its_ends_however_far_they_are(
    ends: tuple[float, float], seed: int
) -> None:
    low, high = sorted(ends)
    value = Uniform(low, high).sample(np.random.default_rng(seed))
    assert type(value) is float
    assert low <= value <= high


@given(ends=st.tuples(positive, positive).filter(lambda e: e[0] != e[1]), seed=seeds)
def test_a_log_uniform_number_is_a_float_between_its_ends(
    ends: tuple[float, float], seed: int
) -> None:
    low, high = sorted(ends)
    value = LogUniform(low, high).sample(np.random.default_rng(seed))
    assert type(value) is float
    assert low <= value <= high


@given(ends=st.tuples(int64, int64), log=st.booleans(), seed=seeds)
def test_an_integer_is_an_int_between_its_ends(
    ends: tuple[int, int], log: bool, seed: int
) -> None:
    low, high = sorted(abs(end) % 2**63 or 1 for end in ends) if log else sorted(ends)
    value = Integer(low, high, log=log).sample(np.random.default_rng(seed))
    assert type(value) is int
    assert low <= value <= high


def test_log_uniform_numbers_are_uniform_in_their_logarithm() -> None:
    configs = draw({"lr": LogUniform(1e-5, 1e-1)}, arms=4000, seed=1)
    logs = [(math.log10(config["lr"]) + 5) / 4 for config in configs]
    assert scipy.stats.kstest(logs, "uniform").pvalue > 0.001


@pytest.mark.parametrize("log", [False, True])
def test_integers_come_up_as_often_as_their_weights_say(log: bool) -> None:
    domain, random = Integer(1, 6, log=log), np.random.default_rng(2)
    counts = Counter(domain.sample(random) for _ in range(6000))
    expected = [6000 * weight for weight in domain.weights()]
    assert scipy.stats.chisquare([counts[k] for k in domain.values()], expected).pvalue > 0.001


def test_the_weight_of_a_log_integer_is_the_logarithm_of_its_share() -> None:
    shares = [math.log((k + 0.5) / (k - 0.5)) for k in range(3, 8)]
    assert Integer(3, 7, log=True).weights() == pytest.approx(np.divide(shares, sum(shares)))


def test_the_first_arm_of_a_finite_space_is_drawn_by_weight() -> None:
    domain = Integer(1, 4, log=True)
    counts = Counter(draw({"k": domain}, arms=1, seed=seed)[0]["k"] for seed in range(3000))
    expected = [3000 * weight for weight in domain.weights()]
    assert scipy.stats.chisquare([counts[k] for k in (1, 2, 3, 4)], expected).pvalue > 0.001


def test_options_are_the_same_by_type_and_value_and_kept_once() -> None:
    options = [1, 1.0, True, "1", None, Size.SMALL, (1,), [1], {"a": 1}, np.array([1]), max]
    assert Choice(*options, *options).values() == options
    assert Choice(np.int64(1), 1).size == 1


def test_lambdas_are_different_options() -> None:
    one, other = (lambda: 1), (lambda: 2)
    assert Choice(one, other, one).values() == [one, other]


def test_values_are_plain_python() -> None:
    space = {
        "list": [np.float32(0.5), np.int64(1)],
        "array": np.array([0.5, 1.5]),
        "constant": np.float64(2),
        "long": np.longdouble(1),
        "scipy": scipy.stats.norm(),
        "discrete": scipy.stats.randint(1, 5),
        "own": scipy.stats.rv_discrete(values=([1, 2], [0.5, 0.5])),
    }
    for config in draw(space, arms=20, seed=0):
        assert {type(value) for value in config.values()} <= {int, float}


@pytest.mark.parametrize(
    "domain",
    [Uniform(0, 1), LogUniform(1, 2), Integer(1, 3, log=True), Choice("a", None)],
    ids=repr,
)
def test_domains_are_values(domain: Any) -> None:
    assert pickle.loads(pickle.dumps(domain)) == domain
    assert eval(repr(domain)) == domain
    assert len({domain, domain}) == 1


def test_one_value_is_a_domain_of_one() -> None:
    assert draw({"k": Integer(3, 3)}, arms=1, seed=0) == [{"k": 3}]
    assert draw({}, arms=1, seed=0) == [{}]


# Drawing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPACES)
@settings(max_examples=20)
@given(arms=st.integers(1, 18), seed=seeds)
def test_fewer_arms_are_the_first_of_more(name: str, arms: int, seed: int) -> None:
    assert draw(SPACES[name], arms, seed) == draw(SPACES[name], 18, seed)[:arms]


@pytest.mark.parametrize("name", [name for name in SPACES if name != "configs"])
def test_another_seed_draws_other_configs(name: str) -> None:
    assert draw(SPACES[name], 18, seed=0) != draw(SPACES[name], 18, seed=1)


@pytest.mark.parametrize("name", SPACES)
def test_global_randomness_is_neither_used_nor_touched(name: str) -> None:
    before = np.random.get_state(legacy=False)
    draw(SPACES[name], 18, seed=0)
    assert str(np.random.get_state(legacy=False)) == str(before)


def test_another_parameter_does_not_change_the_draws_of_the_others() -> None:
    space = {"lr": LogUniform(1e-5, 0.1), "p": Uniform(0, 1)}
    more = {"first": Uniform(0, 1), **space, "act": ["relu", "tanh"]}
    configs = [{name: config[name] for name in space} for config in draw(more, 20, seed=3)]
    assert configs == draw(space, 20, seed=3)


@given(seed=seeds)
def test_the_order_of_the_parameters_does_not_matter(seed: int) -> None:
    space = {"b": Integer(1, 6, log=True), "a": ["x", "y"], "c": range(3)}
    configs = draw(space, 18, seed)
    assert configs == draw(dict(reversed(space.items())), 18, seed)
    assert list(configs[0]) == ["b", "a", "c"]


@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3), log=st.booleans(), seed=seeds)
def test_all_configs_of_a_finite_space_are_drawn_once(
    sizes: list[int], log: bool, seed: int
) -> None:
    space = {str(name): Integer(1, most, log=log) for name, most in enumerate(sizes)}
    drawn = [tuple(config.values()) for config in draw(space, math.prod(sizes), seed)]
    assert sorted(drawn) == list(product(*(range(1, most + 1) for most in sizes)))
    assert size(space) == len(drawn)


def test_no_config_is_drawn_twice_from_a_space_too_large_to_shuffle() -> None:
    space = {"a": Integer(1, 2**21, log=True)}
    drawn = [config["a"] for config in draw(space, arms=5000, seed=0)]
    assert len(set(drawn)) == 5000
    assert set(range(1, 50)) <= set(drawn)


def test_more_arms_than_configs_are_refused() -> None:
    with refused("arms", 7):
        draw({"a": [1, 2, 3], "b": [1, 2]}, arms=7, seed=0)
    with refused("arms", 2):
        draw({"a": 1}, arms=2, seed=0)
    with refused("arms", 2**41):
        draw({"a": Integer(1, 2**40)}, arms=2**41, seed=0)


@pytest.mark.parametrize("bad", [{"arms": 0}, {"arms": 1.5}, {"seed": -1}, {"seed": None}])
def test_arms_and_seed_are_whole_numbers(bad: dict[str, Any]) -> None:
    with refused(*next(iter(bad.items()))):
        draw({"p": Uniform(0, 1)}, **{"arms": 2, "seed": 0} | bad)


# Several mappings ------------------------------------------------------------------------------


def test_each_of_several_mappings_is_equally_likely() -> None:
    space = [{"p": Uniform(0, 1)}, {"q": Uniform(0, 1), "r": Uniform(0, 1)}]
    chosen = Counter(len(config) for config in draw(space, arms=2000, seed=0))
    assert scipy.stats.binomtest(chosen[1], 2000).pvalue > 0.001


@given(seed=seeds)
def test_a_mapping_without_configs_left_leaves_the_arms_to_the_others(seed: int) -> None:
    space: Space = [{"kernel": "linear"}, {"kernel": "rbf", "gamma": LogUniform(0.1, 1)}]
    kernels = [config["kernel"] for config in draw(space, arms=30, seed=seed)]
    assert kernels.count("linear") <= 1
    assert kernels.count("rbf") >= 29


@given(seed=seeds)
def test_what_several_mappings_share_is_drawn_once(seed: int) -> None:
    space = [{"k": [1, 2, 3]}, {"k": [3, 4]}]
    assert sorted(config["k"] for config in draw(space, 4, seed)) == [1, 2, 3, 4]
    with refused("arms", 5):
        draw(space, 5, seed)


def test_mappings_with_nothing_to_draw_are_configs_in_their_order() -> None:
    rows = [{"row": row} for row in (5, 3, 3, 9)]
    assert draw(rows, arms=4, seed=7) == rows
    assert describe(rows) == describe(Configs(rows))


def test_configs_are_taken_as_they_are() -> None:
    one, other = {"layers": [64, 64]}, {"layers": [128], "lr": np.float32(0.1)}
    configs: list[dict[str, Any]] = [one, other, {}]
    drawn = draw(Configs(configs), arms=3, seed=0)
    assert drawn == configs
    assert type(drawn[1]["lr"]) is np.float32
    with refused("arms", 4):
        draw(Configs(configs), arms=4, seed=0)


# Included configs ------------------------------------------------------------------------------


@given(seed=seeds)
def test_included_configs_come_first_and_are_not_drawn_again(seed: int) -> None:
    space = {"k": Integer(1, 5), "act": "relu"}
    include = [{"k": 4, "act": "relu"}, {"k": 2, "act": "relu"}, {"act": "relu", "k": 4}]
    drawn = draw(space, 5, seed, include)
    assert drawn[:2] == include[:2]
    assert sorted(config["k"] for config in drawn) == [1, 2, 3, 4, 5]
    assert draw(space, 3, seed, include) == drawn[:3]
    with refused("arms", 6):
        draw(space, 6, seed, include)


def test_including_does_not_change_what_is_drawn_from_a_continuous_space() -> None:
    space = {"lr": LogUniform(1e-5, 0.1)}
    assert draw(space, 5, 0, include=[{"lr": 0.05}])[1:] == draw(space, 4, 0)


def test_included_configs_are_not_repeated_by_a_list_of_configs() -> None:
    rows = [{"row": row} for row in range(3)]
    assert draw(rows, 3, seed=0, include=[rows[1]]) == [rows[1], rows[0], rows[2]]


@pytest.mark.parametrize("config", [{"lr": 1, "typo": 2}, {}, {"typo": 2}, 3, "lr"])
def test_an_included_config_has_the_names_of_the_space(config: Any) -> None:
    with refused("include[0]", config):
        draw({"lr": Uniform(0, 1)}, 2, seed=0, include=[config])


def test_an_included_config_may_be_of_any_of_several_mappings() -> None:
    space: Space = [{"k": [1]}, {"m": [1], "n": [2]}, {"m": [5], "n": Integer(1, 9)}]
    assert draw(space, 1, 0, include=[{"m": 5, "n": 6}]) == [{"m": 5, "n": 6}]
    for config in ({"m": 5}, {"m": 1, "n": 6}):
        with refused("include[0]", config):
            draw(space, 1, 0, include=[config])


def test_all_included_configs_need_an_arm() -> None:
    with refused("arms", 1):
        draw({"k": Integer(1, 5)}, 1, 0, include=[{"k": 1}, {"k": 2}])


# Grids -----------------------------------------------------------------------------------------


@given(samples=st.integers(1, 5), seed=seeds)
def test_a_grid_has_all_combinations_of_samples(samples: int, seed: int) -> None:
    space = {"lr": LogUniform(1e-5, 0.1), "p": Uniform(0, 1), "k": Integer(1, 3), "c": "x"}
    grid = Grid(space, samples)
    drawn = draw(grid, samples**2 * min(samples, 3), seed)
    assert size(grid) == len(drawn)
    values = {name: {config[name] for config in drawn} for name in space}
    assert [len(found) for found in values.values()] == [
        samples,
        samples,
        min(samples, 3),
        1,
    ]
    assert len({tuple(config.values()) for config in drawn}) == len(drawn)


def test_the_samples_of_a_grid_depend_on_the_seed_and_the_name_alone() -> None:
    alone = draw(Grid({"p": Uniform(0, 1)}, samples=3), 3, seed=5)
    others = draw(Grid({"a": Uniform(0, 1), "p": Uniform(0, 1)}, samples=3), 9, seed=5)
    assert {config["p"] for config in alone} == {config["p"] for config in others}
    assert {config["p"] for config in others}.isdisjoint(config["a"] for config in others)


@pytest.mark.parametrize("log", [False, True])
def test_an_integer_on_a_grid_is_sampled_or_whole(log: bool) -> None:
    space = {"k": Integer(1, 100, log=log)}
    assert size(Grid(space, samples=7)) == len(draw(Grid(space, samples=7), 7, seed=0)) == 7
    assert size(Grid(space, samples=1000)) == 100
    assert {config["k"] for config in draw(Grid(space), 100, seed=0)} == set(range(1, 101))
    assert size(Grid({"k": Integer(1, 2**62, log=log)})) == 2**62
    assert draw(Grid({"k": Integer(1, 2**62, log=log)}), 1, seed=0)[0]["k"] > 2**40


def test_a_grid_may_be_of_several_mappings() -> None:
    grid = Grid([{"kernel": "linear"}, {"kernel": "rbf", "gamma": LogUniform(0.1, 1)}], samples=3)
    kernels = Counter(config["kernel"] for config in draw(grid, 4, seed=0))
    assert kernels == {"linear": 1, "rbf": 3}


@pytest.mark.parametrize("domain", [Uniform(0, 1), LogUniform(1, 2), scipy.stats.norm()])
def test_a_grid_of_a_continuous_domain_needs_samples(domain: Any) -> None:
    with refused("lr"):
        Grid({"k": [1, 2], "lr": domain})


@pytest.mark.parametrize("samples", [0, 1.5, True, "3"])
def test_the_samples_of_a_grid_are_a_whole_number(samples: Any) -> None:
    with refused("samples", samples):
        Grid({"k": [1, 2]}, samples=samples)


# Descriptions ----------------------------------------------------------------------------------


def test_a_space_is_described_in_words_and_numbers() -> None:
    space = {
        "lr": LogUniform(1e-5, 0.1),
        "p": Uniform(0, 1),
        "layers": Integer(1, 6, log=True),
        "width": Integer(1, 6),
        "act": Choice("relu", "tanh"),
        "gamma": scipy.stats.loguniform(0.1, b=1),
        "epochs": 10,
    }
    assert describe(space) == {
        "lr": {"log-uniform": [1e-5, 0.1]},
        "p": {"uniform": [0.0, 1.0]},
        "layers": {"integer": [1, 6], "log": True},
        "width": {"integer": [1, 6]},
        "act": {"choice": ["relu", "tanh"]},
        "gamma": {"distribution": "loguniform", "args": [0.1], "kwds": {"b": 1}},
        "epochs": {"constant": 10},
    }
    assert describe(Grid({"p": Uniform(0, 1)}, samples=2)) == {
        "grid": [{"p": {"uniform": [0.0, 1.0]}}],
        "samples": 2,
    }


def test_spaces_that_differ_are_described_differently() -> None:
    def local() -> None: ...

    discrete = [scipy.stats.rv_discrete(values=([1, k], [0.5, 0.5])) for k in (2, 3)]
    values: list[Any] = [
        *(Uniform(0, 1), Uniform(0, 2), LogUniform(1, 2), Integer(0, 1), Integer(1, 2)),
        *(Integer(1, 5, step=2), Integer(1, 5), Uniform(0, 1, step=0.5), Uniform(0, 1, step=0.25)),
        *(Normal(0, 1), Normal(0, 2), Normal(0, 1, low=0), Normal(0, 1, high=0)),
        *(Choice(1, 2, 3, ordered=True), Choice(1, 2, 3)),
        *(Integer(1, 2, log=True), [1, 2], [2, 1], ["1", 2], [1.0, 2], [True, 2], [[1, 2]]),
        *([(1, 2)], [Size.SMALL, 2], [math.inf], ["inf"], {"choice": [1, 2]}, 1, 1.0, True, "1"),
        *(None, "None", max, min, Size, [local], {"named": "builtins.max"}, {1: 2}, {"1": 2}),
        *(
            frozenset({1, 2}),
            np.eye(2),
            np.eye(3),
            np.eye(2, dtype=int),
            np.array([[max]]),
            b"1",
            1j,
        ),
        *(scipy.stats.norm(), scipy.stats.norm(1), scipy.stats.norm(loc=1), scipy.stats.expon()),
        *(discrete[0](), discrete[1](), -math.inf),
    ]
    space: list[Any] = [{"x": value} for value in values]
    space += [Grid(space[3]), Grid(space[3], 2), Grid(space[4]), space[:2], space[1:3], {}]
    space += [Configs([{"x": 1}]), Configs([{"x": [1, 2]}]), Configs([{"x": 1}, {"x": 1}])]
    described = [json.dumps(describe(one), allow_nan=False) for one in space]
    assert len(set(described)) == len(space)


# What is refused -------------------------------------------------------------------------------

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("kind", [Uniform, LogUniform])
@pytest.mark.parametrize("bad", [NAN, INF, -INF, None, "1", True, 1j, [1], 10**400])
def test_the_ends_of_an_interval_are_finite_numbers(kind: Any, bad: Any) -> None:
    with refused("low", bad):
        kind(bad, 2)
    with refused("high", bad):
        kind(1, bad)


@pytest.mark.parametrize("kind", [Uniform, LogUniform])
@pytest.mark.parametrize(("low", "high"), [(2, 1), (1, 1)])
def test_an_interval_has_its_low_end_below_its_high_one(kind: Any, low: int, high: int) -> None:
    with refused("high", high):
        kind(low, high)


@pytest.mark.parametrize("low", [0, -1, -0.0])
def test_a_log_scale_begins_above_zero(low: float) -> None:
    with refused("low", float(low)):
        LogUniform(low, 1)
    with refused("low", int(low)):
        Integer(int(low), 1, log=True)


@pytest.mark.parametrize("bad", [NAN, INF, None, "1", True, 1.5, 2.0, 2**63, -(2**63) - 1])
def test_the_ends_of_an_integer_are_whole_numbers_of_64_bits(bad: Any) -> None:
    with refused("low", bad):
        Integer(bad, 2**63 - 1)
    with refused("high", bad):
        Integer(-(2**63), bad)


def test_an_integer_has_its_low_end_first() -> None:
    with refused("high", 1):
        Integer(2, 1)


def test_a_choice_has_options_and_none_of_them_is_nan() -> None:
    with refused("options", ()):
        Choice()
    with refused("options", (1, NAN)):
        Choice(1, NAN)


@pytest.mark.parametrize(
    "value",
    [
        [],
        (),
        range(0),
        np.array([]),
        [1, NAN],
        [1, np.float32(NAN)],
        np.array([NAN]),
        NAN,
        np.float64(NAN),
        scipy.stats.loguniform,
        scipy.stats.norm(loc=NAN),
        scipy.stats.norm(scale=-1),
    ],
)
def test_what_is_wrong_with_a_parameter_is_said_with_its_name(value: Any) -> None:
    space = {"fine": 1, "lr": value}
    wrong: list[Any] = [space, [space], [{"k": [1]}, space]]
    for given_space in wrong:
        with refused("lr", value):
            draw(given_space, 1, seed=0)
    with refused("lr", value):
        Grid(space, samples=2)


@pytest.mark.parametrize("name", ["", "x" * 129, "a\nb", "\0", "\ud800", 3, None, ("a",)])
def test_names_are_short_printable_strings(name: Any) -> None:
    for make in (describe, Grid, lambda space: Configs([space])):
        with refused("name", name):
            make({name: 1})


@pytest.mark.parametrize("name", ["x" * 128, "é", "🦾", "../a", "'; DROP TABLE arms", "any of"])
def test_other_names_are_valid(name: str) -> None:
    assert draw({name: [1]}, 1, seed=0) == [{name: 1}]


@pytest.mark.parametrize("space", [None, 3, "lr", [1], [{"a": 1}, None], Uniform(0, 1), {1, 2}])
def test_a_space_is_made_of_dicts(space: Any) -> None:
    for make in (describe, Grid, Configs):
        with refused("configs" if make is Configs else "space", space):
            make(space)


def test_an_empty_list_is_no_space() -> None:
    for make in (describe, Grid, Configs):
        with refused("configs" if make is Configs else "space", []):
            make([])
