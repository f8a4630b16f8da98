"""The paper's three experiments as parts of the page: run, drawn, and held against its claims.

A policy reaches an error where its mean over trials first comes down to it; between two budgets,
this is read from a line over the logarithm of the cost. "Ten times faster" means that the other
policy needs ten times as much to reach the same error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from math import exp, inf, log, nan
from statistics import mean, median
from typing import Literal, NamedTuple

from lastarm.papers.jamieson2015 import figures
from lastarm.papers.jamieson2015.experiments import COMPLETION, RIDGE, SVM, Experiment, run
from lastarm.papers.jamieson2015.page import Claim, Part, Row, Settings, command, verdict
from lastarm.report.figures.palette import LABELS

Rows = Sequence[Row]
Cost = Literal["iterations", "seconds"]

NOTES = {
    RIDGE.name: (
        "The step is .01/√(2 + T), where T counts the earlier pulls of the arm. A policy that is "
        "sure before its budget is spent gives the rest to the arm that it found."
    ),
    SVM.name: (
        "With every dimension at variance 1, squared distances are near 2d, and γ ≥ 1 would make "
        "the kernel an identity: so rows are divided by √(2d). Splits keep the classes in "
        "proportion. An output of 0 counts as wrong."
    ),
    COMPLETION.name: (
        "The step is .01 in the first epoch and shrinks by a factor of .9 from each epoch to the "
        "next; the penalty of a user or an item counts once an epoch, spread over its ratings. "
        "The arm is recommended as it is, not in its best state: an arm that is trained for too "
        "long overfits, and its error rises again."
    ),
}


def compared(experiment: Experiment, settings: Settings, *, together: bool = False) -> Part:
    """Run an experiment, draw it and judge the paper's claims by it."""
    experiment = experiment.quick() if settings.quick else experiment
    data, rows = run(experiment, settings, together=together)
    trials = settings.trials or experiment.trials
    how = "many at a time, in one kernel" if together else "one at a time"
    title = f"{experiment.title} on {data.name}{', arms together' * together}"
    key = f"{experiment.name}-{data.name}{'-together' * together}"
    figure = figures.comparison(
        rows, title=title, unit=f"{experiment.pull} each", ylabel=experiment.error
    )
    repeated = f"{trials} trial{'s' * (trials > 1)}"
    held = f"{data.name}, {repeated}" + ", arms together" * together
    part = Part(
        key=key,
        title=title,
        text=(
            f"{data.about} {experiment.arms} arms, {repeated}; a pull is {experiment.pull}. "
            "Every trial has its own arms and its own split: 90/10 for TEST, then 80/20 for TRAIN "
            "and VAL. There is one search for each policy and budget. Its error is that on TEST "
            "of J_t, the arm whose latest loss on VAL is the lowest. Arms are trained "
            f"{how}; seconds are those of training and looking, with {settings.workers} "
            f"trial{'s' * (settings.workers > 1)} at a time. {NOTES[experiment.name]}"
        ),
        claims=JUDGES[experiment.name](rows, held),
        command=command(experiment.name, settings),
    )
    return figures.publish(part, figure, rows, settings)


ridge = partial(compared, RIDGE)  # §5.1
svm = partial(compared, SVM)  # §5.2, arms trained one at a time, as in the paper
svm_together = partial(compared, SVM, together=True)  # §5.2, all arms of a round in one kernel
completion = partial(compared, COMPLETION)  # §5.3


