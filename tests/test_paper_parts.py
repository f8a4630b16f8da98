"""The parts of the reproduction: what they write, and that what they claim is what they found."""

import csv
from collections.abc import Callable, Iterator
from math import log2
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from lastarm import Configs, RecordedCurves, search
from lastarm.papers.jamieson2015 import parts
from lastarm.papers.jamieson2015.descent import LinearSVM, SubsetRegression
from lastarm.papers.jamieson2015.doubling import Instance, doubling_trick, least_enough, measured
from lastarm.papers.jamieson2015.linear_svm import linear_svm, parts_of_digits
from lastarm.papers.jamieson2015.parts import Part, Settings
from lastarm.papers.jamieson2015.subsets import best_subset, made, subsets
from lastarm.papers.jamieson2015.table1 import table1
from lastarm.papers.jamieson2015.theorems import adversary_at_work, budgets_needed, grid
from lastarm.papers.jamieson2015.worst_case import ENVELOPES, Adversary, played
from lastarm.policies import POLICIES, SuccessiveHalving, UniformAllocation
from lastarm.theory import Envelopes, adversary

Row = dict[str, str]
PARTS: list[Callable[[Settings], Part]] = [
    table1,
    budgets_needed,
    adversary_at_work,
    doubling_trick,
    subsets,
    linear_svm,
]


def rows_of(out: Path, key: str) -> list[Row]:
    with (out / f"{key}.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reproduced")


@pytest.fixture(scope="module")
def reproduced(out: Path) -> dict[str, Part]:
    """All parts, quickly, and their files in `out`."""
    ticks: list[tuple[int, int]] = []
    settings = Settings(out, quick=True, progress=lambda done, of: ticks.append((done, of)))
    made: dict[str, Part] = {}
    for reproduce in PARTS:
        ticks.clear()
        part = reproduce(settings)
        made[part.key] = part
        assert [done for done, _ in ticks] == list(range(1, ticks[-1][1] + 1))
    return made


def test_every_part_writes_its_table_its_words_and_its_figures(
    out: Path, reproduced: dict[str, Part]
) -> None:
    keys = ["table1", "theorem1-and-2", "theorem3", "doubling", "subsets", "linear-svm"]
    assert list(reproduced) == keys
    for key, part in reproduced.items():
        assert parts.read(out / f"{key}.json") == part
        assert rows_of(out, key)
        assert part.claims
        assert "\n" not in part.text
        assert "  " not in part.text
        for figure in part.figures:
            assert (out / f"{figure}.png").stat().st_size > 5000
            assert (out / f"{figure}.svg").stat().st_size > 5000


def test_a_line_of_table_1_holds_if_no_count_is_above_its_formula(
    out: Path, reproduced: dict[str, Part]
) -> None:
    formulas: dict[str, Callable[[int, int], float]] = {
        "n": lambda n, B: n,
        "2n + 1": lambda n, B: 2 * n + 1,
        "(n + 1)n/2": lambda n, B: n * (n + 1) / 2,
        "n·log₂(2B)": lambda n, B: n * log2(2 * B),
        "B": lambda n, B: B,
    }
    rows = rows_of(out, "table1")
    assert {row["policy"] for row in rows} == POLICIES.keys() - {
        "exponential-gap",
        "doubling",
        "hyperband",
        "asha",
    }
    for row in rows:
        most = formulas[row["formula"]](int(row["n"]), int(row["budget"]))
        assert row["at_most"] == str(int(row["observed"]) <= most)
        if row["formula"] == "B" and row["curves"] == "alike":
            assert int(row["observed"]) >= most - 1, "they use their budgets"
    *lines, only = reproduced["table1"].claims
    assert len(lines) == len(formulas)
    for claim in lines:
        within = [row["at_most"] == "True" for row in rows if row["formula"] == claim.paper]
        assert claim.holds == ("yes" if all(within) else "no")
    assert only.holds == "yes"


def test_the_adversary_of_the_parts_is_that_of_the_theory() -> None:
    n, steps = 5, 300
    for envelope in ENVELOPES.values():
        beta = envelope(n)
        ours = Adversary(n, beta)
        theirs = adversary([a / n for a in range(1, n + 1)], beta, steps)
        mine = [[ours.loss(arm, t) for t in range(1, steps)] for arm in range(n)]
        assert np.allclose(mine, theirs[:, :-1], rtol=0, atol=1e-15)
        for exact, seen in zip(ours.settling, Envelopes(theirs).gaps_settle, strict=True):
            assert seen == min(exact, steps)


