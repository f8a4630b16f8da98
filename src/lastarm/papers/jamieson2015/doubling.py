"""What the doubling trick costs: the paper's §3, after the figure of Successive Halving."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import sqrt
from statistics import median
from typing import NamedTuple

import numpy as np

from lastarm.papers.jamieson2015 import figures
from lastarm.papers.jamieson2015.page import Claim, Holds, Part, Row, Settings, command, verdict
from lastarm.papers.jamieson2015.theorems import Adversary, played
from lastarm.policies import SuccessiveHalving
from lastarm.policies.doubling import doubling
from lastarm.policies.parts.integers import ceil_log
from lastarm.policies.successive_halving import successive_halving
from lastarm.policy import Rounds
from lastarm.theory import halving_budget, sgd_envelope
from lastarm.theory.envelopes import Array

TEXT = """\
B′ is the least budget such that Successive Halving returns the best arm with it and with every
larger one. It is found by trying all budgets downwards from Theorem 1's bound; only ⌊B/⌈log₂ n⌉⌋
matters. The doubling trick runs with n·⌈log₂ n⌉, then twice that, and so on. (The paper begins at
B ← n, but then r_0 is 0 for more than two arms; beginning later is our change.) What it has spent
is counted at the end of the first run whose budget reaches B′. Cold means that each run starts
anew; warm means that arms continue from where they are, as in the policy `doubling`. Warm runs
compare arms at other levels, so B′ promises nothing for them; how often they return the best arm
is counted. The losses are Theorem 3's on the limits a/n, for three envelopes; losses a/n + c/t
with a c between −8 and 8 for each arm, drawn by the seed; and the instance in docs/theory.md. A
bound holds if all instances are within it; "in part" means at least half of them."""


class Instance(NamedTuple):
    """Arms whose best is known, and a budget that is enough by Theorem 1."""

    family: str
    n: int
    loss: Callable[[int, int], float]
    best: int
    enough: float


def doubling_trick(settings: Settings) -> Part:
    """Pulls spent by doubling, cold and warm, against the least fixed budget that is enough."""
    rows = [measured(instance) for instance in _instances(settings)]
    settings.progress(1, 1)
    part = Part(
        "doubling",
        "The doubling trick",
        " ".join(TEXT.split()),
        judged(rows),
        command=command("theorems", replace(settings, trials=None)),
    )
    return figures.publish(part, figures.doubling(rows), rows, settings)


def _instances(settings: Settings) -> Iterator[Instance]:
    for n in (4, 8, 12) if settings.quick else (4, 8, 12, 16, 24, 32, 48, 64):
        for name, beta in (
            ("β = 1/t", lambda t: 1 / t),
            ("β = 1/(4√t)", lambda t: 1 / (4 * sqrt(t))),
            ("β = log(nt/δ)/16t", lambda t, n=n: sgd_envelope(t, n, 1 / 16, 0.05)),
        ):
            hard = Adversary(n, beta)
            yield Instance(name, n, hard.loss, hard.best, halving_budget(hard.settling))
        for draw in range(2 if settings.quick else 10):
            random = np.random.default_rng([settings.seed, n, draw])
            limits, c = (random.permutation(n) + 1) / n, random.uniform(-8, 8, n)
            settling = [16 * n // gap + 1 for gap in range(1, n)]  # 8/t < gap/2n
            loss, best = partial(_drawn, limits, c), int(np.argmin(limits))
            yield Instance("a/n + c/t, drawn", n, loss, best, halving_budget(settling))
    yield Instance("of docs/theory.md", 3, _kept, 0, halving_budget([65, 65]))


def _drawn(limits: Array, c: Array, arm: int, t: int) -> float:
    return float(limits[arm] + c[arm] / t)


def _kept(arm: int, t: int) -> float:
    """The instance with B′ = 390: 65 steps, which end at the limits."""
    sign = (1, -0.99, -1)[arm]
    return arm / 10 + (sign * 6.5 / t if t < 65 else 0)


def measured(instance: Instance) -> Row:
    """B′ of an instance, and what doubling has spent when its budget has reached B′."""
    family, n, loss, best, _ = instance
    needed = least_enough(instance)
    cold, B = 0, n * ceil_log(n, 2)
    while True:
        cold += played(SuccessiveHalving(n, B), loss).pulls
        if needed <= B:
            break
        B *= 2
    # Up to this budget, each run continues from the one before.
    runs = doubling(partial(successive_halving, range(n)), n * ceil_log(n, 2), B, lambda: True)
    warm = played(Rounds(runs), loss)
    return {
        "family": family,
        "n": n,
        "needed": needed,
        "last_budget": B,
        "cold": cold,
        "warm": warm.pulls,
        "warm_right": warm.arm == best,
        "last_times": round(B / needed, 3),
        "cold_times": round(cold / needed, 3),
        "warm_times": round(warm.pulls / needed, 3),
    }


def least_enough(instance: Instance) -> int:
    """B′: with this budget and every larger one, halving finds the best arm."""
    _, n, loss, best, enough = instance
    rounds = ceil_log(n, 2)
    for each in range(int(enough) // rounds + 1, n - 1, -1):  # B = each·⌈log₂ n⌉
        if played(SuccessiveHalving(n, each * rounds), loss).arm != best:
            return (each + 1) * rounds
    return n * rounds


def judged(rows: Sequence[Row]) -> list[Claim]:
    """The paper's sentence, read in three ways."""
    data = f"{len(rows)} instances"
    last, cold, warm = (
        [row[f"{what}_times"] for row in rows] for what in ("last", "cold", "warm")
    )
    right = sum(row["warm_right"] for row in rows)
    return [
        Claim(
            "if B′ is necessary, the doubling trick will have used a budget of 2B′ in the worst "
            "case: read as the budget of its last run",
            "2 B′",
            "less than 2 B′ by arithmetic, whatever the losses, from the first budget on; here at "
            f"most {max(last):.2f} B′, half of them at most {median(last):.2f} B′",
            data,
            _share([row["last_budget"] < 2 * row["needed"] for row in rows]),
        ),
        Claim(
            "the same, read as all pulls spent, reusing progress",
            "2 B′",
            f"at most {max(warm):.2f} B′, half of them at most {median(warm):.2f} B′; the best "
            f"arm is returned in {right} of {len(rows)}",
            data,
            _share([row["warm"] <= 2 * row["needed"] for row in rows]),
        ),
        Claim(
            "the same, read as all pulls spent, starting anew",
            "2 B′; by our count less than 4 B′",
            f"at most {max(cold):.2f} B′, half of them at most {median(cold):.2f} B′; less than "
            f"4 B′ in {sum(times < 4 for times in cold)} of {len(rows)}",
            data,
            _share([row["cold"] <= 2 * row["needed"] for row in rows]),
        ),
    ]


def _share(within: Sequence[bool]) -> Holds:
    return verdict(all(within), in_part=2 * sum(within) >= len(within))
