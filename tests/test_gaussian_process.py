"""What a Gaussian process expects, and what is chosen by it: by plain formulas, and as laws."""

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from lastarm import (
    Choice,
    Configs,
    GaussianProcess,
    Grid,
    Hyperband,
    Integer,
    LogUniform,
    Normal,
    Uniform,
    search,
)
from lastarm.plain import config_identity
from lastarm.samplers import Chosen, Known, Seen
from lastarm.samplers.gaussian_process import (
    EXACT,
    LOOKS,
    Pool,
    Scores,
    log_improvement,
    shifted,
    spread_over,
)
from lastarm.samplers.matern import (
    JITTER,
    Hyperparameters,
    Posterior,
    fit,
    improbability,
    inverse_of,
    kernel,
)
from lastarm.space import domains, draw, encode, neighbours, spare
from lastarm.space.domains import as_domain

SQUARE = {"x": Uniform(0, 1), "y": Uniform(0, 1)}
MIXED: dict[str, Any] = {
    "rate": LogUniform(1e-5, 1.0),
    "layers": Integer(1, 6),
    "width": Integer(16, 512, log=True),
    "drop": Uniform(0, 0.5, step=0.1),
    "size": Choice("small", "medium", "large", ordered=True),
    "act": ["relu", "tanh", None],
    "batch": [16, 32, 64],
    "momentum": Normal(0.9, 0.05, high=1.0),
    "scipy": scipy.stats.norm(3, 2),
    "epochs": 10,
}
HALF_CONDITIONAL = [
    {
        "kind": kind,
        **{f"shared{k}": LogUniform(1e-5, 1) if k % 2 else Integer(1, 9) for k in range(10)},
        **{f"{kind}{k}": Uniform(0, 1) if k % 2 else Choice("u", "v", "w") for k in range(10)},
    }
    for kind in ("trees", "network")
]
SPACES: dict[str, Any] = {
    "square": SQUARE,
    "mixed": MIXED,
    "conditional": HALF_CONDITIONAL,
    "grid": Grid({"a": Integer(1, 3), "b": ["u", "v"]}),
    "sampled grid": Grid({"a": LogUniform(1e-3, 1), "b": ["u", "v"]}, samples=4),
    "listed": Configs([{"a": k * 0.1, "b": "u" if k % 2 else None} for k in range(12)]),
    "one": {"a": [5], "b": 3},
}


def known(
    space: Any,
    losses: Sequence[float],
    count: int = 4,
    seed: int = 0,
    levels: Sequence[int] = (1,),
) -> Known:
    """What is known after arms had these losses, at these levels in turn."""
    begun = draw(space, len(losses), seed)
    seen = [
        Seen(config, levels[arm % len(levels)], loss)
        for arm, (config, loss) in enumerate(zip(begun, losses, strict=True))
    ]
    return Known(space, seen, begun, spare(space, begun, 400, seed), count, seed, max(levels))


def bowl(space: Any, arms: int, seed: int = 0) -> list[float]:
    """Losses that are lower, the nearer all numbers of a config are to a third of their range."""
    rows = encode(space, draw(space, arms, seed)).rows
    return [float(loss) for loss in ((rows - 0.35) ** 2).sum(axis=1)]


def some_process(arms: int = 12, seed: int = 0) -> Posterior:
    random = np.random.default_rng(seed)
    parameters = np.array([0, 1, 1, 2])
    rows, values = random.random((arms, 4)), random.standard_normal(arms)
    hyperparameters = Hyperparameters(np.array([0.4, 0.9, 2.0]), 1.3, 0.01)
    return Posterior.of(rows, parameters, values, hyperparameters)


def textbook(process: Posterior, rows: Any) -> tuple[Any, Any]:
    """The mean and covariance by Rasmussen & Williams (2006), 2.25 and 2.26, in plain loops."""
    lengths, amplitude, noise = process.hyperparameters

    def k(one: Any, other: Any) -> float:
        squares = ((one - other) / lengths[process.parameters]) ** 2
        r = math.sqrt(5 * math.fsum(squares))
        return amplitude * (1 + r + r * r / 3) * math.exp(-r)

    def matrix(some: Any, others: Any) -> Any:
        return np.array([[k(one, other) for other in others] for one in some])

    noisy = matrix(process.rows, process.rows) + (noise + JITTER) * np.eye(len(process.rows))
    between = matrix(rows, process.rows)
    mean = between @ np.linalg.solve(noisy, process.values)
    return mean, matrix(rows, rows) - between @ np.linalg.solve(noisy, between.T)


