"""How important each hyperparameter was, by estimate."""

from typing import Any

import numpy as np
import pytest

from lastarm import LogUniform, SuccessiveHalving, Uniform, search
from lastarm.report.importance import importance, places

Curves = dict[int, list[tuple[int, float]]]


def seen_once(losses: Any) -> Curves:
    return {arm: [(1, float(loss))] for arm, loss in enumerate(losses)}


def test_what_decides_explains_nearly_all_and_noise_nearly_nothing() -> None:
    random = np.random.default_rng(0)
    configs = [{"noise": random.random(), "x": random.random()} for _ in range(200)]
    shares = importance(configs, seen_once([(c["x"] - 0.3) ** 2 for c in configs]))
    assert list(shares) == ["x", "noise"], "the most important first"
    assert shares["x"] > 0.9
    assert shares["noise"] < 0.05


def test_what_does_nothing_explains_nothing_on_average() -> None:
    found = []
    for seed in range(100):
        random = np.random.default_rng(seed)
        configs = [{"x": x, "kind": "abcdefgh"[int(8 * x)]} for x in random.random(64)]
        found.append(list(importance(configs, seen_once(random.random(64))).values()))
    assert np.mean(found) < 0.03, "not what 8 groups of 64 explain by chance, which is 0.11"


def test_the_scale_of_a_number_and_of_a_loss_does_not_matter() -> None:
    x = np.random.default_rng(1).random(50)
    losses = np.abs(x - 0.5)
    linear = importance([{"x": value} for value in x], seen_once(losses))
    log = importance([{"x": 10.0 ** (9 * value)} for value in x], seen_once(np.exp(20 * losses)))
    assert linear == log


def test_arms_that_were_dropped_early_are_not_taken_for_good_ones() -> None:
    def overfitting(config: Any) -> Any:
        for level in range(1, 1000):
            yield config["x"] + level  # whoever goes on has a higher latest loss

    space = {"x": Uniform(0, 1), "noise": LogUniform(1e-3, 1e3)}
    result = search(overfitting, space, policy=SuccessiveHalving(64, 768))
    shares = importance(result.configs, result.curves)
    assert shares["x"] > 0.9
    assert shares["noise"] < 0.1


def test_arms_are_held_against_those_that_began_at_the_same_level() -> None:
    curves: Curves = {0: [(1, 0.1)], 1: [(1, 0.2)], 2: [(9, 0.8)], 3: [(9, 0.9)]}
    assert places(curves) == {0: 0.25, 1: 0.75, 2: 0.25, 3: 0.75}


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), float("-inf")])
def test_whoever_diverged_is_last_however_far_it_came(loss: float) -> None:
    curves: Curves = {0: [(1, 0.1), (2, loss)], 1: [(1, 0.2)]}
    assert places(curves) == {1: 0.25, 0: 0.75}


def test_options_may_be_anything() -> None:
    options: list[Any] = [None, True, 1, "1", [1, 2], {"a": 1}, max, 10**400, float("nan")]
    configs = [{"x": options[arm % 9]} for arm in range(90)]
    shares = importance(configs, seen_once([arm % 9 for arm in range(90)]))
    assert shares["x"] == pytest.approx(1.0)


def test_a_hyperparameter_is_judged_among_the_arms_that_have_it() -> None:
    configs: list[dict[str, Any]] = [{"kernel": "linear"} for _ in range(20)]
    configs += [{"kernel": "rbf", "gamma": gamma / 20} for gamma in range(20)]
    losses = [0.0] * 20 + [1 + 7 * gamma % 20 / 20 for gamma in range(20)]
    shares = importance(configs, seen_once(losses))
    assert shares["kernel"] > 0.7
    assert shares["gamma"] < 0.3, "that the others have none of it is not its merit"


def test_where_nothing_can_be_told_nothing_is_claimed() -> None:
    assert importance([], {}) == {}
    assert importance([{"x": 1}], seen_once([0.5])) == {}
    assert importance([{"x": 1, "y": 2}, {"x": 1, "y": 3}], seen_once([0.5, 0.5])) == {"y": 0.0}
    assert importance([{"x": "a"}, {"x": "b"}], seen_once([0.1, 0.5])) == {"x": 0.0}
    assert importance({}, seen_once([0.1, 0.5])) == {}, "a journal that says nothing of configs"


def test_the_order_of_the_arms_does_not_matter() -> None:
    random = np.random.default_rng(2)
    configs = {arm: {"x": random.random(), "y": random.random()} for arm in range(30)}
    curves = seen_once(random.choice([0.25, 0.5, 1.0], 30))
    backwards = dict(reversed(curves.items()))
    assert importance(configs, curves) == pytest.approx(importance(configs, backwards))
