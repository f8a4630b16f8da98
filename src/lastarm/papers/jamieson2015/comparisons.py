"""The paper's three experiments as parts of the page: run, drawn, and held against its claims.

"Ten times faster" means that the other policy needs ten times as much to reach the same error. How
that is read, and with what interval, is in `intervals`; the rules are in `rules.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import NamedTuple

import numpy as np

from lastarm.errors import InvalidArgument
from lastarm.papers.jamieson2015 import figures, page
from lastarm.papers.jamieson2015.experiments import COMPLETION, RIDGE, SVM, Experiment, run
from lastarm.papers.jamieson2015.intervals import (
    ITERATIONS,
    KERNELS,
    SECONDS,
    Axis,
    Bounded,
    Sample,
    all_hold,
    regions,
    with_looks,
)
from lastarm.papers.jamieson2015.page import Claim, Holds, Part, Row, Settings, command
from lastarm.papers.jamieson2015.rules import RULES, look_costs
from lastarm.report.figures.palette import LABELS

Rows = Sequence[Row]

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
    key = f"{experiment.name}-{data.name}{TOGETHER * together}"
    figure = figures.comparison(
        rows, title=title, unit=f"{experiment.pull} each", ylabel=experiment.error
    )
    repeated = f"{trials} trial{'s' * (trials > 1)}"
    held = _held(rows, data.name, together=together)
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


TOGETHER = "-together"
LOOK = 1000.0  # pulls that a look costs where there is no clock; on two cores it was about 900


def again(experiment: Experiment, settings: Settings) -> list[Part]:
    """Judge and draw anew from the rows that lie in the folder, without running anything."""
    tables = sorted(settings.out.glob(f"{experiment.name}-*.csv"))
    if not tables:
        raise InvalidArgument(
            f"The folder {settings.out} has no rows of {experiment.name}. Run it first, without "
            "--again.",
            argument="out",
            given=settings.out,
        )
    parts = []
    for path in tables:
        part, rows = page.read(path.with_suffix(".json")), page.rows_of(path)
        data = path.stem.removeprefix(f"{experiment.name}-")
        held = _held(rows, data.removesuffix(TOGETHER), together=data.endswith(TOGETHER))
        figure = figures.comparison(
            rows, title=part.title, unit=f"{experiment.pull} each", ylabel=experiment.error
        )
        part = replace(part, claims=JUDGES[experiment.name](rows, held))
        parts.append(figures.publish(part, figure, rows, settings, ran=False))
    return parts


def _held(rows: Rows, data: str, *, together: bool) -> str:
    trials = len({row["trial"] for row in rows})
    return f"{data}, {trials} trial{'s' * (trials > 1)}" + ", arms together" * together


class Finding(NamedTuple):
    """What was found along one axis, in numbers, and what the rule says of it."""

    ours: str
    holds: Holds


class Sentence(NamedTuple):
    """A sentence of the paper, and how it is judged along any axis."""

    claim: str
    paper: str
    judged: Callable[[Sample, Axis], Finding]

    def claims(self, sample: Sample, data: str, *axes: Axis, looks: bool = True) -> list[Claim]:
        """A claim for each axis; the first one says for which costs of a look it holds."""
        found = [(axis, self.judged(sample, axis)) for axis in axes]
        few = "" if sample.settles else "; too few trials for intervals"
        costs = self._costs(sample) if looks and sample.settles else "none"
        return [
            Claim(
                self.claim, self.paper, ours + few, data, holds, axis.name, "none" if at else costs
            )
            for at, (axis, (ours, holds)) in enumerate(found)
        ]

    def _costs(self, sample: Sample) -> str:
        if not {"pulls", "observations"} <= sample.rows[0].keys():
            return "none"
        found = [(c, self.judged(sample, with_looks(c)).holds) for c in look_costs()]
        return f"in pulls + c·looks: {regions(found)}"


def of_completion(rows: Rows, data: str) -> list[Claim]:
    """§5.3, one sentence about two policies: at every new low of uniform allocation."""
    sample, rules = Sample(rows), RULES["completion"]

    def longer(fast: str, sample: Sample, axis: Axis) -> Finding:
        ratio = sample.over_lows(fast, "uniform", axis, rules["untrained"])
        told = f"{ratio.times}, in the median over the new lows of trained models"
        return Finding(told, ratio.is_at_least(rules["longer"]))

    return [
        claim
        for fast in ("successive-halving", "successive-rejects")
        for claim in Sentence(
            f"Uniform allocation takes longer than {LABELS[fast]} to a particular error",
            "2 to 8 times",
            partial(longer, fast),
        ).claims(sample, data, ITERATIONS, SECONDS)
    ]


def of_svm(rows: Rows, data: str) -> list[Claim]:
    """§5.2: time, and iterations.

    The same low error is read at three distances from the lowest error of any policy, because
    very near to it there is mostly noise.
    """
    sample, rules = Sample(rows), RULES["svm"]
    times = [SECONDS, KERNELS] if "kernel_evaluations" in rows[0] else [SECONDS]
    claims = []

    def faster(slow: str, sample: Sample, axis: Axis) -> Finding:
        leads = _near_the_lowest(sample, "successive-halving", slow, axis)
        verdicts = [lead.is_at_least(rules["faster"]) for lead in leads.values()]
        return Finding(_listed(leads), all_hold(verdicts))

    def alike(sample: Sample, axis: Axis) -> Finding:
        leads = _near_the_lowest(sample, "successive-halving", "successive-rejects", axis)
        verdicts = [lead.is_within(1 / rules["alike"], rules["alike"]) for lead in leads.values()]
        return Finding(f"Successive Halving is faster: {_listed(leads)}", all_hold(verdicts))

    for slow in ("uniform", "successive-rejects"):
        claims += Sentence(
            f"Successive Halving obtains the same low error faster than {LABELS[slow]}, in "
            "wall-clock time",
            "more than 10 times",
            partial(faster, slow),
        ).claims(sample, data, *times)
    claims += Sentence(
        "Successive Halving and Successive Rejects perform comparably in iterations",
        f"comparably (here: within a factor of {rules['alike']:g})",
        alike,
    ).claims(sample, data, ITERATIONS)
    return claims


def _near_the_lowest(sample: Sample, fast: str, slow: str, axis: Axis) -> dict[float, Bounded]:
    lowest = np.min(
        [sample.curves(policy, axis).errors.min(axis=1) for policy in sample.policies], axis=0
    )
    return {
        share: sample.ratio((1 + share) * lowest, fast, slow, axis)
        for share in RULES["svm"]["distances"]
    }


def _listed(leads: dict[float, Bounded]) -> str:
    return "; ".join(
        f"{share:.0%} above the lowest: {lead.times}" for share, lead in leads.items()
    )


def of_ridge(rows: Rows, data: str, *, clock: bool = True) -> list[Claim]:
    """§5.1: iterations, equal lines, and wall-clock time, if there was a `clock`."""
    sample = Sample(rows)
    claims = []
    for fast in ("lucb", "lil-ucb"):
        claims += Sentence(
            f"{LABELS[fast]} achieves a small test error faster than most other methods",
            "2 to 4 times, in iterations",
            partial(_ahead, fast),
        ).claims(sample, data, ITERATIONS, looks=clock)
    ours, holds = _on_top_of_each_other(sample)
    claims.append(
        Claim(
            "Uniform, EXP3 and Successive Elimination are on top of each other in iterations",
            f"on top of each other (here: within {RULES['ridge']['alike']:.0%})",
            ours,
            data,
            holds,
            ITERATIONS.name,
        )
    )
    claims += Sentence(
        "Successive Halving and Successive Rejects are the top performers in wall-clock time",
        "first and second",
        _first,
    ).claims(sample, data, SECONDS if clock else with_looks(LOOK), looks=clock)
    return claims


def _ahead(fast: str, sample: Sample, axis: Axis) -> Finding:
    """How much sooner a policy reaches its own lowest error than others do."""
    ours = sample.curves(fast, axis)
    goal = ours.errors.min(axis=1)
    others = ("uniform", "successive-halving", "successive-rejects", "successive-elimination")
    leads = {slow: sample.ratio(goal, fast, slow, axis) for slow in (*others, "exp3")}
    verdicts = [lead.is_at_least(RULES["ridge"]["ahead"]) for lead in leads.values()]
    told = ", ".join(f"than {LABELS[slow]} {lead.times}" for slow, lead in leads.items())
    most = f"to {goal[0]:.3f}, its lowest with up to {sample.budgets(fast)[-1]:,} pulls: "
    return Finding(most + told, for_most(verdicts))


def for_most(verdicts: Sequence[Holds]) -> Holds:
    """Whether it holds for more than half of them; "in part" if it holds for fewer.

    >>> for_most(["yes", "yes", "not settled"]), for_most(["yes", "not settled", "no"])
    ('yes', 'not settled')
    >>> for_most(["yes", "no", "no"]), for_most(["no", "no", "not settled"])
    ('in part', 'not settled')
    """
    yes, unknown = verdicts.count("yes"), verdicts.count("not settled")
    if 2 * yes > len(verdicts):
        return "yes"
    if 2 * (yes + unknown) > len(verdicts) or (unknown and not yes):
        return "not settled"
    return "in part" if yes else "no"


def _on_top_of_each_other(sample: Sample) -> Finding:
    """At every budget that all have; the distance of Successive Halving shows what is near."""
    near = RULES["ridge"]["alike"]
    uniform = sample.curves("uniform", ITERATIONS).errors
    told, verdicts = [], []
    for policy in ("successive-elimination", "exp3", "successive-halving"):
        errors = sample.curves(policy, ITERATIONS).errors
        common = min(errors.shape[1], uniform.shape[1])
        apart = [
            sample.known(*[errors[:, k] / uniform[:, k] - 1] * 2) for k in range(common)
        ]  # the budgets of all begin together
        furthest = max(apart, key=lambda known: abs(known.low[0]))
        told.append(f"{LABELS[policy]} {furthest.told(lambda share: f'{share:+.1%}')}")
        if policy != "successive-halving":
            verdicts.append(_all_near([known.is_within(-near, near) for known in apart]))
    few = "" if sample.settles else "; too few trials for intervals"
    return Finding(f"from uniform, at most: {'; '.join(told)}{few}", all_hold(verdicts))


def _all_near(verdicts: Sequence[Holds]) -> Holds:
    """A line is on top of another if all of its points are; one that is off is enough for a no."""
    return "no" if "no" in verdicts else all_hold(verdicts)


def _first(sample: Sample, axis: Axis) -> Finding:
    """Each of the two against each other policy: to its lowest error, and to all its new lows."""
    first = ("successive-halving", "successive-rejects")
    others = [policy for policy in sample.policies if policy not in first]
    told, verdicts = [], []
    for fast in first:
        lowest, typical = {}, {}
        for slow in others:
            goal = sample.curves(slow, axis).errors.min(axis=1)
            lowest[slow] = sample.ratio(goal, fast, slow, axis)
            typical[slow] = sample.over_lows(fast, slow, axis)
        for ratios, where in ((lowest, "to its lowest error"), (typical, "median over its lows")):
            closest = min(ratios, key=lambda slow: (ratios[slow].low[0], ratios[slow].high[0]))
            told.append(f"{LABELS[fast]} {ratios[closest].times} ({LABELS[closest]}, {where})")
            least = np.nextafter(RULES["ridge"]["first"], inf)  # as fast as is not faster
            each = [ratio.is_at_least(float(least)) for ratio in ratios.values()]
            verdicts.append(_all_near(each))
    return Finding(f"times faster than the closest rival: {'; '.join(told)}", all_hold(verdicts))


JUDGES: dict[str, Callable[[Rows, str], list[Claim]]] = {
    RIDGE.name: of_ridge,
    SVM.name: of_svm,
    COMPLETION.name: of_completion,
}