# The process ------------------------------------------------------------------------------------


def test_means_and_variances_are_those_of_the_textbook() -> None:
    process, rows = some_process(), np.random.default_rng(1).random((7, 4))
    means, variances, _ = process.at(rows)
    mean, covariance = textbook(process, rows)
    assert means == pytest.approx(mean, abs=1e-9)
    assert variances == pytest.approx(np.diag(covariance), abs=1e-9)


def test_the_kernel_is_one_at_no_distance_and_falls_with_it() -> None:
    line = np.linspace(0, 5, 11)[:, None]
    falling = kernel(np.zeros((1, 1)), line)[0]
    assert falling[0] == 1
    assert all(np.diff(falling) < 0)


def test_believing_changes_no_mean_and_makes_others_surer() -> None:
    process, rows = some_process(), np.random.default_rng(2).random((9, 4))
    believing = process.believing(rows[:2])
    before, after = process.at(rows), believing.at(rows)
    assert after[0] == pytest.approx(before[0], abs=1e-9)
    assert all(after[1] < before[1])


def test_a_pool_that_believes_is_one_whose_process_does() -> None:
    process, rows = some_process(), np.random.default_rng(3).random((9, 4))
    pool = Pool(process, 0.0)
    pool.add([{"k": k} for k in range(5)], rows[:5])
    pool.add([{"k": k} for k in range(5, 9)], rows[5:])
    pool.believe(1)
    pool.believe(6)
    assert pool.variances == pytest.approx(process.believing(rows[[1, 6]]).at(rows)[1], abs=1e-9)
    assert pool.means == pytest.approx(process.at(rows)[0])


@pytest.mark.parametrize("size", [1, 2, 48, 49, 131])
def test_the_inverse_of_a_triangle_is_its_inverse(size: int) -> None:
    lower = np.tril(np.random.default_rng(size).random((size, size)) / size) + np.eye(size)
    assert inverse_of(lower) @ lower == pytest.approx(np.eye(size), abs=1e-10)


def test_the_gradient_is_that_of_small_differences() -> None:
    process = some_process()
    beliefs = np.array([[0.5, 1.0], [0.5, 1.0], [0.5, 1.0], [0.0, 1.0], [-6.0, 1.5]])
    logs = np.array([-0.5, 0.3, 0.8, 0.2, -3.0])

    def score(at: Any) -> float:
        return improbability(at, process.rows, process.parameters, process.values, beliefs)[0]

    gradient = improbability(logs, process.rows, process.parameters, process.values, beliefs)[1]
    for k, slope in enumerate(gradient):
        step = 1e-5 * np.eye(len(logs))[k]
        assert (score(logs + step) - score(logs - step)) / 2e-5 == pytest.approx(slope, rel=1e-5)


def test_what_is_more_improbable_is_less_likely_by_the_normal_density() -> None:
    process = some_process(arms=5)
    beliefs = np.array([[0.5, 1.0], [0.5, 1.0], [0.5, 1.0], [0.0, 1.0], [-6.0, 1.5]])

    def by_scipy(logs: Any) -> float:
        lengths, (amplitude, noise) = np.exp(logs[:3]), np.exp(logs[3:])
        scaled = process.rows / lengths[process.parameters]
        covariance = amplitude * kernel(scaled, scaled) + (noise + JITTER) * np.eye(5)
        density = scipy.stats.multivariate_normal(np.zeros(5), covariance).logpdf(process.values)
        return float(-density - scipy.stats.norm.logpdf(logs, *beliefs.T).sum())

    one, other = np.array([-0.5, 0.3, 0.8, 0.2, -3.0]), np.array([0.1, 0.0, 0.5, -0.2, -5.0])
    scores = [
        improbability(at, process.rows, process.parameters, process.values, beliefs)[0]
        for at in (one, other)
    ]
    assert scores[0] - scores[1] == pytest.approx(by_scipy(one) - by_scipy(other))


def test_a_parameter_without_effect_gets_a_longer_scale() -> None:
    rows = np.random.default_rng(0).random((60, 2))
    values = np.sin(6 * rows[:, 0])
    found = fit(rows, np.array([0, 1]), (values - values.mean()) / values.std())
    assert found.lengths[1] > 2 * found.lengths[0]
    assert found.noise < 0.01