def test_playing_is_searching() -> None:
    table = np.random.default_rng(0).integers(0, 9, (10, 30)) / 8
    for policy in (SuccessiveHalving(10, 200), UniformAllocation(10, 99)):
        rows = Configs([{"row": i} for i in range(10)])
        found = search(RecordedCurves(table), rows, policy=policy)
        again = played(
            type(policy)(10, policy.budget), lambda arm, t: float(table[arm, min(t, 30) - 1])
        )
        assert again == (found.arm, found.spent.pulls)


def test_theorems_1_to_3_hold_as_the_tables_say(out: Path, reproduced: dict[str, Part]) -> None:
    for row in rows_of(out, "theorem1-and-2"):
        assert int(row["last_wrong"]) <= int(row["bound"])
        assert int(row["last_wrong"]) < int(row["needed"]) <= 2 * int(row["bound"])
    rows = rows_of(out, "theorem3")
    below = [row for row in rows if int(row["budget"]) < int(row["uniform_need"])]
    assert all(int(row["uniform"]) > 1 for row in below)
    assert all(int(row["uniform"]) == 1 for row in rows if row not in below)
    assert all(
        int(row["successive-halving"]) == 1
        for row in rows
        if int(row["budget"]) > int(row["halving_bound"])
    )
    for key in ("theorem1-and-2", "theorem3"):
        assert {claim.holds for claim in reproduced[key].claims} == {"yes"}


def test_a_grid_of_budgets_has_both_ends() -> None:
    assert grid(8, 40, each=2) == [8, 11, 16, 22, 32, 40]


def test_doublings_claims_are_of_the_table(out: Path, reproduced: dict[str, Part]) -> None:
    rows = rows_of(out, "doubling")
    for row in rows:
        assert int(row["last_budget"]) < 2 * int(row["needed"])
        assert int(row["warm"]) <= int(row["cold"]) < 4 * int(row["needed"])
    verdicts = [claim.holds for claim in reproduced["doubling"].claims]
    for verdict, name in zip(verdicts[1:], ("warm_times", "cold_times"), strict=True):
        within = [float(row[name]) <= 2 for row in rows]
        half = "in part" if 2 * sum(within) >= len(within) else "no"
        assert verdict == ("yes" if all(within) else half)
    kept = next(row for row in rows if row["family"] == "of docs/theory.md")
    assert [int(kept[k]) for k in ("needed", "last_budget", "warm", "cold")] == [
        390,
        768,
        896,
        1530,
    ]


def test_the_least_budget_that_is_enough_is_found_among_all_budgets() -> None:
    table = np.random.default_rng(3).integers(0, 9, (6, 12)) / 8
    table[:, -1] += 1
    table[4, -1] = 0

    def loss(arm: int, t: int) -> float:
        return float(table[arm, min(t, 12) - 1])

    instance = Instance("any", 6, loss, 4, 600)
    wrong = [B for B in range(18, 601) if played(SuccessiveHalving(6, B), loss).arm != 4]
    assert least_enough(instance) == max(wrong) + 1
    assert measured(instance)["needed"] == max(wrong) + 1


def test_halvings_factor_is_of_what_each_needed(out: Path, reproduced: dict[str, Part]) -> None:
    rows = rows_of(out, "subsets")
    ratios = []
    for q, trial in {(row["q"], row["trial"]) for row in rows}:
        need = {}
        for policy in ("successive-halving", "uniform"):
            mine = [r for r in rows if (r["q"], r["trial"], r["policy"]) == (q, trial, policy)]
            last = max((int(r["budget"]) for r in mine if r["found"] == "False"), default=0)
            greater = [int(r["budget"]) for r in mine if int(r["budget"]) > last]
            need[policy] = min(greater, default=2 * last)
        ratios.append(need["uniform"] / need["successive-halving"])
    (claim,) = reproduced["subsets"].claims
    assert f"a factor of {median(ratios):g} in the median" in claim.ours
    expected = "yes" if median(ratios) >= 2 else "in part" if median(ratios) >= 1 else "no"
    assert claim.holds == expected


