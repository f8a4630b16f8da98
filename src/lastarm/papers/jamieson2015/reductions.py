"""The two reductions of §2: stochastic arms by running means, max-bandits by running minima."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lastarm.papers.jamieson2015 import figures
from lastarm.papers.jamieson2015.intervals import ITERATIONS, Bounded, Sample, resampled
from lastarm.papers.jamieson2015.page import Claim, Part, Row, Settings, command, verdict
from lastarm.papers.jamieson2015.rules import RULES
from lastarm.papers.jamieson2015.theorems import played
from lastarm.policies import POLICIES
from lastarm.policies.parts.integers import ceil_log
from lastarm.theory import hoeffding_envelope
from lastarm.theory.envelopes import Array

ARMS = 32
DELTA = 0.05
TRIED = ("uniform", "successive-halving", "successive-rejects")
MEANS, MINIMA = "means of Bernoulli draws", "minima of draws"

TEXT = f"""\
{ARMS} arms, {{trials}} trials, each with its own draws and its own order of the arms. Means: the
draws of arm i are 0 or 1 with the expectation 0.3 + 0.4(i − 1)/{ARMS - 1}, and its loss is the
mean of its draws so far. Minima, with losses as negative returns of a max-bandit: the draws of arm
i are 1 − (1 − ν_i)·u^(1/4) with u uniform, so that none is below ν_i = 0.5(i − 1)/{ARMS - 1}, and
its loss is the least of its draws so far. There is one search for each policy and budget. A policy
misses if it does not return the arm of the least limit. Successive Halving needs less if, to miss
in at most {{missed:.0%}} of the trials, uniform allocation needs more; Successive Rejects is shown
beside them."""


def losses(kind: str, order: Array, pulls: int, random: np.random.Generator) -> Array:
    """The losses of all arms; `order` has the rank of each, from 0."""
    uniform = random.random((len(order), pulls))
    rank = order[:, np.newaxis] / (len(order) - 1)
    if kind == MEANS:
        draws = uniform < 0.3 + 0.4 * rank
        return np.asarray(np.cumsum(draws, axis=1) / np.arange(1, pulls + 1))
    nu = 0.5 * rank
    return np.asarray(np.minimum.accumulate(1 - (1 - nu) * uniform**0.25, axis=1))


def reductions(settings: Settings) -> Part:
    """Halving on running means and on running minima, beside uniform allocation."""
    trials = settings.trials or (3 if settings.quick else 200)
    budgets = [ARMS * ceil_log(ARMS, 2) * 2**k for k in range(5 if settings.quick else 10)]
    rows: list[Row] = []
    inside, falling = [], []
    for trial in range(trials):
        for number, kind in enumerate((MEANS, MINIMA)):
            random = np.random.default_rng([settings.seed, trial, number])
            order = random.permutation(ARMS).astype(float)
            table = losses(kind, order, budgets[-1] // 4, random)
            if kind == MEANS:
                inside.append(_inside(table, order))
            else:
                falling.append(bool((np.diff(table, axis=1) <= 0).all()))
            rows += _searches(kind, trial, table, int(order.argmin()), budgets)
        settings.progress(trial + 1, trials)
    text = TEXT.format(trials=trials, missed=RULES["reductions"]["missed"])
    part = Part(
        "reductions",
        "The two reductions of §2",
        " ".join(text.split()),
        [
            _means_settle(inside),
            _minima_fall(falling),
            *(
                needs_less(kind, [row for row in rows if row["kind"] == kind])
                for kind in (MEANS, MINIMA)
            ),
        ],
        command=command("reductions", settings),
    )
    return figures.publish(part, figures.missed(rows, trials), rows, settings)


def _inside(table: Array, order: Array) -> bool:
    """Whether all running means stay within Hoeffding's envelope, at all times."""
    mu = 0.3 + 0.4 * order / (len(order) - 1)
    envelope = [hoeffding_envelope(len(order), t, DELTA) for t in range(1, table.shape[1] + 1)]
    return bool((np.abs(table - mu[:, np.newaxis]) <= envelope).all())


def _searches(kind: str, trial: int, table: Array, best: int, budgets: Sequence[int]) -> list[Row]:
    seen, rows = table.tolist(), []
    for policy in TRIED:
        for budget in budgets:
            game = played(POLICIES[policy](ARMS, budget), lambda arm, t: float(seen[arm][t - 1]))
            rows.append(
                {"kind": kind, "trial": trial, "policy": policy, "budget": budget}
                | {"pulls": game.pulls, "observations": game.observations}
                | {"missed": int(game.arm != best)}
            )
    return rows


def _means_settle(inside: Sequence[bool]) -> Claim:
    rules = RULES["interval"]
    share = resampled(len(inside), rules["resamples"], rules["seed"]) @ np.array(inside, float)
    return Claim(
        "we can always turn the stochastic setting into the non-stochastic setting (by running "
        "means)",
        f"they have limits (here: within Hoeffding's envelope for δ = {DELTA:g})",
        f"all means are inside of it at all times in {sum(inside)} of {len(inside)} trials",
        MEANS,
        Bounded(share, share, len(inside)).is_at_least(1 - DELTA),
    )


def _minima_fall(falling: Sequence[bool]) -> Claim:
    return Claim(
        "we could do something similar with the minimum, which has a limit",
        "it is bounded and never rises",
        f"no loss rises in {sum(falling)} of {len(falling)} trials",
        MINIMA,
        verdict(all(falling)),
    )


def needs_less(kind: str, rows: Sequence[Row]) -> Claim:
    """How many times more than halving uniform allocation needs to miss as rarely."""
    sample, missed = Sample(rows, error="missed"), RULES["reductions"]["missed"]
    goal = np.full(len(sample.shares), missed)
    ratio, rejects = (
        sample.ratio(goal, "successive-halving", slow, ITERATIONS)
        for slow in ("uniform", "successive-rejects")
    )
    return Claim(
        f"Here: Successive Halving finds the best arm by {kind} with a smaller budget than "
        "uniform allocation",
        "no number for these",
        f"to miss in at most {missed:.0%} of the trials, against Successive Halving: uniform "
        f"allocation needs {ratio.times} as much, Successive Rejects {rejects.times}",
        f"made draws, {sample.trials} trials",
        ratio.is_at_least(float(np.nextafter(RULES["reductions"]["times"], 2))),
        ITERATIONS.name,
    )
