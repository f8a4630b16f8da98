"""The published pseudo-code, naive and whole: the oracle that the policies are tested against.

Symbol for symbol, blocking and slow; the library never uses it. `loss(i, k)` is ℓ_{i,k}, the loss
of arm i after its k-th pull. Where a figure is silent, the rules of lastarm are written out: ties
go to the lower arm number, at least one arm is kept, and an arm whose loss is not finite is out;
when all arms left are out, the answer is the lowest latest loss of those that were dropped.

First the paper's own algorithms, then those that it compares with or cites, each after the
pseudo-code of its own paper (named at the policy in `lastarm.policies`). These have losses in
place of rewards, scaled by the least and greatest seen so far; μ̂ of an arm is its latest loss.
They are written for reading, not for speed: every decision looks at every arm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import ceil, e, exp, floor, inf, isfinite, log, sqrt
from random import Random
from typing import NamedTuple

Losses = Callable[[int, int], float]


class Outcome(NamedTuple):
    """What an algorithm returned, the pulls it made and the losses it saw."""

    arm: int | None
    pulls: int
    observations: int


class World:
    """The arms: their losses, how often each was pulled, and what was seen."""

    def __init__(self, loss: Losses) -> None:
        self.loss = loss
        self.T: dict[int, int] = {}
        self.latest: dict[int, float] = {}
        self.out: set[int] = set()
        self.all_seen: list[float] = []
        self.observations = 0

    def bring(self, arms: Iterable[int], level: int) -> None:
        """Pull arms up to a level and look at them, unless they are there already or out."""
        for i in arms:
            if i not in self.out and level > self.T.get(i, 0):
                self.T[i] = level
                self.observations += 1
                seen = self.loss(i, level)
                if isfinite(seen):
                    self.latest[i] = seen
                    self.all_seen.append(seen)
                else:
                    self.latest.pop(i, None)
                    self.out.add(i)

    def mean(self, i: int) -> float:
        """The latest loss on the scale of all that were seen."""
        low, high = min(self.all_seen), max(self.all_seen)
        return (self.latest[i] - low) / (high - low) if high > low else 0.0

    def healthy(self, arms: Iterable[int]) -> list[int]:
        """Those that are not out."""
        return [i for i in arms if i in self.latest]

    def ranked(self, arms: Iterable[int]) -> list[int]:
        """Those that are not out, from the lowest latest loss to the highest."""
        return sorted(self.healthy(arms), key=lambda i: (self.latest[i], i))

    def best(self, arms: Iterable[int] | None = None) -> int | None:
        """The lowest latest loss, ties to the lower number; of all arms, if these are all out."""
        among = self.ranked(self.latest if arms is None else arms) or self.ranked(self.latest)
        return among[0] if among else None

    def end(self, arm: int | None) -> Outcome:
        """What was found and spent."""
        return Outcome(arm, sum(self.T.values()), self.observations)


def uniform_allocation(loss: Losses, n: int, B: int) -> Outcome:
    """Jamieson & Talwalkar §3.2: T_i = B/n for all i, then argmin_i ℓ_{i,B/n}."""
    world = World(loss)
    world.bring(range(n), floor(Fraction(B, n)))
    return world.end(world.best())


def successive_halving(loss: Losses, n: int, B: int, eta: int = 2) -> Outcome:
    """Jamieson & Talwalkar, figure "Successive Halving Algorithm", with eta in place of 2."""
    log_n = 0
    while eta**log_n < n:
        log_n += 1
    log_n = max(log_n, 1)  # a single arm gets the budget
    world, S, R = World(loss), list(range(n)), 0
    for _k in range(log_n):
        R = R + floor(Fraction(B, len(S) * log_n))
        world.bring(S, R)
        S = world.ranked(S)[: max(1, floor(Fraction(len(S), eta)))]
        if not S:
            break
    return world.end(world.best(S))


def successive_rejects(loss: Losses, n: int, B: int) -> Outcome:
    """Audibert & Bubeck (2010), figure 3, with losses in place of rewards; their K is n."""
    if n == 1:
        return uniform_allocation(loss, n, B)
    log_bar = Fraction(1, 2)
    for i in range(2, n + 1):
        log_bar += Fraction(1, i)
    world, A = World(loss), list(range(n))
    for k in range(1, n):
        n_k = ceil(1 / log_bar * Fraction(B - n, n + 1 - k))
        world.bring(A, n_k)
        A = world.ranked(A)[: n - k]
    return world.end(world.best(A))


def successive_elimination(loss: Losses, n: int, B: int, delta: float) -> Outcome:
    """Even-Dar et al. (2006), algorithm 3, looking at t = 1, 2, 4, … and when the budget ends."""
    world, S, t = World(loss), list(range(n)), 0
    while len(S) > 1:
        left = B - sum(world.T.values())
        step = min(max(t, 1), floor(left / len(S)))
        if step == 0:
            break
        t += step
        world.bring(S, t)
        alpha = sqrt(log(4 * n * t**2 / delta) / t)
        S = world.healthy(S)
        if S:
            lowest = min(world.mean(i) for i in S)
            S = [i for i in S if world.mean(i) - lowest < 2 * alpha]
    return world.end(world.best(S))


def lucb(loss: Losses, n: int, B: int, delta: float) -> Outcome:
    """Kalyanakrishnan et al. (2012), LUCB1 with m = 1 and ε = 0."""
    world, t = World(loss), 1
    world.bring(range(n), 1)
    spent = n
    while len(world.latest) > 1 and spent + 2 <= B:

        def beta(i: int, t: int = t) -> float:
            return sqrt(log(5 / 4 * n * t**4 / delta) / (2 * world.T[i]))

        h, *rivals = world.ranked(world.latest)
        rival = min(rivals, key=lambda i: (world.mean(i) - beta(i), i))
        if world.mean(h) + beta(h) < world.mean(rival) - beta(rival):
            return world.end(h)
        world.bring([h], world.T[h] + 1)
        world.bring([rival], world.T[rival] + 1)
        spent, t = spent + 2, t + 1
    return world.end(world.best())


def lil_ucb(loss: Losses, n: int, B: int, nu: float) -> Outcome:
    """Jamieson et al. (2014), figure 1, with the constants of lil'UCB Heuristic."""
    epsilon, beta, lambda_, delta, variance = 0.0, 0.5, 1 + 10 / n, nu / 5, 1 / 4

    def radius(T: int) -> float:
        if log((1 + epsilon) * T) <= delta:
            return inf
        inner = log(log((1 + epsilon) * T) / delta)
        return (1 + beta) * (1 + sqrt(epsilon)) * sqrt(2 * variance * (1 + epsilon) * inner / T)

    world = World(loss)
    world.bring(range(n), 1)
    while len(world.latest) > 1 and sum(world.T.values()) < B:
        arms = sorted(world.latest)
        i = min(arms, key=lambda i: (world.mean(i) - radius(world.T[i]), i))
        world.bring([i], world.T[i] + 1)
        total = sum(world.T.values())
        for i in sorted(world.latest):
            if world.T[i] >= 1 + lambda_ * (total - world.T[i]):
                return world.end(i)
    return world.end(world.best())


