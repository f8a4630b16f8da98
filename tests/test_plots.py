"""The figures of a search, and what a notebook shows of it."""

import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from math import inf, nan
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from lastarm import (
    Choice,
    LogUniform,
    RecordedCurves,
    Result,
    SuccessiveHalving,
    Uniform,
    UniformAllocation,
    search,
)
from lastarm.events import Event, Failure, Loss, Pull
from lastarm.policies import POLICIES
from lastarm.report.figures.palette import ACCENT, LOOKS
from lastarm.report.importance import importance
from lastarm.trainers import Config
from tests.refusals import refused

FIGURES = ["curves", "rungs", "spending", "importance"]
HOSTILE = "<script>alert('$x_{$')</script>\x1b[31m\u202e&amp;\"'$"


@pytest.fixture(autouse=True)
def _no_figure_is_open() -> Iterator[None]:
    plt.close("all")  # doctests, and others, leave some
    yield
    plt.close("all")


def arm(config: Config) -> Iterator[float]:
    if config == FAILING:
        raise RuntimeError(HOSTILE)
    for level in range(1, 10**9):
        yield config["x"] + 1 / level


SPACE = {"x": LogUniform(0.01, 1), "kind": Choice("good", "fine")}
FAILING = {"x": 0.5, "kind": "fine"}


@pytest.fixture(scope="module")
def result() -> Result:
    return search(arm, SPACE, policy=SuccessiveHalving(16, 256), include=[FAILING])


def told(curves: dict[int, list[tuple[int, float]]], *more: Event) -> Result:
    """A search in which just this was seen."""
    events: list[Event] = []
    for number, curve in curves.items():
        for upto, loss in curve:
            pull = Pull(number, upto, config={"x": number})
            events += [pull, Loss(pull, loss)]
    return Result.of([*events, *more])


def drawn(result: Result, name: str) -> Any:
    axes = getattr(result.plot, name)(Figure().subplots())
    axes.figure.draw_without_rendering()
    return axes


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_drawn_into_the_axes_that_it_is_given(result: Result, name: str) -> None:
    axes = Figure().subplots()
    assert getattr(result.plot, name)(ax=axes) is axes
    assert axes.get_xlabel()
    assert axes.lines or axes.patches
    assert not plt.get_fignums()


@pytest.mark.parametrize("name", FIGURES)
def test_without_axes_it_makes_a_figure_and_leaves_the_settings_alone(
    result: Result, name: str
) -> None:
    before = dict(mpl.rcParams)
    axes = getattr(result.plot, name)()
    assert plt.get_fignums() == [axes.figure.number]
    assert dict(mpl.rcParams) == before
    assert getattr(result.plot, name)().figure is not axes.figure, "never into somebody else's"