class Curve(NamedTuple):
    """The cost of a policy and its error at every budget: means over trials."""

    costs: list[float]
    errors: list[float]

    @classmethod
    def of(cls, rows: Rows, policy: str, cost: Cost) -> Curve:
        """The curve of one policy."""
        own = [row for row in rows if row["policy"] == policy]
        costs, errors = [], []
        for budget in sorted({row["budget"] for row in own}):
            at = [row for row in own if row["budget"] == budget]
            seconds = mean(row["train_seconds"] + row["loss_seconds"] for row in at)
            costs.append(float(budget) if cost == "iterations" else seconds)
            errors.append(mean(row["test_loss"] for row in at))
        return cls(costs, errors)

    @property
    def lows(self) -> list[float]:
        """Every new low after the first budget."""
        return list(dict.fromkeys(accumulate(self.errors, min)))[1:]

    def reaches(self, error: float) -> float:
        """The cost to come down to an error; infinity if it never does.

        >>> Curve([1, 10, 100], [0.5, 0.4, 0.3]).reaches(0.35)
        31.62...
        """
        before: tuple[float, float] | None = None
        for cost, reached in zip(self.costs, self.errors, strict=True):
            if reached <= error:
                if before is None or before[1] == reached:
                    return cost
                share = (before[1] - error) / (before[1] - reached)
                return exp(log(before[0]) + share * (log(cost) - log(before[0])))
            before = cost, reached
        return inf


class Lead(NamedTuple):
    """How many times faster one policy reaches an error than another.

    The ratio is a lower bound if the other never reaches the error, or if the one reaches it with
    its first budget. It is 0 if the one never reaches it.
    """

    ratio: float
    at_least: bool = False

    @classmethod
    def at(cls, error: float, fast: Curve, slow: Curve) -> Lead:
        """From what both need to reach that error."""
        ours, theirs = fast.reaches(error), slow.reaches(error)
        if ours == inf:
            return cls(0.0)
        ratio = round(min(theirs, max(slow.costs)) / ours, 9)  # 2 is not 1.9999999999999993
        return cls(ratio, at_least=theirs == inf or ours == fast.costs[0])

    def __str__(self) -> str:
        if not self.ratio:
            return "never"
        return f"{'at least ' * self.at_least}{self.ratio:.1f} times"


def of_completion(rows: Rows, data: str) -> list[Claim]:
    """§5.3, one sentence about two policies: at every new low of uniform allocation."""
    uniform = Curve.of(rows, "uniform", "iterations")
    claims = []
    for fast in ("successive-halving", "successive-rejects"):
        curve = Curve.of(rows, fast, "iterations")
        leads = [Lead.at(low, curve, uniform) for low in uniform.lows] or [Lead(nan)]
        ratios = [lead.ratio for lead in leads]
        claims.append(
            Claim(
                f"Uniform allocation takes longer than {LABELS[fast]} to a particular error",
                "2 to 8 times (here: in iterations)",
                f"{median(ratios):.1f} times (median; from {min(leads)} to {max(leads)})",
                data,
                verdict(median(ratios) >= 2),
            )
        )
    return claims


def of_svm(rows: Rows, data: str) -> list[Claim]:
    """§5.2: wall-clock time, and iterations.

    The same low error is read at three distances from the lowest error of any policy, because
    very near to it there is mostly noise.
    """
    claims = []
    for name in ("uniform", "successive-rejects"):
        leads = _near_the_lowest(rows, "successive-halving", name, "seconds")
        enough = [lead.ratio >= 10 for lead in leads.values()]
        known = [lead for lead in leads.values() if lead.ratio >= 10 or not lead.at_least]
        claims.append(
            Claim(
                f"Successive Halving obtains the same low error faster than {LABELS[name]}, in "
                "wall-clock time",
                "more than 10 times",
                _listed(leads),
                data,
                verdict(all(enough), in_part=any(enough)) if known else "undecided",
            )
        )
    leads = _near_the_lowest(rows, "successive-halving", "successive-rejects", "iterations")
    alike = [0.5 <= lead.ratio <= 2 for lead in leads.values()]
    claims.append(
        Claim(
            "Successive Halving and Successive Rejects perform comparably in iterations",
            "comparably (here: within a factor of 2)",
            f"Successive Halving is faster: {_listed(leads)}",
            data,
            verdict(all(alike), in_part=any(alike)),
        )
    )
    return claims


def _near_the_lowest(rows: Rows, fast: str, slow: str, cost: Cost) -> dict[float, Lead]:
    policies = dict.fromkeys(row["policy"] for row in rows)
    lowest = min(min(Curve.of(rows, policy, cost).errors) for policy in policies)
    ours, theirs = (Curve.of(rows, policy, cost) for policy in (fast, slow))
    return {share: Lead.at((1 + share) * lowest, ours, theirs) for share in (1.0, 0.5, 0.25)}


