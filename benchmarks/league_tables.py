"""The tables of a league, and its picture."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

from lastarm.policies.named import name_of
from lastarm.report.figures.drawing import Figure, draw, house, legend, log
from lastarm.report.figures.palette import Look
from league_curves import ARMS, PERCENTS
from league_scores import LOOKS, SPENT, Scores
from record import Cell, Record

DEFAULT = name_of(None, max_pulls=1)
BUDGETS = tuple(enumerate(PERCENTS))


def report(record: Record, scores: Scores, halving: str) -> None:
    """The ranks, then budget by budget who is told apart from whom, and the winners."""
    record.table(f"Mean normalised rank, all {len(scores.tables)} files", ranks(scores, None))
    if len(scores.families) > 1:
        for family in scores.families:
            record.table(f"Mean normalised rank, {family}", ranks(scores, family))
    for k, percent in BUDGETS:
        best, frugal = scores.best(k, list(scores.found)), scores.best(k, scores.frugal)
        record.table(
            f"{percent} %, all files: the best is {best}; of those that look ≤ 3n times, {frugal}",
            {
                name: {
                    "rank": scores.mean(name, k),
                    **ratio(scores.mean(name, k), scores.mean(halving, k)),
                    "− halving": scores.difference(name, halving, k),
                    "− best": scores.difference(name, best, k),
                    "− best of ≤ 3n looks": scores.difference(name, frugal, k),
                    "looks": scores.mean(name, k, LOOKS),
                    "% spent": 100 * scores.mean(name, k, SPENT),
                }
                for name in scores.found
            },
        )
    record.table("The winners", winners(scores, halving))


def ranks(scores: Scores, family: str | None) -> dict[str, dict[str, Cell]]:
    """The mean rank at every budget."""
    return {
        name: {
            **{f"{percent} %": scores.mean(name, k, family=family) for k, percent in BUDGETS},
            f"looks at {PERCENTS[-1]} %": scores.mean(name, -1, LOOKS, family),
            "draws a file": len(cells[0]),
        }
        for name, cells in scores.found.items()
    }


def winners(scores: Scores, halving: str) -> dict[str, dict[str, Cell]]:
    """Who won at every budget, and who may as well have."""
    rows: dict[str, dict[str, Cell]] = {}
    for k, percent in BUDGETS:
        for whom, among in {"": list(scores.found), ", ≤ 3n looks": scores.frugal}.items():
            winner = scores.best(k, among)
            behind = {name: scores.difference(name, winner, k) for name in among if name != winner}
            level = [name for name, (mean, half) in behind.items() if mean <= half]
            rows[f"{percent} %{whom}"] = {
                "winner": winner,
                "rank": scores.mean(winner, k),
                **ratio(scores.mean(winner, k), scores.mean(halving, k)),
                "looks": scores.mean(winner, k, LOOKS),
                "not told apart from it": ", ".join(level) or "nobody",
            }
    return rows


def ratio(rank: float, halving: float) -> dict[str, Cell]:
    """To literal halving, where that is not perfect."""
    return {"÷ halving": rank / halving} if halving else {}


def picture(scores: Scores, halving: str, file: Path) -> None:
    """Two panels: the rank against the budget, and against looks with the middle one."""
    middle = len(PERCENTS) // 2
    markers = cycle("o^vDPX<>ph*")
    with house():
        figure = Figure(figsize=(12, 7))
        left, right = figure.subplots(1, 2, sharey=True)
        for number, name in enumerate(scores.found):
            dashes = ("-", (0, (5, 2)), (0, (1, 1.5)))[number // 10 % 3]
            look = Look(name, f"C{number % 10}", dashes, next(markers), 1.4)
            if name == halving:
                look = Look(name, "#000000", "-", "s", 2.6)
            if name == DEFAULT:
                look = Look(name, "C2", "-", "D", 2.6)
            draw(left, look, PERCENTS, [scores.mean(name, k) for k, _ in BUDGETS])
            draw(right, look, [scores.mean(name, middle, LOOKS)], [scores.mean(name, middle)])
            right.lines[-1].set(ms=9)
        left.set(ylabel="mean normalised rank of the recommended arm (0 is best)")
        left.set(xlabel="budget, % of training all arms fully")
        right.set(xlabel=f"looks at a loss, with a budget of {PERCENTS[middle]} %")
        for axes in (left, right):
            log(axes, "x")
            axes.set_yscale("symlog", linthresh=0.001, linscale=0.4)  # a rank may be 0
            axes.set_ylim(bottom=0)
        left.set_xticks(PERCENTS, [f"{percent} %" for percent in PERCENTS])
        left.xaxis.minorticks_off()
        figure.suptitle(f"{ARMS} arms drawn from each of {len(scores.tables)} files")
        legend(figure, [left, right], 4)
        figure.savefig(file, dpi=150)