def test_hyperparameters_are_found_also_without_any_parameter() -> None:
    found = fit(np.zeros((3, 0)), np.zeros(0, dtype=np.int64), np.array([1.0, -1.0, 0.0]))
    assert len(found.lengths) == 0
    assert found.noise > 0


@given(st.floats(-30, 6), st.floats(1e-3, 10))
@settings(max_examples=40, deadline=None)
def test_the_improvement_is_that_of_an_integral(z: float, deviation: float) -> None:
    normal = NormalDist()
    ends = np.linspace(z - 12 / max(1, -z), z, 20001)  # below it there is next to nothing
    middles = (ends[1:] + ends[:-1]) / 2
    relative = np.exp(-(middles**2) / 2 + z * z / 2 * (z < 0))  # the density, of which e^(-z²/2)
    total = ((z - middles) * relative).sum() * (ends[1] - ends[0]) / math.sqrt(2 * math.pi)
    expected = math.log(total) - (z * z / 2 if z < 0 else 0) + math.log(deviation)
    found = log_improvement(np.array([5.0]), np.array([deviation]), 5.0 + z * deviation)
    assert found[0] == pytest.approx(expected, rel=1e-3, abs=1e-3)
    if z > -3:
        plain = deviation * (z * normal.cdf(z) + normal.pdf(z))
        assert found[0] == pytest.approx(math.log(plain), abs=1e-8)


# Losses as the process learns them --------------------------------------------------------------


def test_losses_are_brought_to_the_end_by_the_median_of_those_that_went_on() -> None:
    configs = [{"x": k} for k in range(5)]
    curves = [{1: 9.0, 3: 5.0, 9: 4.0}, {1: 8.0, 3: 6.0}, {1: 7.0, 3: 5.5}, {1: 3.0}, {3: 2.0}]
    seen = [
        Seen(config, level, loss)
        for config, curve in zip(configs, curves, strict=True)
        for level, loss in curve.items()
    ]
    found, looks = shifted(seen)
    assert found == configs
    last = {arm: place for place, arm in reversed([*enumerate(looks.arms.tolist())])}
    # From 3 to 9 the only one that went on lost 1. From 1 to 9 it is the median of 5, 3 and 2.5.
    assert looks.losses[[last[arm] for arm in range(5)]].tolist() == [4.0, 5.0, 4.5, 0.0, 1.0]
    assert len(looks.losses) == len(seen), "earlier looks tell something, too"


def test_an_arm_that_diverged_in_the_end_has_no_loss() -> None:
    config = {"x": 1}
    _, looks = shifted([Seen(config, 1, 0.5), Seen(config, 3, math.inf)])
    assert (looks.levels.tolist(), looks.losses.tolist()) == ([3], [math.inf])


def test_with_many_looks_the_earlier_ones_at_the_lowest_levels_are_left_out() -> None:
    configs = [{"x": k} for k in range(300)]
    seen = [Seen(one, level, 1 / level) for one in configs for level in (1, 3, 9)]
    _, looks = shifted(seen)
    assert np.bincount(looks.levels).tolist() == [0, 0, 0, LOOKS - 300, 0, 0, 0, 0, 0, 300]
    _, looks = shifted([Seen({"x": k}, 1, 0.5) for k in range(LOOKS + 1)])
    assert len(looks.arms) == LOOKS + 1, "every arm is known"


def test_the_expected_loss_is_the_mean_over_a_normal_score() -> None:
    scores, values = Scores.of(np.array([1.0, 2.0, 5.0, 2.5, 1.5, math.inf]))
    ends = np.linspace(-8, 8, 4001)
    density = np.exp(-(ends**2) / 2)
    losses = scores.loss(values[3] + 0.3 * ends)
    mean = float(density @ losses / density.sum())
    variance = float(density @ (losses - mean) ** 2 / density.sum())
    expected, deviation = scores.expected(values[3], 0.3)
    assert expected == pytest.approx(mean, abs=0.02)
    assert deviation == pytest.approx(math.sqrt(variance), abs=0.02)


def test_a_score_stands_for_the_loss_that_has_it_and_lower_ones_for_lower_losses() -> None:
    losses = np.array([1.0, 2.0, 5.0, 2.5, 1.5])
    scores, values = Scores.of(losses)
    assert scores.loss(values) == pytest.approx(losses)
    assert scores.loss(np.array([-3.0]))[0] < 1.0
    assert scores.loss(np.array([3.0]))[0] == 5.0


