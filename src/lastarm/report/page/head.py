"""The top of a search's page: the answer in words, and what it cost."""

from __future__ import annotations

from itertools import pairwise

from lastarm.events import Opened, Pull
from lastarm.ledger import Ledger, Spent
from lastarm.report.phrases import clean, counted, duration


def headline(answer: Pull | None, state: str, begun: bool) -> str:
    """The answer in a line."""
    if answer:
        return f"Arm {answer.arm} " + ("is recommended" if state == "complete" else "leads so far")
    return "No arm has a finite loss" if begun else "Nothing has been tried yet"


def search(opened: Opened | None, ledger: Ledger, journal: str | None) -> str:
    """What was searched, in a line; the seed is known from a journal only."""
    if not opened:
        return ""
    arguments = {name: value for name, value in opened.policy.items() if name != "name"}
    if len(ledger.stretches) > 1:
        arguments["budget"] = " → ".join(f"{stretch.budget:,}" for stretch in ledger.stretches)
    said = [str(opened.policy.get("name", "?"))]
    said += [
        f"{name.replace('_', ' ')} {value:,}" if type(value) is int else f"{name} {value}"
        for name, value in (arguments | ({"seed": opened.seed} if journal else {})).items()
    ]
    return clean(", ".join(said))


def notes(opened: Opened | None, journal: str | None, arms: int, shown: int) -> list[str]:
    """What a reader should know before looking at figures."""
    notes = []
    if opened and opened.trainer.get("kind") == "Maximized":
        notes.append(
            "This search makes its figure as large as it can. A loss is the figure's negative: "
            "−0.9 stands for a figure of 0.9."
        )
    if not journal:
        notes.append(
            "This search kept no journal, so when each pull was done, and by whom, is not known."
        )
    if arms > shown:
        notes.append(
            f"Of {arms:,} arms the best {shown:,} are shown one by one; all of them count in "
            "the figures of rungs and of what was spent."
        )
    return notes


def cost(answer: Pull | None, arms: int, spent: Spent) -> list[str]:
    """What was spent, and what training everything would have cost."""
    said = [f"Spent: {counted(spent.pulls, 'pull')} and {counted(spent.observations, 'look')}"]
    if spent.train_seconds + spent.loss_seconds:
        said[0] += f", {duration(spent.train_seconds + spent.loss_seconds)} of work"
    whole = arms * answer.upto if answer else 0
    if whole > spent.pulls > 0:
        said.append(
            f"Training all {counted(arms, 'arm')} for {whole // arms:,} pulls each, as far as the "
            f"recommended one, would have cost {whole:,} pulls, {whole / spent.pulls:.1f} times "
            "as many"
        )
        if spent.train_seconds:
            each = spent.train_seconds / (spent.pulls + spent.repeated)
            said[1] += f": about {duration(each * whole)} of training, at {duration(each)} a pull"
    return [f"{sentence}." for sentence in said]


def stretches(ledger: Ledger) -> list[str]:
    """What each stretch of a search that was extended spent, and what it came to."""
    if len(ledger.stretches) < 2:
        return []
    said = ["It was extended."]
    sums = [*(stretch.before for stretch in ledger.stretches), ledger.spent]
    for stretch, (before, after) in zip(ledger.stretches, pairwise(sums), strict=True):
        came = (
            f"With a budget of {stretch.budget:,}: {counted(after.pulls - before.pulls, 'pull')}"
        )
        came += f" and {counted(after.observations - before.observations, 'look')}"
        if closed := stretch.closed:
            loss = dict(ledger.curves.get(closed.arm, [])).get(closed.upto)
            came += f", then arm {closed.arm} after {counted(closed.upto, 'pull')}"
            came += "" if loss is None else f", with a loss of {loss:.6g}"
        said.append(f"{came}.")
    return said