def _listed(leads: Mapping[float, Lead]) -> str:
    return "; ".join(f"{share:.0%} above the lowest: {lead}" for share, lead in leads.items())


def of_ridge(rows: Rows, data: str) -> list[Claim]:
    """§5.1: iterations, equal lines, and wall-clock time."""
    return [
        *(_ahead_in_iterations(rows, data, fast) for fast in ("lucb", "lil-ucb")),
        _on_top_of_each_other(rows, data),
        _first_in_seconds(rows, data),
    ]


def _ahead_in_iterations(rows: Rows, data: str, fast: str) -> Claim:
    """How much sooner a policy reaches its own lowest error than others do."""
    ours = Curve.of(rows, fast, "iterations")
    goal = min(ours.errors)
    others = ("uniform", "successive-halving", "successive-rejects", "successive-elimination")
    leads = {
        slow: Lead.at(goal, ours, Curve.of(rows, slow, "iterations")) for slow in (*others, "exp3")
    }
    ahead = [slow for slow, lead in leads.items() if lead.ratio >= 2]
    return Claim(
        f"{LABELS[fast]} achieves a small test error faster than most other methods",
        "2 to 4 times, in iterations",
        f"to {goal:.3f}, its lowest with up to {max(ours.costs):,.0f} pulls: "
        + ", ".join(f"than {LABELS[slow]} {lead}" for slow, lead in leads.items()),
        data,
        verdict(len(ahead) > len(leads) / 2, in_part=bool(ahead)),
    )


def _on_top_of_each_other(rows: Rows, data: str) -> Claim:
    """At every budget that all have; the distance of Successive Halving shows what is near."""
    uniform, *others = (
        (policy, dict(zip(*Curve.of(rows, policy, "iterations"), strict=True)))
        for policy in ("uniform", "successive-elimination", "exp3", "successive-halving")
    )
    apart = {
        policy: max(
            abs(error - uniform[1][budget]) / (uniform[1][budget] or nan)
            for budget, error in errors.items()
        )
        for policy, errors in others
    }
    near = [apart[policy] <= 0.02 for policy in ("successive-elimination", "exp3")]
    return Claim(
        "Uniform, EXP3 and Successive Elimination are on top of each other in iterations",
        "on top of each other (here: within 2 %)",
        "from uniform, at most: "
        + ", ".join(f"{LABELS[policy]} {far:.1%}" for policy, far in apart.items()),
        data,
        verdict(all(near), in_part=any(near)),
    )


def _first_in_seconds(rows: Rows, data: str) -> Claim:
    """Each of the two against each other policy: to its lowest error, and to all its new lows."""
    first = ("successive-halving", "successive-rejects")
    others = dict.fromkeys(row["policy"] for row in rows if row["policy"] not in first)
    told, won = [], []
    for fast in first:
        ours = Curve.of(rows, fast, "seconds")
        lowest, typical = {}, {}
        for slow in others:
            theirs = Curve.of(rows, slow, "seconds")
            leads = [Lead.at(low, ours, theirs).ratio for low in theirs.lows]
            lowest[slow] = Lead.at(min(theirs.errors), ours, theirs).ratio
            typical[slow] = median(leads) if leads else 0.0
        for ratios, where in ((lowest, "to its lowest error"), (typical, "median over its lows")):
            closest = min(ratios, key=lambda slow: ratios[slow])
            told.append(f"{LABELS[fast]} {ratios[closest]:.1f} ({LABELS[closest]}, {where})")
            won.append(ratios[closest] > 1)
    return Claim(
        "Successive Halving and Successive Rejects are the top performers in wall-clock time",
        "first and second",
        f"times faster than the closest rival: {'; '.join(told)}",
        data,
        verdict(all(won), in_part=any(won)),
    )


JUDGES: dict[str, Callable[[Rows, str], list[Claim]]] = {
    RIDGE.name: of_ridge,
    SVM.name: of_svm,
    COMPLETION.name: of_completion,
}