@given(st.lists(st.sampled_from([0.0, 0.25, 1.0, 1e300, math.inf]), min_size=1, max_size=9))
def test_lower_losses_have_lower_scores_and_equal_ones_the_same(losses: list[float]) -> None:
    _scores, values = Scores.of(np.array(losses))
    assert np.isfinite(values).all()
    for one, other in zip(losses, values, strict=True):
        for another, more in zip(losses, values, strict=True):
            assert (one < another) == (other < more)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(2, 12))
def test_a_subset_has_the_least_and_others(values: list[int], most: int) -> None:
    places = spread_over(np.array(values, dtype=float), most).tolist()
    assert places == sorted(set(places))
    assert len(places) == min(most, len(values))
    least = sorted(range(len(values)), key=lambda k: (values[k], k))[: min(most, len(values)) // 2]
    assert set(least) <= set(places)


# Configs as rows, and neighbours ----------------------------------------------------------------


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())
def test_rows_are_finite_tell_configs_apart_and_do_not_depend_on_each_other(space: Any) -> None:
    configs = draw(space, {"one": 1, "grid": 6, "sampled grid": 8}.get(_name(space), 12), seed=0)
    rows, parameters = encode(space, configs)
    assert rows.shape == (len(configs), len(parameters))
    assert ((rows >= 0) & (rows <= 1)).all()
    assert len({row.tobytes() for row in rows}) == len(configs)
    assert list(parameters) == sorted(parameters)
    if not isinstance(space, Configs):
        assert all(
            (encode(space, [c]).rows[0] == row).all() for c, row in zip(configs, rows, strict=True)
        )


def _name(space: Any) -> str:
    return next(name for name, one in SPACES.items() if one is space)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_value_at_the_place_of_a_value_is_that_value(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(MIXED.keys() - {"act", "scipy", "epochs"})))
    domain = as_domain(name, MIXED[name])
    value = domain.sample(np.random.default_rng(data.draw(st.integers(0, 99))))
    places = domain.places([value])
    assert places is not None
    again = domain.at(float(places[0]))
    assert again == (value if domain.size else pytest.approx(value))
    assert domain.contains(domain.at(0.0))
    assert domain.contains(domain.at(1.0))


def test_two_options_are_as_far_apart_as_two_ends() -> None:
    space = {"x": Uniform(0, 1), "act": ["relu", "tanh"]}
    rows = encode(
        space, [{"x": 0, "act": "relu"}, {"x": 1, "act": "relu"}, {"x": 0, "act": "tanh"}]
    ).rows
    assert np.linalg.norm(rows[0] - rows[1]) == pytest.approx(1)
    assert np.linalg.norm(rows[0] - rows[2]) == pytest.approx(1)


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())
def test_neighbours_are_other_configs_of_the_space(space: Any) -> None:
    config = draw(space, 1, seed=1)[0]
    near = neighbours(space, config, 40, np.random.default_rng(0), 0.1)
    assert near == neighbours(space, config, 40, np.random.default_rng(0), 0.1)
    identities = [config_identity(one) for one in near]
    assert len(set(identities)) == len(identities)
    assert config_identity(config) not in identities
    draw(space, len(near) or 1, 0, include=near)  # refuses what is not in the space
    assert len(near) >= {"square": 20, "mixed": 20, "conditional": 20, "grid": 3}.get(
        _name(space), 0
    )


def test_neighbours_change_few_parameters_and_numbers_by_little() -> None:
    config = draw(MIXED, 1, seed=3)[0]
    for one in neighbours(MIXED, config, 100, np.random.default_rng(1), 0.01):
        changed = [name for name in config if one[name] != config[name]]
        assert 1 <= len(changed) <= 3
        if "layers" in changed:
            assert abs(one["layers"] - config["layers"]) == 1
        if "rate" in changed:
            assert abs(math.log(one["rate"] / config["rate"])) < 0.01 * math.log(1e5) * 5


def test_some_neighbours_are_of_another_mapping_and_keep_what_both_have() -> None:
    config = draw(HALF_CONDITIONAL, 1, seed=0)[0]
    near = neighbours(HALF_CONDITIONAL, config, 80, np.random.default_rng(0))
    elsewhere = [one for one in near if one["kind"] != config["kind"]]
    assert 3 <= len(elsewhere) <= 25
    assert all(one[f"shared{k}"] == config[f"shared{k}"] for one in elsewhere for k in range(10))


# Beliefs ----------------------------------------------------------------------------------------

