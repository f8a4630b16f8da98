"""The parts of the reproduction: what they write, and that what they claim is what they found."""

import csv
import io
import json
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from matplotlib.figure import Figure

from lastarm import Configs, RecordedCurves, search
from lastarm.cli import main
from lastarm.papers.jamieson2015 import (
    examples,
    figures,
    page,
    redrawn,
    reductions,
    table1,
    theorems,
    tightness,
)
from lastarm.papers.jamieson2015 import grid as choices
from lastarm.papers.jamieson2015.data import classification_table, regression_table
from lastarm.papers.jamieson2015.examples import LinearSVM, SubsetRegression
from lastarm.papers.jamieson2015.experiments import RIDGE, ridge_regression
from lastarm.papers.jamieson2015.page import Part, Settings
from lastarm.papers.jamieson2015.theorems import (
    ENVELOPES,
    Adversary,
    grid,
    played,
)
from lastarm.policies import POLICIES, SuccessiveHalving
from lastarm.space import draw
from lastarm.theory import Envelopes, adversary, halving_regret, uniform_regret
from lastarm.trainers import arm_seed
from tests.refusals import refused

Row = dict[str, str]
DOCS = Path(__file__).parent.parent / "docs" / "jamieson2015"


def rows_of(out: Path, key: str) -> list[Row]:
    with (out / f"{key}.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of the paper in small, by the command: every part, its files and the page."""
    folder = tmp_path_factory.mktemp("reproduced") / "paper"
    ticks: dict[str, list[tuple[int, int]]] = {}

    @contextmanager
    def progress(name: str) -> Iterator[Callable[[int, int], None]]:
        yield lambda done, of: ticks.setdefault(name, []).append((done, of))

    arguments = ["reproduce", "all", "--quick", "--trials", "2", "--out", str(folder)]
    with (
        patch("lastarm.cli.reproduce._progress", progress),
        patch("os.fsync"),
        redirect_stdout(io.StringIO()) as said,
        pytest.raises(SystemExit) as ended,
    ):
        main(arguments)
    assert not ended.value.code
    assert "ours:" in said.getvalue()
    for told in ticks.values():
        assert [done for done, _ in told] == list(range(1, told[-1][1] + 1))
    return folder


@pytest.fixture(scope="module")
def reproduced(out: Path) -> dict[str, Part]:
    """All parts, whose files are in `out`."""
    return {path.stem: page.read(path) for path in sorted(out.glob("*.json"))}


COMMANDS = {
    "traces-digits": "traces --quick",
    "ridge-year-stand-in": "ridge --trials 2 --quick",
    "grid-year-stand-in": "grid --trials 2 --quick",
    "svm-digits": "svm --trials 2 --quick",
    "svm-digits-together": "svm --trials 2 --quick",
    "completion-low-rank-stand-in": "completion --trials 2 --quick",
    "table1": "table1 --quick",
    "theorem1-and-2": "theorems --quick",
    "theorem1-sharper": "theorems --quick",
    "theorem3": "theorems --quick",
    "theorem4": "theorems --quick",
    "doubling": "theorems --quick",
    "reductions": "reductions --trials 2 --quick",
    "subsets": "subsets --trials 2 --quick",
    "linear-svm": "subsets --trials 2 --quick",
}


def test_every_part_writes_its_table_its_words_and_its_figures(
    out: Path, reproduced: dict[str, Part]
) -> None:
    written = (out / "README.md").read_text()
    assert "| claim | paper | ours | axis | data | other choices | holds? |" in written
    made = {key: part.command for key, part in reproduced.items()}
    assert made == {key: f"lastarm reproduce {words}" for key, words in COMMANDS.items()}
    for key, part in reproduced.items():
        assert rows_of(out, key)
        assert part.claims
        assert "\n" not in part.text
        assert "  " not in part.text
        for figure in part.figures:
            assert (out / f"{figure}.png").stat().st_size > 5000
            assert (out / f"{figure}.svg").read_text().startswith("<?xml")
        for claim in part.claims:
            assert claim.claim.replace("|", "\\|") in written


def test_table_1_is_that_of_the_formulas(out: Path, reproduced: dict[str, Part]) -> None:
    rows = rows_of(out, "table1")
    assert {row["policy"] for row in rows} == POLICIES.keys() - {
        "exponential-gap",
        "doubling",
        "hyperband",
        "brackets",
        "asha",
        "horizon-halving",
        "envelope-halving",
        "priced-halving",
        "timed-halving",
    }
    at = {
        row["policy"]: (row["formula"], float(row["most"]), int(row["observed"]))
        for row in rows
        if (row["curves"], row["n"], row["budget"]) == ("alike", "8", "128")
    }
    assert at["uniform"] == ("n", 8, 8)
    assert at["successive-halving"] == ("2n + 1", 17, 8 + 4 + 2)
    assert at["successive-rejects"] == ("(n + 1)n/2", 36, 35)
    assert at["successive-elimination"] == ("n·log₂(2B)", 64, 8 * 5)
    assert at["lil-ucb"] == at["exp3"] == ("B", 128, 128)
    assert [claim.holds for claim in reproduced["table1"].claims] == ["yes"] * 6


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


@pytest.mark.parametrize("name", [name for line in table1.TABLE for name in line.policies])
def test_playing_is_searching(name: str) -> None:
    table = np.random.default_rng(0).integers(0, 9, (10, 30)) / 8
    rows = Configs([{"row": i} for i in range(10)])
    found = search(RecordedCurves(table), rows, policy=POLICIES[name](10, 200))
    again = played(POLICIES[name](10, 200), lambda arm, t: float(table[arm, min(t, 30) - 1]))
    assert again == (found.arm, found.spent.pulls, found.spent.observations)


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


def test_the_sharper_budget_is_enough_and_tight_where_half_are_close(
    out: Path, reproduced: dict[str, Part]
) -> None:
    rows = rows_of(out, "theorem1-sharper")
    for row in rows:
        wrong, sharper, bound = (int(row[key]) for key in ("last_wrong", "by_rung", "theorem_1"))
        assert wrong < sharper < bound
        assert wrong == sharper - 1 or row["family"] != tightness.HALF
    assert {claim.holds for claim in reproduced["theorem1-sharper"].claims} == {"yes"}


def test_theorem_4_holds_and_is_reached_by_uniform_allocation(
    out: Path, reproduced: dict[str, Part]
) -> None:
    rows = rows_of(out, "theorem4")
    for row in rows:
        n, budget, limit = int(row["n"]), int(row["budget"]), float(row["uniform"])
        beta = ENVELOPES[row["envelope"]](n)
        gamma = [beta(t) for t in range(1, budget // n + 1)]
        for policy, of in (("uniform", uniform_regret), ("successive-halving", halving_regret)):
            assert float(row[f"bound-{policy}"]) == pytest.approx(of(gamma, n, budget))
            assert float(row[policy]) <= float(row[f"bound-{policy}"]) + 1e-9
        most = min(1 - 1 / n, 2 * beta(budget // n))
        assert most - 1 / n - 1e-9 <= limit, "the worst arm that the bound allows"
    assert {claim.holds for claim in reproduced["theorem4"].claims} == {"yes"}


def test_the_reductions_have_the_limits_that_they_should() -> None:
    order = np.arange(8.0)
    means = reductions.losses(reductions.MEANS, order, 20_000, np.random.default_rng(1))
    assert means[:, -1] == pytest.approx(0.3 + 0.4 * order / 7, abs=0.02)
    minima = reductions.losses(reductions.MINIMA, order, 20_000, np.random.default_rng(1))
    assert (np.diff(minima, axis=1) <= 0).all()
    assert (minima[:, -1] >= 0.5 * order / 7).all()
    assert minima[:, -1] == pytest.approx(0.5 * order / 7, abs=0.01)


@pytest.mark.parametrize("own", [False, True])
def test_the_record_is_what_the_trainer_does(own: bool) -> None:
    table = regression_table(None, quick=True)
    record = choices.recorded(table, 3, 700, own=own)
    trainer = ridge_regression(table, 3)
    configs = draw(RIDGE.space, RIDGE.arms, 3)
    for arm in (0, 9):
        trainer._seed = arm_seed(3, arm) if own else 3
        one = trainer.start([configs[arm]], [0])
        for upto in (1, 64, 700):
            trainer.train(one, [0], upto - int(one.pulls[0]))
            assert record.val[arm, upto - 1] == pytest.approx(trainer.losses(one, [0])[0], 1e-9)
            assert record.test[arm, upto - 1] == pytest.approx(trainer.tests(one, [0])[0], 1e-9)


def test_every_cell_has_all_policies_and_its_own_choices(out: Path) -> None:
    rows = rows_of(out, "grid-year-stand-in")
    cells = {tuple(row[name] for name in choices.Choices._fields) for row in rows}
    assert len(cells) == len(choices.CELLS) == 16
    assert len({row["policy"] for row in rows}) == 7
    for row in rows:
        assert int(row["pulls"]) <= int(row["budget"])
    ended = {row["leftovers"]: 0 for row in rows}
    for row in rows:
        ended[row["leftovers"]] += int(row["pulls"])
    assert ended["unspent"] <= ended["to the arm"]


def test_a_grid_of_budgets_has_both_ends() -> None:
    assert grid(8, 40, each=2) == [8, 11, 16, 22, 32, 40]


def test_doubling_stops_at_the_first_budget_that_is_enough(
    out: Path, reproduced: dict[str, Part]
) -> None:
    rows = rows_of(out, "doubling")
    for row in rows:
        n, needed, last = (int(row[name]) for name in ("n", "needed", "last_budget"))
        budgets = [n * max(1, (n - 1).bit_length())]
        while budgets[-1] < needed:
            budgets.append(2 * budgets[-1])
        assert last == budgets[-1]
        assert int(row["cold"]) == sum(SuccessiveHalving(n, B).plan().pulls for B in budgets)
        assert int(row["warm"]) <= int(row["cold"])
    kept = next(row for row in rows if row["family"] == "of docs/theory.md")
    names = ("needed", "last_budget", "warm", "cold")
    assert [int(kept[name]) for name in names] == [390, 768, 896, 1530]


def test_the_least_budget_that_is_enough_is_found_among_all_budgets() -> None:
    table = np.random.default_rng(3).integers(0, 9, (6, 12)) / 8
    table[:, -1] += 1
    table[4, -1] = 0

    def loss(arm: int, t: int) -> float:
        return float(table[arm, min(t, 12) - 1])

    instance = theorems.Instance("any", 6, loss, 4, 600)
    wrong = [B for B in range(18, 601) if played(SuccessiveHalving(6, B), loss).arm != 4]
    assert theorems.least_enough(instance) == max(wrong) + 1
    assert theorems.measured(instance)["needed"] == max(wrong) + 1


def test_every_q_and_trial_has_data_of_its_own() -> None:
    tables = [examples.made(4, q, seed)[0][0] for q in examples.DECAYS for seed in (0, 1)]
    assert len({table.tobytes() for table in tables}) == len(tables)
    assert np.array_equal(examples.made(4, examples.DECAYS[0], 0)[0][0], tables[0])


def test_descent_comes_to_the_least_squares_fit() -> None:
    train, val = examples.made(4, 0.9, seed=5)
    arms = [{"features": [0, 1]}, {"features": [1, 3]}, {"features": [0, 2]}]
    trainer = SubsetRegression(train, val, seed=5)
    models = trainer.start(arms, [0, 0, 0])
    trainer.train(models, [0, 1, 2], 40_000)
    for arm, weights in zip(arms, models.weights, strict=True):
        exact = np.linalg.lstsq(train[0][:, arm["features"]], train[1], rcond=None)[0]
        assert np.allclose(weights, exact, atol=0.02)
    assert int(np.argmin(trainer.losses(models, [0, 1, 2]))) == examples.best_subset(
        arms, train, val
    )


@pytest.mark.parametrize("sigmoid", [None, 10.0])
def test_pegasos_is_pegasos_however_it_is_cut_up(sigmoid: float | None) -> None:
    train, val, test = examples.parts_of(classification_table(None), seed=0)
    trainer = LinearSVM(train, val, test, seed=1, sigmoid=sigmoid)
    thetas = [{"theta": 0.01}, {"theta": 0.5}]
    whole, cut = trainer.start(thetas, [0, 0]), trainer.start(thetas, [0, 0])
    assert trainer.losses(whole, [0, 1]).tolist() == ([1, 1] if sigmoid is None else [0.5, 0.5])
    assert trainer.tests(whole, [0]) == 1, "a margin of 0 is wrong"
    trainer.train(whole, [0, 1], 40)
    for pulls in (1, 9, 30):
        trainer.train(cut, [1], pulls)
    assert np.array_equal(whole.weights[1], cut.weights[1])
    with refused("arms", [0, 1]):
        trainer.train(cut, [0, 1], 1)
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


def stopped(after: int) -> Iterator[Any]:
    """A watcher that breaks off a search after so many looks."""
    for _ in range(after):
        yield
    raise KeyboardInterrupt


def test_the_same_seed_gives_the_same_tables_also_when_it_was_killed_and_taken_up(
    out: Path, reproduced: dict[str, Part], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, losses = stopped(after=80), SubsetRegression.losses

    def watched(self: SubsetRegression, batch: Any, arms: Any) -> Any:
        next(looks)
        return losses(self, batch, arms)

    monkeypatch.setattr(SubsetRegression, "losses", watched)
    settings = Settings(tmp_path, trials=2, quick=True)
    with pytest.raises(KeyboardInterrupt):
        examples.subsets(settings)
    monkeypatch.undo()
    monkeypatch.setattr(figures, "save", lambda *given: None)  # drawing takes longer than all else
    assert list(tmp_path.rglob("*.jsonl")), "some of it is in journals"
    for reproduce in (examples.subsets, examples.linear_svm):
        key = reproduce(settings).key
        for name in (f"{key}.csv", f"{key}.json"):
            assert (tmp_path / name).read_bytes() == (out / name).read_bytes()


def test_the_notebook_draws_every_figure_from_the_tables(
    out: Path, reproduced: dict[str, Part], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(out)
    notebook = json.loads((DOCS / "figures.ipynb").read_text())
    shown: list[Figure] = []
    names: dict[str, Any] = {"display": shown.append}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"]
            exec("".join(cell["source"]), names)
    assert names["figures"].keys() == reproduced.keys() - {"linear-svm"}
    assert shown == list(names["figures"].values())
    for key in ("table1", "theorem1-and-2", "theorem1-sharper", "traces-digits"):
        figures.save(names["figures"][key], out / "again", key)
        assert (out / "again" / f"{key}.svg").read_bytes() == (out / f"{key}.svg").read_bytes()
    with refused("key", "linear-svm"):
        redrawn.redrawn(out, "linear-svm")


def test_a_part_says_with_what_it_was_run(out: Path, reproduced: dict[str, Part]) -> None:
    for part in reproduced.values():
        assert part.run["seed"] == 0
        assert part.run["workers"] == 1
        assert {"python", "lastarm", "numpy"} <= part.run["versions"].keys()
        assert len(part.run["rules"]) == 64
    assert f"with python {platform.python_version()}" in (out / "README.md").read_text()


def test_rows_say_which_arm_was_recommended_at_which_level(out: Path) -> None:
    for row in rows_of(out, "ridge-year-stand-in"):
        assert 0 <= int(row["arm"]) < 10
        assert 1 <= int(row["level"]) <= int(row["pulls"])
        assert json.loads(row["config"]).keys() == {"lambda"}