def exp3(loss: Losses, n: int, B: int, seed: int) -> Outcome:
    """Auer et al. (2002), figure 1; a draw is uniform with chance γ, else by weight."""
    world, random, arms = World(loss), Random(seed), list(range(n))
    gamma = min(1, sqrt(n * log(n) / ((e - 1) * B)))
    w = dict.fromkeys(arms, 1.0)
    for _t in range(B):
        total = sum(w.values())
        p = {i: (1 - gamma) * w[i] / total + gamma / len(arms) for i in arms}
        if random.random() < gamma:
            chosen = arms[floor(random.random() * len(arms))]
        else:
            point = random.random() * total
            for chosen in arms:
                point -= w[chosen]
                if point < 0:
                    break
        world.bring([chosen], world.T.get(chosen, 0) + 1)
        if chosen in world.latest:
            w[chosen] *= exp(gamma * (1 - world.mean(chosen)) / (p[chosen] * n))
        else:
            arms.remove(chosen)
            del w[chosen]
            if not arms:
                break
    return world.end(world.best())


def exponential_gap(loss: Losses, n: int, B: int, delta: float) -> Outcome:
    """Karnin et al. (2013), algorithm 3, on pulls in all; what does not fit is spent evenly."""
    world, S, r = World(loss), list(range(n)), 1
    while len(S) > 1:
        epsilon, delta_r = 2**-r / 4, delta / (50 * r**3)
        levels = [ceil(2 / epsilon**2 * log(2 / delta_r))]
        sizes, size, eps, dlt = [len(S)], len(S), epsilon / 2 / 4, delta_r / 2
        while size > 1:
            sizes.append(size)
            levels.append(ceil(1 / (eps / 2) ** 2 * log(3 / dlt)))
            size, eps, dlt = ceil(size / 2), 3 / 4 * eps, dlt / 2
        first = max(levels[0], levels[1])
        cost = sum(max(0, first - world.T.get(i, 0)) for i in S)
        for k in range(2, len(levels)):
            cost += sizes[k] * (levels[k] - levels[k - 1])
        left = B - sum(world.T.values())
        if cost > left:
            for i in S:
                world.bring([i], world.T.get(i, 0) + floor(left / len(S)))
            break
        world.bring(S, levels[0])
        M = list(S)
        for level in levels[1:]:  # Median Elimination
            world.bring(M, level)
            M = world.ranked(M)
            M = M[: ceil(len(M) / 2)]
        if not M:
            return world.end(world.best())
        reference = world.mean(M[0])
        S = [i for i in world.healthy(S) if world.mean(i) <= reference + epsilon]
        r += 1
    return world.end(world.best(S))


