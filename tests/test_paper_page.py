"""The page of the reproduction and its figures: what they show, in what order, byte for byte."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from lastarm.papers.jamieson2015 import figures
from lastarm.papers.jamieson2015.intervals import Sample
from lastarm.papers.jamieson2015.page import Claim, Part, write, write_page
from lastarm.papers.jamieson2015.rules import RULES
from lastarm.policies import POLICIES
from lastarm.report.figures.palette import COLOURS, LABELS, LOOKS
from tests.refusals import refused

COMPARED = (
    "uniform",
    "successive-halving",
    "successive-rejects",
    "successive-elimination",
    "lucb",
    "lil-ucb",
    "exp3",
)
CURVES = {arm: [(t, 0.2 + 0.1 * arm + 0.1 / t) for t in (1, 10, 100)] for arm in range(5)}


def rows(spread: float = 10.0, shorter: str = "exp3", trials: int = 4) -> list[dict[str, Any]]:
    """A table as the parts write it; one policy stops at half the greatest budget."""
    return [
        {
            "trial": trial,
            "policy": policy,
            "budget": 2**k,
            "train_seconds": 2**k / 1000,
            "loss_seconds": 0.5,
            "test_loss": 1 + (spread - 1) * (10 - k) / 6 + 0.01 * trial,
        }
        for policy in COMPARED
        for trial in range(trials)
        for k in range(4, 10 if policy == shorter else 11)
    ]


def drawn(table: list[dict[str, Any]]) -> Figure:
    return figures.comparison(table, title="Ridge on songs", unit="one sample each", ylabel="mse")


def written(out: Path, key: str, **fields: Any) -> None:
    fields = {"title": f"The {key}", "text": "", "claims": ()} | fields
    for name in fields.get("figures", ()):
        for ending in ("png", "svg"):
            (out / f"{name}.{ending}").touch()
    write(Part(key=key, **fields), [{"trial": 0}], out)


# The page ------------------------------------------------------------------------------------


def test_parts_stand_in_the_order_of_the_paper(tmp_path: Path) -> None:
    keys = (
        "aside",
        "linear-svm",
        "subsets",
        "doubling",
        "theorem1-and-2",
        "table1",
        "completion",
        "svm-a9a",
        "svm",
    )
    for key in (*keys, "zero", "ridge-songs", "ridge", "traces"):
        written(tmp_path, key)
    page = write_page(tmp_path).read_text()
    titles = [line[7:] for line in page.splitlines() if line.startswith("## ")]
    assert " ".join(titles) == (
        "traces ridge ridge-songs svm svm-a9a completion table1 theorem1-and-2 "
        "doubling subsets linear-svm aside zero"
    )


def test_all_claims_are_in_one_table_and_stay_in_their_cells(tmp_path: Path) -> None:
    written(tmp_path, "ridge", claims=[Claim("faster", "2–4 times", "3.1 times", "songs", "yes")])
    halves = Claim("|S|\nhalves", "n|m", "n", "made", "in part", "seconds", "yes for c = 0")
    written(tmp_path, "table1", claims=[halves])
    page = write_page(tmp_path).read_text()
    assert (
        "| claim | paper | ours | axis | data | other choices | holds? |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n"
        "| faster | 2–4 times | 3.1 times |  | songs |  | yes |\n"
        "| \\|S\\| halves | n\\|m | n | seconds | made | yes for c = 0 | in part |\n"
        "\n"
    ) in page


def test_a_part_has_its_text_figures_files_and_command(tmp_path: Path) -> None:
    command = "lastarm reproduce ridge --trials 32"
    written(tmp_path, "ridge", text="What was done.", figures=["ridge-songs"], command=command)
    assert (
        write_page(tmp_path)
        .read_text()
        .endswith(
            "## The ridge\n\n"
            "What was done.\n\n"
            "![The ridge: ridge-songs](ridge-songs.png)\n\n"
            "Files: [ridge-songs.svg](ridge-songs.svg), [ridge.csv](ridge.csv).\n\n"
            "Made by `lastarm reproduce ridge --trials 32`.\n"
        )
    )


def test_the_same_parts_give_the_same_page_wherever_they_lie(tmp_path: Path) -> None:
    for out, keys in ((tmp_path / "a", ("svm", "ridge")), (tmp_path / "b", ("ridge", "svm"))):
        out.mkdir()
        for key in keys:
            written(out, key, figures=[key], claims=[Claim("ν ≥ γ", "", "", "", "no")])
    assert write_page(tmp_path / "a") == tmp_path / "a" / "README.md"
    write_page(tmp_path / "b")
    first = (tmp_path / "a" / "README.md").read_bytes()
    assert first == (tmp_path / "b" / "README.md").read_bytes()
    assert first == write_page(tmp_path / "a").read_bytes()  # nor does an older page matter


@pytest.mark.parametrize("content", ["{", "[]", "{}", json.dumps({"claims": [], "new": 1})])
def test_a_part_that_cannot_be_read_is_named(tmp_path: Path, content: str) -> None:
    written(tmp_path, "ridge")
    (tmp_path / "svm.json").write_text(content)
    with refused("out", tmp_path / "svm.json"):
        write_page(tmp_path)


@pytest.mark.parametrize("name", ["one.png", "one.svg", "ridge.csv"])
def test_a_file_that_the_page_would_point_at_has_to_be_there(tmp_path: Path, name: str) -> None:
    written(tmp_path, "ridge", figures=["one"])
    (tmp_path / name).unlink()
    with refused("out", tmp_path / name):
        write_page(tmp_path)
    assert not (tmp_path / "README.md").exists()


def test_without_parts_there_is_no_page(tmp_path: Path) -> None:
    with refused("out", tmp_path):
        write_page(tmp_path)


def test_the_page_in_the_docs_is_made_of_its_parts(tmp_path: Path) -> None:
    docs = Path(__file__).parent.parent / "docs" / "jamieson2015"
    copy = shutil.copytree(docs, tmp_path / "copy")
    assert write_page(copy).read_text() == (docs / "README.md").read_text()


# The figures ---------------------------------------------------------------------------------


def test_every_policy_of_the_paper_has_a_colour_and_a_line_of_its_own() -> None:
    assert set(COMPARED) <= set(POLICIES)
    assert set(COLOURS) == set(LABELS) == set(COMPARED)
    assert len(set(COLOURS.values())) == len(COMPARED)
    assert len({look.marker for look in LOOKS.values()}) == len(COMPARED)
    assert len({(look.dashes, look.width) for look in LOOKS.values()}) == len(COMPARED)


def test_test_errors_has_labelled_axes_and_says_what_it_shows() -> None:
    left, right = (figure := drawn(rows())).axes
    assert left.get_xlabel() == "iterations (one sample each), all arms together"
    assert right.get_xlabel() == "wall-clock seconds of training and looking"
    assert left.get_ylabel() == "mse"
    assert figure.get_suptitle().startswith("Ridge on songs\nmean of 4 trials")
    assert [axes.get_xscale() for axes in (left, right)] == ["log", "log"]


@pytest.mark.parametrize(("spread", "scale"), [(2.0, "linear"), (10.0, "log")])
def test_errors_far_apart_have_a_logarithmic_axis(spread: float, scale: str) -> None:
    assert [axes.get_yscale() for axes in drawn(rows(spread)).axes] == [scale, scale]


def test_the_line_is_the_mean_over_trials_and_the_band_its_interval() -> None:
    table = [row for row in rows(trials=12) if row["policy"] == "uniform"]
    line = figures.PolicyLine.of(Sample(table), "uniform")
    assert line.budgets.tolist() == [16, 32, 64, 128, 256, 512, 1024]
    assert line.costs[0] == pytest.approx(0.516)
    assert line.mean[-1] == pytest.approx(1.055)
    assert 1.03 < line.low[-1] < 1.04
    assert 1.07 < line.high[-1] < 1.08
    figure = drawn(table)
    left, right = figure.axes
    assert np.array_equal(left.lines[0].get_xydata(), np.c_[line.budgets, line.mean])
    assert np.array_equal(right.lines[0].get_xydata(), np.c_[line.costs, line.mean])
    assert "95 % intervals" in figure.get_suptitle()
    assert "intervals" not in drawn(rows(trials=2)).get_suptitle(), "of two trials there are none"


def test_the_rules_that_changed_are_on_the_page(tmp_path: Path) -> None:
    written(tmp_path, "ridge")
    page = write_page(tmp_path).read_text()
    for change in RULES["changed"]:
        assert " | ".join(change[name] for name in ("rule", "was", "now", "when")) in page


def test_where_a_policy_ends_before_others_is_marked() -> None:
    figure = drawn(rows())
    for axes, x in zip(figure.axes, (512, 1.012), strict=True):
        (mark,) = (line for line in axes.lines if line.get_marker() == "o")
        assert mark.get_color() == COLOURS["exp3"]
        assert mark.get_xydata()[0, 0] == pytest.approx(x)  # type: ignore[index]
    (legend,) = figure.legends
    assert legend.get_texts()[-1].get_text() == "looks at every pull, so it ends here"


def test_where_all_end_together_nothing_is_marked() -> None:
    figure = drawn(rows(shorter=""))
    assert not any(line.get_marker() == "o" for axes in figure.axes for line in axes.lines)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*LABELS.values()]


def test_where_a_trial_diverged_the_line_has_a_gap(tmp_path: Path) -> None:
    table = rows()
    table[2]["test_loss"] = float("inf")
    table += [row | {"policy": "somebody-elses"} for row in table if row["policy"] == "lucb"]
    figure = drawn(table)
    assert np.isnan(figure.axes[0].lines[2].get_ydata()).sum() == 1
    figures.save(figure, tmp_path, "gap")


def test_traces_show_every_arm_and_name_the_highlighted() -> None:
    figure = figures.traces(CURVES, title="Five arms", ylabel="error", highlight=[0, 4])
    (axes,) = figure.axes
    assert len(axes.lines) == len(CURVES)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
    assert (axes.get_title(), axes.get_ylabel()) == ("Five arms", "error")
    assert axes.get_xlabel() == "iterations of the arm"
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["arm 0, which ends at 0.201", "arm 4, which ends at 0.601"]


def test_scaling_draws_policies_as_elsewhere_and_references_dashed() -> None:
    n = [4, 16, 64]
    lines = {"uniform": (n, [k**2 for k in n]), "Theorem 2": (n, [2 * k**2 for k in n])}
    references = {"n²": (n, [k**2 for k in n])}
    (axes,) = figures.scaling(
        lines, title="Budgets", xlabel="arms n", ylabel="pulls", references=references
    ).axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [line.get_label() for line in axes.lines] == ["uniform", "Theorem 2", "n²"]
    assert axes.lines[0].get_color() == COLOURS["uniform"] != axes.lines[1].get_color()
    assert axes.lines[2].is_dashed()


def test_the_same_numbers_give_the_same_files(tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    table = rows(trials=2)
    for out, font in ((tmp_path / "a", 10), (tmp_path / "b", 17)):
        with mpl.rc_context({"font.size": font}):  # the user's settings change nothing
            figures.save(drawn(table), out, "ridge")
            shown = figures.traces(CURVES, title="", ylabel="", highlight=[1])
            figures.save(shown, out, "traces")
    assert dict(mpl.rcParams) == before
    names = ["ridge.png", "ridge.svg", "traces.png", "traces.svg"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == names
    for name in names:
        first = (tmp_path / "a" / name).read_bytes()
        assert first == (tmp_path / "b" / name).read_bytes()
        assert mpl.__version__.encode() not in first
        assert b"date>" not in first


def test_without_matplotlib_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\nimport lastarm.papers.jamieson2015.figures"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'lastarm[plot]'" in ran.stderr
