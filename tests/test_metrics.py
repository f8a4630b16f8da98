"""Metrics with names: people read `roc_auc 0.93`; the loss, its negative, stays inside."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import SGDClassifier

from lastarm import Integer, LogUniform, Result, SuccessiveHalving, Uniform, search
from lastarm.cli import main
from lastarm.errors import UnknownArgument
from lastarm.events import Loss, Opened, Pull
from lastarm.journal import read
from lastarm.journal.header import header_of, metric_of
from lastarm.ledger.utilisation import Timesheet
from lastarm.report.progress import Told, _Watch
from lastarm.sklearn import HalvingSearch
from lastarm.trainers.estimators import Estimator
from lastarm.trainers.metric import LOSS, Metric
from tests.refusals import refused

X, y = load_breast_cancer(return_X_y=True)
X, y = X[:200], y[:200]
SPACE = {"x": Uniform(0, 1), "depth": Integer(1, 9)}
HOSTILE = "[red]<b>\x1b[31m$x^{2$\n=1+1,\u202e"


def accuracies(config: Any) -> Iterator[dict[str, Any]]:
    """Between 0.5 and 1, higher for a higher x."""
    for level in range(1, 10**6):
        yield {"loss": 0.5 + config["x"] / 2, "f1": level / 1000, "note": "ok", "all": [1, 2]}


def maximized(**more: Any) -> Result:
    policy = SuccessiveHalving(8, 96)
    return search(accuracies, SPACE, policy=policy, maximize=True, **more)


def run(*words: object) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    assert ended.value.code == 0


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def estimator() -> Estimator:
    return Estimator(SGDClassifier(), X, y, scoring="roc_auc")


# What people read ------------------------------------------------------------------------------


def test_a_score_is_read_by_its_name_wherever_a_loss_would_be(
    estimator: Estimator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = tmp_path / "auc.jsonl"
    space = {"alpha": LogUniform(1e-6, 1)}
    result = search(estimator, space, arms=4, budget=16, journal=journal)
    assert result.loss is not None
    figure = f"roc_auc {-result.loss:.6g}"
    run("show", journal)
    told = [str(result), result._repr_html_(), capsys.readouterr().out]
    assert figure in told[0]
    assert f"{-result.loss:.6g}" in told[1]
    assert "highest" in told[2]
    for text in told:
        assert "roc_auc" in text
        assert "loss" not in text.replace("looks at a loss", "")
        assert f"{result.loss:.6g}" not in text
    run("show", journal, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["loss"] == result.loss == -found["roc_auc"]
    assert found["test_loss"] == -found["test_roc_auc"]
    assert found["stretches"][0]["roc_auc"] == found["roc_auc"]


@pytest.mark.parametrize(("name", "label"), [("accuracy", "accuracy"), (None, "value")])
def test_what_is_maximized_is_shown_as_it_is(name: str | None, label: str) -> None:
    result = maximized(metric=name)
    assert result.config is not None
    assert f": {label} {0.5 + result.config['x'] / 2:.6g}, after" in str(result)
    assert result.as_dict()[label] == -result.as_dict()["loss"]
    assert result.digest == maximized().digest


def test_a_name_alone_leaves_the_sign() -> None:
    named = search(accuracies, SPACE, policy=SuccessiveHalving(8, 96), metric="error rate")
    assert named.loss is not None
    assert f"error rate {named.loss:.6g}" in str(named)
    assert named.as_dict()["error rate"] == named.loss


def test_what_has_no_name_is_called_loss() -> None:
    result = search(accuracies, SPACE, policy=SuccessiveHalving(8, 96))
    assert result.metric == LOSS
    assert f": loss {result.loss:.6g}, after" in str(result)
    assert set(result.as_dict()) & {"value", "test_value"} == set()


def test_tune_names_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words: tuple[str, ...] = (
        "tune",
        "tests.test_metrics:accuracies",
        "--param",
        "x=uniform:0:1",
        "--arms",
        "4",
    )
    words += ("--budget", "16", "--maximize", "--metric", "accuracy", "--journal", "t.jsonl")
    run(*words)
    out = capsys.readouterr().out
    assert ", accuracy 0." in out
    assert "highest" in out
    assert "loss" not in out.replace("looks at a loss", "")
    run(*words, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["accuracy"] == -found["loss"]


def test_a_stretch_that_led_to_a_lower_score_says_so(tmp_path: Path) -> None:
    def overfitting(config: Any) -> Iterator[float]:
        for level in range(1, 10**6):
            yield 1 - level / 1000

    for budget in (32, 400):
        policy = SuccessiveHalving(4, budget)
        found = search(
            *(overfitting, SPACE),
            policy=policy,
            maximize=True,
            metric="recall",
            journal=tmp_path / "j.jsonl",
        )
    assert any("led to a lower recall than" in remark for remark in found.remarks())


def test_progress_tells_the_highest_score() -> None:
    drawn: list[Told] = []
    metric = Metric("accuracy", maximize=True)
    watch = _Watch(SuccessiveHalving(8, 96), [{"x": 1}], Timesheet(1), drawn.append, metric)
    watch(Loss(Pull(0, 1), -0.875))
    assert drawn[0].fitted(90)[1] == ", highest accuracy 0.875 (x=1)"
    assert drawn[0].fitted(42)[1] == ", accuracy 0.875 (x=1)"


# Exports ---------------------------------------------------------------------------------------


def test_tables_have_a_column_of_that_name_and_keep_loss(tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"
    result = maximized(metric="accuracy", journal=journal)
    run("export", journal, "-o", tmp_path / "arms.csv")
    run("export", journal, "-o", tmp_path / "events.csv")
    arms, frame = rows(tmp_path / "arms.csv"), result.to_dataframe()
    own = ["arm", "recommended", "pulls", "loss", "error", "losses"]
    assert list(arms[0]) == [*own, "accuracy", "x", "depth", "f1", "note", "all"]
    assert list(frame.columns) == list(arms[0])
    assert [float(row["accuracy"]) for row in arms] == list(-frame["loss"])
    assert [float(row["f1"]) for row in arms] == [at.pulls / 1000 for at in result.standings()]
    curves = result.to_dataframe(curves=True)
    assert list(curves.columns) == ["arm", "pulls", "loss", "accuracy", "f1", "note", "all"]
    told = [row for row in rows(tmp_path / "events.csv") if row["event"] == "loss"]
    assert [float(row["accuracy"]) for row in told] == [-float(row["loss"]) for row in told]


def test_a_name_that_is_taken_gets_another_one(tmp_path: Path) -> None:
    result = maximized(metric="x")
    assert list(result.to_dataframe()["metric_x"]) == list(-result.to_dataframe()["loss"])
    assert list(result.to_dataframe()["x"]) == [config["x"] for config in result.configs]
    assert maximized(metric="arm").as_dict()["metric_arm"] == -(result.loss or 0)


def test_the_figure_is_not_told_twice() -> None:
    scoring = ["roc_auc", "average_precision"]
    trainer = Estimator(SGDClassifier(), X, y, scoring=scoring, metric="average_precision")
    result = search(trainer, {"alpha": LogUniform(1e-6, 1)}, arms=2, budget=4)
    columns = list(result.to_dataframe().columns)
    assert columns[-3:] == ["average_precision", "alpha", "roc_auc"]
    assert "average_precision 0." in str(result)


def test_what_a_trainer_tells_beside_its_loss_is_a_column_of_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = maximized(journal=tmp_path / "j.jsonl")
    run("show", tmp_path / "j.jsonl")
    out = capsys.readouterr().out
    (head,) = (line for line in out.splitlines() if line.split()[:3] == ["arm", "pulls", "value"])
    assert head.split()[3:] == ["x", "depth", "f1", "note"]
    (best,) = (line for line in out.splitlines() if "★" in line)
    assert best.split()[-2:] == [f"{(result.level or 0) / 1000:.4g}", "ok"]
    assert "and 1 more metric: see --json" in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_hostile_name_is_only_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = maximized(metric=HOSTILE, journal=tmp_path / "j.jsonl")
    run("show", tmp_path / "j.jsonl")
    out = capsys.readouterr().out
    for text in (out, str(result), result._repr_html_()):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "[red]<b>" in "".join(out.split())
    assert "&lt;b&gt;" in result._repr_html_()
    assert "<b>\ufffd" not in result._repr_html_()
    run("export", tmp_path / "j.jsonl", "-o", tmp_path / "arms.csv")
    assert len((tmp_path / "arms.csv").read_text(encoding="utf-8").splitlines()) == 9
    assert result.to_dataframe()[HOSTILE].max() == -(result.loss or 0)


# The journal -----------------------------------------------------------------------------------


def test_the_header_has_a_name_only_if_there_is_one(tmp_path: Path) -> None:
    policy = SuccessiveHalving(8, 96)
    search(accuracies, SPACE, policy=policy, journal=tmp_path / "plain.jsonl")
    assert b'"metric":' not in (tmp_path / "plain.jsonl").read_bytes().splitlines()[0]
    result = maximized(metric="accuracy", journal=tmp_path / "named.jsonl")
    opened = header_of(read(tmp_path / "named.jsonl"))
    assert opened.metric == {"name": "accuracy", "maximize": True}
    assert Result.of(read(tmp_path / "named.jsonl")).metric == result.metric


@pytest.mark.parametrize(("first", "then"), [(None, "accuracy"), ("accuracy", None)])
def test_another_name_is_not_another_search(
    first: str | None, then: str | None, tmp_path: Path
) -> None:
    journal = tmp_path / "j.jsonl"
    before = maximized(metric=first, journal=journal)
    content = journal.read_bytes()
    after = maximized(metric=then, journal=journal)
    assert (after.digest, after.nothing_trained) == (before.digest, True)
    assert after.metric.name == (then or "value")
    assert journal.read_bytes() == content


def test_a_journal_of_version_0_1_shows_what_was_maximized() -> None:
    old = Path(__file__).parent / "fixtures" / "journals_0_1" / "maximize.jsonl"
    result = Result.of(read(old))
    assert result.metric == Metric("value", maximize=True)
    assert f": value {-(result.loss or 0):.6g}, after" in str(result)


@pytest.mark.parametrize(
    ("trainer", "metric"),
    [
        ({"estimator": "SGDClassifier", "scoring": "'roc_auc'"}, Metric("roc_auc", maximize=True)),
        ({"estimator": "SGDClassifier", "scoring": "None"}, LOSS),
        ({"kind": "Mine", "scoring": "'roc_auc'"}, LOSS),
    ],
)
def test_a_journal_of_version_0_1_says_how_estimators_are_scored(
    trainer: dict[str, str], metric: Metric
) -> None:
    assert metric_of(Opened(0, {}, {}, trainer)) == metric


def test_elsewhere_the_habit_is_answered_with_what_to_write() -> None:
    with refused("metric", "roc_auc", UnknownArgument) as info:
        HalvingSearch(SGDClassifier(), {}, metric="roc_auc")  # type: ignore[call-arg]
    assert info.value.instead == "scoring"


# Where names come from ------------------------------------------------------------------------


def profit(model: Any, X: Any, y: Any) -> float:
    return float(model.score(X, y))


@pytest.mark.parametrize(
    ("scoring", "metric"),
    [
        (None, LOSS),
        ("score", Metric("score", maximize=True)),
        ("neg_log_loss", Metric("neg_log_loss", maximize=True)),
        (["accuracy", "roc_auc"], Metric("accuracy", maximize=True)),
        ({"gain": profit}, Metric("gain", maximize=True)),
        (profit, Metric("profit", maximize=True)),
        (lambda model, X, y: model.score(X, y), Metric("score", maximize=True)),
    ],
)
def test_an_estimator_is_known_by_its_scoring(scoring: Any, metric: Metric) -> None:
    assert Estimator(SGDClassifier(), X, y, scoring=scoring).shown_as == metric


@pytest.mark.parametrize("scoring", [None, "roc_auc"])
@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])  # in one kernel, or not
def test_halving_search_is_known_by_its_scoring(scoring: str | None, loss: str) -> None:
    halving = HalvingSearch(
        SGDClassifier(loss=loss),
        {"alpha": [1e-4, 1e-3]},
        n_arms=2,
        budget=4,
        scoring=scoring,
        random_state=0,
    ).fit(X, y)
    assert f": {scoring or 'score'} {halving.best_score_:.6g}, after" in str(halving.result_)


def test_what_is_a_score_already_is_not_maximized_again(estimator: Estimator) -> None:
    """Its loss is −score. The negative of that would find the worst model."""
    space = {"alpha": LogUniform(1e-6, 1)}
    once, twice = (search(estimator, space, arms=4, budget=8, maximize=m) for m in (False, True))
    assert (twice.digest, twice.metric) == (once.digest, once.metric)


@pytest.mark.parametrize("name", ["", 3, b"accuracy", ["accuracy"], True])
def test_a_name_is_a_text(name: Any) -> None:
    with refused("metric", name):
        maximized(metric=name)


def test_a_name_does_not_stand_for_two_figures() -> None:
    """Elsewhere `metric` chooses one of the figures that a trainer tells."""
    with refused("metric", "f1"):
        maximized(metric="f1")


def test_a_figure_that_is_not_finite_may_be_told_twice() -> None:
    def diverging(config: Any) -> Iterator[Any]:
        while True:
            value = float("nan") if config["x"] > 0.5 else 0.5
            yield {"loss": value, "accuracy": value}

    found = search(diverging, SPACE, arms=8, budget=96, maximize=True, metric="accuracy")
    assert list(found.to_dataframe().columns)[-3:] == ["accuracy", "x", "depth"]


# Figures ---------------------------------------------------------------------------------------


def test_figures_are_drawn_upwards_and_have_the_name() -> None:
    result = maximized(metric="accuracy")
    axes: Any = result.plot.curves()
    assert axes.get_ylabel() == "accuracy"
    low, high = axes.get_ylim()
    assert 0 < low < -(result.loss or 0) < high
    axes = result.plot.policies({"again": maximized(metric="accuracy")})
    assert axes.get_ylabel() == "highest accuracy so far"
    assert min(line.get_ydata()[-1] for line in axes.get_lines()) > 0


def test_a_hostile_name_is_not_taken_for_mathematics(tmp_path: Path) -> None:
    result = maximized(metric=HOSTILE)
    drawn: list[Any] = [result.plot.curves(), result.plot.policies({"again": result})]
    for axes in drawn:
        assert "$x^{2$" in axes.get_ylabel()
        axes.figure.savefig(tmp_path / "figure.svg")