def hyperband(loss: Losses, draws: list[list[int]], R: int, eta: int) -> Outcome:
    """Li et al. (2018), algorithm 1, given each bracket's arms; the best winner is returned."""
    s_max = 0
    while eta ** (s_max + 1) <= R:
        s_max += 1
    world, winners = World(loss), []
    for s, T in zip(range(s_max, -1, -1), draws, strict=True):
        arms, n = list(T), len(T)
        for i in range(s + 1):
            world.bring(arms, floor(R / eta ** (s - i)))
            arms = world.ranked(arms)[: max(1, floor(n / eta ** (i + 1)))]
        winners += arms
    return world.end(world.best(winners))


def asha(loss: Losses, n: int, B: int, R: int, eta: int) -> Outcome:
    """Li et al. (2020), algorithm 2 with one worker: get_job, run, record, repeat."""
    s = 0
    while eta ** (s + 1) <= R:
        s += 1
    levels = [floor(R / eta ** (s - k)) for k in range(s + 1)]
    world, left, begun = World(loss), B, 0
    rung: list[dict[int, float]] = [{} for _ in levels]
    promoted: list[set[int]] = [set() for _ in levels]
    while True:
        job = None
        for k in range(len(levels) - 2, -1, -1):
            ranked = sorted(rung[k], key=lambda i: (rung[k][i], i))
            top = [i for i in ranked[: len(rung[k]) // eta] if isfinite(rung[k][i])]
            candidates = [i for i in top if i not in promoted[k]]
            if candidates and levels[k + 1] - levels[k] <= left:
                job = candidates[0], k + 1
                promoted[k].add(candidates[0])
                break
        if job is None and begun < n and levels[0] <= left:
            job = begun, 0
            begun += 1
        if job is None:
            return world.end(world.best())
        i, k = job
        left -= levels[k] - (levels[k - 1] if k else 0)
        world.bring([i], levels[k])
        rung[k][i] = world.latest.get(i, inf)