BELIEFS = {
    "uniform": (Uniform(-1, 3, likely=2), lambda v: (v + 1) / 4),
    "log": (LogUniform(1e-5, 1, likely=1e-3), lambda v: math.log(v) / math.log(1e5) + 1),
}


@pytest.mark.parametrize(("domain", "place"), BELIEFS.values(), ids=BELIEFS.keys())
def test_half_of_all_numbers_are_near_the_likely_one(domain: Any, place: Any) -> None:
    random = np.random.default_rng(0)
    places = [place(domain.sample(random)) for _ in range(4000)]
    center = place(domain.likely)
    normal = NormalDist(center, 0.125)
    within = normal.cdf(1) - normal.cdf(0)

    def share(at: Any) -> Any:
        inside = np.clip(at, 0, 1)
        return (
            0.5 * inside
            + 0.5 * (scipy.stats.norm.cdf(inside, center, 0.125) - normal.cdf(0)) / within
        )

    assert scipy.stats.kstest(places, share).pvalue > 0.001


@pytest.mark.parametrize(
    "domain",
    [
        Integer(1, 6, likely=5),
        Integer(1, 6, log=True, likely=2),
        Integer(2, 12, step=2, likely=12),
        Uniform(0, 1, step=0.25, likely=0.25),
    ],
    ids=repr,
)
def test_counted_values_come_up_as_often_as_their_weights_say(domain: Any) -> None:
    random = np.random.default_rng(1)
    drawn = [domain.sample(random) for _ in range(5000)]
    weights = domain.weights()
    assert weights.sum() == pytest.approx(1)
    assert domain.values()[int(weights.argmax())] == domain.likely
    expected = 5000 * weights
    counts = [drawn.count(value) for value in domain.values()]
    assert scipy.stats.chisquare(counts, expected).pvalue > 0.001


def test_a_belief_is_part_of_what_a_space_is_and_must_be_inside() -> None:
    assert domains({"x": LogUniform(1e-5, 1, likely=1e-3)}) == {
        "x": {"log-uniform": [1e-5, 1.0], "likely": 1e-3}
    }
    assert domains({"x": Integer(1, 9, likely=2)}) == {"x": {"integer": [1, 9], "likely": 2}}
    for make in (
        lambda: LogUniform(1e-5, 1, likely=2),
        lambda: Uniform(0, 1, likely="half"),  # type: ignore[arg-type]
        lambda: Uniform(0, 1, step=0.25, likely=0.3),
        lambda: Integer(1, 9, likely=2.5),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError, match="likely"):
            make()


def test_a_grid_has_no_beliefs() -> None:
    believed, plain = Integer(1, 5, likely=2), Integer(1, 5)
    assert draw(Grid({"a": believed}), 5, 0) == draw(Grid({"a": plain}), 5, 0)


def test_a_belief_leaves_the_draws_of_other_parameters_alone() -> None:
    one = draw({"x": Uniform(0, 1), "y": Uniform(0, 1)}, 9, 0)
    other = draw({"x": Uniform(0, 1), "y": Uniform(0, 1, likely=0.5)}, 9, 0)
    assert [config["x"] for config in one] == [config["x"] for config in other]


# Choosing ---------------------------------------------------------------------------------------


def choose(given_known: Known) -> list[Chosen]:
    """What is chosen, if it keeps the promises of a sampler."""
    chosen = GaussianProcess().choose(given_known)
    assert chosen == GaussianProcess().choose(given_known)
    assert len(chosen) <= given_known.count
    identities = [config_identity(one.config) for one in chosen]
    assert len(set(identities)) == len(identities)
    assert not set(identities) & set(map(config_identity, given_known.begun))
    if chosen:
        draw(given_known.space, len(chosen), 0, include=[one.config for one in chosen])
    return chosen


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())
def test_what_is_chosen_is_new_and_in_the_space(space: Any) -> None:
    arms = {"one": 1, "grid": 4, "sampled grid": 6}.get(_name(space), 9)
    chosen = choose(known(space, bowl(space, arms)))
    assert len(chosen) == {"one": 0, "grid": 2, "sampled grid": 2, "listed": 3}.get(
        _name(space), 4
    )


LOSSES: dict[str, list[float]] = {
    "constant": [0.5] * 9,
    "one": [0.5],
    "huge": [1e300, -1e300, 1.7e308, 0.1, 0.2, 0.3],
    "tiny": [5e-324, 0.0, 1e-320],
    "failed": [math.inf] * 6,
    "one healthy": [math.inf, math.inf, 0.1],
    "best tie": [0.1, 0.1, 0.1, 0.1, 0.7],
}