def test_pyplot_is_left_alone_where_axes_are_given() -> None:
    code = """
import sys
from matplotlib.figure import Figure
from lastarm import SuccessiveHalving, Uniform, search
def arm(config):
    while True:
        yield config["x"]
result = search(arm, {"x": Uniform(0, 1)}, policy=SuccessiveHalving(8, 96))
for draw in (result.plot.curves, result.plot.rungs, result.plot.spending, result.plot.importance):
    draw(Figure().subplots())
result.plot.policies({"again": result}, ax=Figure().subplots())
assert "<svg" in result._repr_html_()
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_curves_show_every_arm_and_the_recommended_in_another_colour(result: Result) -> None:
    axes = drawn(result, "curves")
    (others,) = (c for c in axes.collections if isinstance(c, LineCollection))
    assert len(others.get_segments()) == len(result.curves) - 1
    (own,) = (line for line in axes.lines if line.get_color() == ACCENT)
    assert result.arm is not None
    assert list(zip(*own.get_data(), strict=True)) == result.curves[result.arm]
    marked = {line.get_label(): len(line.get_xdata()) for line in axes.lines}
    left_behind = marked["left behind"] + marked.get("left behind, above the scale", 0)
    assert left_behind == len(result.curves) - 1
    assert marked["failed or diverged"] == 1
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["4", "12", "28", "60"]
    above = [text.get_text() for text in axes.texts]
    assert above == ["15 arms", "8", "4", "2"], "one of 16 failed before it had a loss"


@pytest.mark.parametrize(
    ("losses", "scale"),
    [
        ([0.1, 0.2, 10.0], "log"),
        ([0.1, 0.2, 0.3], "linear"),
        ([-10.0, 0.1, 10.0], "linear"),
        ([0.0, 0.1, 10.0], "linear"),
        ([1e-100, 1.0, 1e100], "log"),
        ([1e-300, 1.0, 1e300], "linear"),
        ([5e-324, 1.0, 1.7e308], "linear"),
        ([-1.7e308, 1.0, 1.7e308], "linear"),
        ([0.5, 0.5, 0.5], "linear"),
        ([nan, inf, 0.5], "linear"),
        ([nan, inf, -inf], "linear"),
    ],
)
def test_an_axis_is_logarithmic_where_the_losses_want_it(losses: list[float], scale: str) -> None:
    seen = told({number: [(1, loss)] for number, loss in enumerate(losses)})
    assert drawn(seen, "curves").get_yscale() == scale
    for name in FIGURES:
        drawn(seen, name)


def test_one_that_does_very_badly_does_not_press_the_others_into_a_line() -> None:
    seen = told({number: [(1, 1 + number / 10)] for number in range(9)} | {9: [(1, 1e9)]})
    axes = drawn(seen, "curves")
    assert axes.get_ylim()[1] < 10
    (above,) = (line for line in axes.lines if line.get_label() == "left behind, above the scale")
    assert above.get_ydata() < axes.get_ylim()[1], "drawn at the edge, and not left out"


@pytest.mark.parametrize("loss", [nan, inf, -inf])
def test_whoever_diverged_ends_at_the_upper_edge(loss: float) -> None:
    axes = drawn(told({0: [(1, 0.5), (2, 0.25)], 1: [(1, 0.5), (2, loss)]}), "curves")
    (out,) = (line for line in axes.lines if line.get_label() == "failed or diverged")
    assert out.get_data() == ([2], [0.5])


def test_the_recommended_arm_is_on_the_scale_wherever_it_began() -> None:
    seen = told({n: [(1, 1.0 + n / 100)] for n in range(20)} | {20: [(1, 900.0), (2, 0.5)]})
    assert seen.arm == 20
    assert drawn(seen, "curves").get_ylim()[1] > 900


def test_many_arms_are_a_picture_within_a_vector_file() -> None:
    losses = np.random.default_rng(0).random((1100, 4))
    found = search(
        RecordedCurves(losses),
        [{"row": row} for row in range(1100)],
        policy=UniformAllocation(1100, 1100),
        checkpoints=False,
    )
    axes = drawn(found, "curves")
    (others,) = axes.collections
    assert others.get_rasterized()
    assert len(found._repr_html_()) < 200_000


def test_rungs_tell_what_became_of_every_arm(result: Result) -> None:
    axes = drawn(result, "rungs")
    parts = {
        container.get_label(): [round(bar.get_width()) for bar in container]
        for container in axes.containers
    }
    assert parts == {
        "went on": [8, 4, 2, 0],
        "recommended": [0, 0, 0, 1],
        "left behind": [7, 4, 2, 1],
        "failed": [1, 0, 0, 0],
    }
    said = [text.get_text() for text in axes.texts]
    assert [text.partition(",")[0] for text in said] == ["64 pulls"] * 4
    assert all(text.endswith("s") for text in said), "and how long it took"


def test_many_levels_share_bars() -> None:
    seen = told({0: [(level, 1 / level) for level in range(1, 100)], 1: [(1, 2.0), (2, 2.0)]})
    axes = drawn(seen, "rungs")
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert names == ["1", "2 to 3", "4 to 7", "8 to 15", "16 to 31", "32 to 63", "64 to 99"]
    assert [text.get_text() for text in axes.texts][1] == "3 pulls"


def test_the_area_of_spending_is_what_was_spent(result: Result) -> None:
    axes = drawn(result, "spending")
    spent, own, frame = axes.patches
    pulls, places, _ = spent.get_data()
    assert sum(pulls * np.diff(places)) == result.spent.pulls == 256
    assert spent.get_label() == "256 pulls spent"
    assert list(own.get_data().values) == [60]
    assert frame.get_label() == "960 for all to go as far"


def test_importance_is_drawn_as_it_is_estimated(result: Result) -> None:
    axes = drawn(result, "importance")
    shares = importance(result.configs, result.curves)
    assert [bar.get_width() for bar in axes.patches] == list(shares.values())
    assert [tick.get_text() for tick in axes.get_yticklabels()] == list(shares)


def test_policies_are_compared_by_what_they_had_spent(result: Result) -> None:
    uniform = search(arm, SPACE, policy=UniformAllocation(16, 128))
    axes = result.plot.policies({"uniform": uniform, "_again": uniform}, ax=Figure().subplots())
    lines = [line for line in axes.lines if line.get_linestyle() != "None" and line.get_label()]
    steps = [line for line in lines if line.get_drawstyle() == "steps-post"]
    for line, seen in zip(steps, [result, uniform, uniform], strict=True):
        assert np.ravel(line.get_xdata())[-1] == seen.spent.pulls
        assert np.ravel(line.get_ydata())[-1] == seen.best_so_far[-1][1]
    assert steps[0].get_color() == LOOKS["successive-halving"].colour
    assert len({line.get_color() for line in steps}) == 3, "no two look alike"
    legend = axes.get_legend()
    assert legend is not None
    named = [text.get_text().strip() for text in legend.get_texts()]
    assert named == ["Successive Halving", "uniform", "_again"]


def test_policies_are_told_apart_by_name(result: Result) -> None:
    for others in ({"Successive Halving": result}, result, [result]):
        with refused("others"):
            result.plot.policies(others)  # type: ignore[arg-type]
    result.plot.policies({"Successive Halving": result}, name="the first")


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_has_its_figures(policy: str) -> None:
    kind = POLICIES[policy]
    options = {"max_pulls": 27} if "max_pulls" in kind.__dataclass_fields__ else {}
    made = kind(arms=20, budget=600, **options)
    found = search(arm, {"x": Uniform(0.1, 1), "kind": "good"}, policy=made)
    for name in FIGURES:
        drawn(found, name)
    found.plot.policies({"again": found}, ax=Figure().subplots())


def test_there_are_figures_of_almost_nothing() -> None:
    failed = Failure(Pull(0, 3), "no")
    for seen in (Result.of([]), told({0: [(1, 0.5)]}), told({}, Pull(0, 3), failed)):
        for name in FIGURES:
            drawn(seen, name)
        axes: Any = seen.plot.policies({"again": seen}, ax=Figure().subplots())
        axes.figure.draw_without_rendering()
        assert seen._repr_html_()


def test_names_are_text_and_nothing_else() -> None:
    space = {HOSTILE.replace("\x1b", ""): Choice(HOSTILE, "b"), "x": Uniform(0, 1), "$\\frac{": 1}
    found = search(
        (lambda config, state, pulls: config["x"], lambda state: state),
        space,
        policy=SuccessiveHalving(16, 64),
    )
    shown = drawn(found, "importance")
    assert "\u202e" not in "".join(tick.get_text() for tick in shown.get_yticklabels())
    axes: Any = found.plot.policies({"$\\frac{": found, HOSTILE: found})
    axes.figure.draw_without_rendering()


class Elements(HTMLParser):
    """All elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert not any(name.startswith("on") for name, _ in attrs)
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_notebook_shows_the_answer_the_table_and_the_curves(result: Result) -> None:
    page = Elements(result._repr_html_())
    answer = str(result).splitlines()[0]
    assert answer in page.text
    assert "… and 6 more arms" in page.text
    assert {"table", "svg", "path"} <= page.tags
    assert result._repr_html_() == result._repr_html_()