def test_descent_comes_to_the_least_squares_fit() -> None:
    train, val = made(4, 0.9, seed=[5])
    arms = [{"features": [0, 1]}, {"features": [1, 3]}, {"features": [0, 2]}]
    trainer = SubsetRegression(train, val, seed=5)
    models = trainer.start(arms, [0, 0, 0])
    trainer.train(models, [0, 1, 2], 40_000)
    for arm, weights in zip(arms, models.weights, strict=True):
        exact = np.linalg.lstsq(train[0][:, arm["features"]], train[1], rcond=None)[0]
        assert np.allclose(weights, exact, atol=0.02)
    assert int(np.argmin(trainer.losses(models, [0, 1, 2]))) == best_subset(arms, train, val)


@pytest.mark.parametrize("sigmoid", [None, 10.0])
def test_pegasos_is_pegasos_however_it_is_cut_up(sigmoid: float | None) -> None:
    train, val, test = parts_of_digits(seed=0)
    trainer = LinearSVM(train, val, test, seed=1, sigmoid=sigmoid)
    thetas = [{"theta": 0.01}, {"theta": 0.5}]
    whole, cut = trainer.start(thetas, [0, 0]), trainer.start(thetas, [0, 0])
    trainer.train(whole, [0, 1], 40)
    for pulls in (1, 9, 30):
        trainer.train(cut, [1], pulls)
    assert np.array_equal(whole.weights[1], cut.weights[1])
    order = np.random.default_rng([1, 0]).permutation(len(train[1]))
    w, lam = np.zeros(64), 2 * 0.5
    for t, row in enumerate(order[:40], start=1):
        x, y = train[0][row], train[1][row]
        inside = y * (w @ x) < 1
        w = (1 - 1 / t) * w + inside * y * x / (lam * t)
    assert np.allclose(w, cut.weights[1], rtol=1e-12)
    margins = val[1] * (val[0] @ w)
    seen = float(trainer.losses(cut, [1])[0])
    if sigmoid is None:
        assert seen == pytest.approx((margins < 0).mean())
    else:
        assert seen == pytest.approx((1 / (1 + np.exp(sigmoid * margins))).mean())
    assert trainer.tests(cut, [1])[0] == ((test[1] * (test[0] @ w)) < 0).mean()


def test_the_svms_claims_are_of_the_table(out: Path, reproduced: dict[str, Part]) -> None:
    rows = rows_of(out, "linear-svm")
    _, faster, footnote = reproduced["linear-svm"].claims

    def mean(policy: str, budget: int) -> float:
        key = (policy, str(budget), "")
        chosen = [r for r in rows if (r["policy"], r["budget"], r["sigmoid"]) == key]
        return float(np.mean([float(r["test_error"]) for r in chosen]))

    budgets = [32 * 5 * 4**k for k in range(4)]
    goal = mean("uniform", budgets[-1])
    least = min((B for B in budgets if mean("successive-halving", B) <= goal), default=10**9)
    factor = budgets[-1] / least
    assert faster.holds == ("yes" if factor >= 10 else "in part" if factor >= 2 else "no")
    assert footnote.holds in ("yes", "no")
    assert {row["sigmoid"] for row in rows} == {"", "1.0", "10.0", "100.0", "1000.0"}


def stopped(after: int) -> Iterator[Any]:
    """A watcher that breaks off a search after so many looks."""
    for _ in range(after):
        yield
    raise KeyboardInterrupt


def test_the_same_seed_gives_the_same_tables_also_when_it_was_killed_and_taken_up(
    out: Path, reproduced: dict[str, Part], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = stopped(after=150)
    for trainer in (SubsetRegression, LinearSVM):
        losses = trainer.losses

        def watched(self: Any, batch: Any, arms: Any, losses: Callable[..., Any] = losses) -> Any:
            next(looks)
            return losses(self, batch, arms)

        monkeypatch.setattr(trainer, "losses", watched)
    settings = Settings(tmp_path, quick=True)
    with pytest.raises(KeyboardInterrupt):
        subsets(settings)
    monkeypatch.undo()
    assert list(tmp_path.rglob("*.jsonl")), "some of it is in journals"
    for reproduce in (subsets, linear_svm):
        key = reproduce(settings).key
        for name in (f"{key}.csv", f"{key}.json"):
            assert (tmp_path / name).read_bytes() == (out / name).read_bytes()