@pytest.mark.parametrize("losses", LOSSES.values(), ids=LOSSES.keys())
def test_any_losses_give_as_many_configs_as_asked(losses: list[float]) -> None:
    chosen = choose(known(MIXED, losses))
    assert len(chosen) == 4
    for one in chosen:
        if all(map(math.isinf, losses)):
            assert (one.mean, one.deviation) == (None, None)
        else:
            assert one.mean is not None
            assert one.deviation is not None
            assert math.isfinite(one.mean)
            assert one.deviation >= 0


def test_the_same_config_twice_and_twice_the_same_loss_is_no_trouble() -> None:
    config = {"x": 0.5, "y": 0.5}
    arms = [dict(config) for _ in range(6)]
    seen = [Seen(arm, 1, 0.1 * (k // 2)) for k, arm in enumerate(arms)]
    assert len(choose(Known(SQUARE, seen, arms, draw(SQUARE, 50, 1), 3, 0, 1))) == 3


def test_it_looks_where_losses_are_low() -> None:
    chosen = choose(known(SQUARE, bowl(SQUARE, 30), count=3))
    assert all(abs(v - 0.35) < 0.15 for one in chosen for v in one.config.values())
    assert chosen[0].mean == pytest.approx(0, abs=0.02)


def test_it_does_not_look_where_arms_failed() -> None:
    configs = draw(SQUARE, 40, 0)
    losses = [math.inf if c["x"] > 0.5 else 1 - c["x"] for c in configs]
    chosen = choose(known(SQUARE, losses, count=4))
    assert fmean(one.config["x"] > 0.6 for one in chosen) == 0
    assert fmean(one.config["x"] for one in chosen) > 0.3


def test_what_is_close_to_arms_in_flight_is_not_chosen_again() -> None:
    plain = known(SQUARE, bowl(SQUARE, 20), count=1)
    (first,) = choose(plain)
    (second,) = choose(plain._replace(begun=[*plain.begun, first.config]))
    assert second.config != first.config


@pytest.mark.parametrize(
    "space", [SQUARE, MIXED, HALF_CONDITIONAL], ids=["square", "mixed", "half"]
)
def test_how_losses_are_rounded_in_the_last_digit_does_not_matter(space: Any) -> None:
    losses = bowl(space, 60)
    nudged = [loss * (1 + 2**-51) for loss in losses]
    one, other = choose(known(space, losses)), choose(known(space, nudged))
    assert [chosen.config for chosen in one] == [chosen.config for chosen in other]


def test_only_the_order_of_losses_matters_and_what_is_expected_follows_them() -> None:
    losses = bowl(SQUARE, 20)
    one, other = choose(known(SQUARE, losses)), choose(known(SQUARE, [8 * v for v in losses]))
    assert [chosen.config for chosen in one] == [chosen.config for chosen in other]
    for chosen, eightfold in zip(one, other, strict=True):
        assert chosen.mean is not None
        assert eightfold.mean == pytest.approx(8 * chosen.mean)


def test_the_order_of_names_does_not_matter() -> None:
    turned = dict(reversed(MIXED.items()))
    losses = bowl(MIXED, 20)
    one, other = choose(known(MIXED, losses)), choose(known(turned, losses))
    assert [chosen.config for chosen in one] == [chosen.config for chosen in other]


def test_a_thousand_arms_and_twenty_parameters_half_of_them_conditional() -> None:
    chosen = choose(known(HALF_CONDITIONAL, bowl(HALF_CONDITIONAL, EXACT + 20), levels=(1, 3, 9)))
    assert len(chosen) == 4


def test_a_search_finds_lower_losses_with_it() -> None:
    def wavy(config: Any) -> Any:
        distance = (math.log10(config["rate"]) + 3) ** 2 + (config["layers"] - 4) ** 2 / 4
        for pull in range(1, 10):
            yield distance + 1 / pull

    space = {"rate": LogUniform(1e-6, 1), "layers": Integer(1, 8), "act": ["relu", "tanh"]}
    policy = Hyperband(arms=60, budget=300, max_pulls=9)
    chosen, random = (
        [search(wavy, space, policy=policy, seed=seed, sampler=one).loss or 0 for seed in range(3)]
        for one in (GaussianProcess(), None)
    )
    assert fmean(chosen) < fmean(random)