def test_a_notebook_shows_names_and_values_as_text() -> None:
    plain = Elements(told({0: [(1, 0.5)]})._repr_html_())
    pull = Pull(0, 1, config={HOSTILE: HOSTILE, "x": 1})
    bad = Failure(Pull(1, 1, config={HOSTILE: 1}), HOSTILE)
    hostile = Result.of([pull, Loss(pull, 0.5), bad.pull, bad])
    page = hostile._repr_html_()
    assert Elements(page).tags == plain.tags, "no new element"
    assert "<script>alert" in Elements(page).text
    for sign in ("\x1b", "\u202e"):
        assert sign not in page
        assert sign not in str(hostile)


def test_without_matplotlib_a_notebook_has_the_table_and_plots_name_the_extra() -> None:
    code = """
import sys
sys.modules["matplotlib"] = None
from lastarm import SuccessiveHalving, Uniform, search
def arm(config):
    while True:
        yield config["x"]
result = search(arm, {"x": Uniform(0, 1)}, policy=SuccessiveHalving(8, 96))
page = result._repr_html_()
assert "<table>" in page and "<svg" not in page
result.plot.curves()
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stderr.splitlines()[-1].startswith("ImportError: matplotlib is needed")
    assert "pip install 'lastarm[plot]'" in ran.stderr


def test_arms_that_all_failed_are_within_the_picture(tmp_path: Path) -> None:
    failed = [Failure(Pull(number, 8), "ValueError: no") for number in range(4)]
    axes = told({}, *failed).plot.curves()
    plt.gcf().savefig(tmp_path / "failed.png")  # where all collapsed, matplotlib would warn
    low, high = axes.get_xlim()
    assert low < 8 < high
