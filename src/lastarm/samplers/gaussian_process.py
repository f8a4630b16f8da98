"""A sampler that learns, by a Gaussian process, which losses to expect of which configs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import erfc, exp, expm1, isfinite, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lastarm.plain import config_identity
from lastarm.samplers.matern import JITTER, Array, Posterior, fit
from lastarm.samplers.protocol import Chosen, Config, Known, Sampler, Seen
from lastarm.space import Space, encode, neighbours
from lastarm.space.spaces import generator, read_space

EXACT = 1000  # the most arms that the process learns from
FITTED = 100  # the most arms that its hyperparameters are fitted to
DRAWN = 400  # candidates that are drawn from the space
BEST, REACHES, NEAR = 10, (0.3, 0.1, 0.03), 13  # arms, and neighbours of each of them at each reach
HOPEFUL, FINE, FINER = 10, (0.1, 0.03), 5  # the same for the candidates that look best
PENDING = 100  # the most arms without a loss that are taken into account
FLOOR = 0.1  # the share of the spread of losses below which differences hardly count
HUGE = 1e300  # losses beyond it are taken for it, so that they have differences
PLACES = 9  # scores are rounded to so many before they are compared


@dataclass(frozen=True, kw_only=True)
class GaussianProcess(Sampler):
    """Chooses the configs that are expected to improve most on the best one so far.

    - `batch`: how many arms are chosen at a time. A policy that begins its arms in brackets of its
      own has each bracket chosen as a whole.
    - `random_share`: the share of all arms that keep the config they would have without a sampler.

    The last loss of each arm is brought to the level at which arms are compared. From these losses
    a Gaussian process learns what to expect of any config, and how sure that is. The candidates
    are random configs and neighbours of the best. The one with the greatest expected improvement
    is chosen, then the next one as if that had come out as expected, and so on.

    >>> from lastarm.space import Uniform
    >>> begun = [{"x": x / 10} for x in range(10)]
    >>> seen = [Seen(config, 1, (config["x"] - 0.33) ** 2) for config in begun]
    >>> known = Known({"x": Uniform(0, 1)}, seen, begun, [{"x": 0.95}], 1, seed=0, level=1)
    >>> (chosen,) = GaussianProcess().choose(known)
    >>> 0.30 < chosen.config["x"] < 0.36
    True

    It needs nothing but NumPy. What it chooses does not depend on how NumPy rounds: scores are
    rounded before they are compared, and the first of the greatest is taken. Up to 1,000 arms it
    learns from all; then from the 500 best and 500 of the others.

    Source: Jones, Schonlau & Welch, "Efficient global optimization of expensive black-box
    functions" (1998). That the batch is believed to come out as expected is the "kriging believer"
    of Ginsbourger, Le Riche & Carraro, "Kriging is well-suited to parallelize optimization" (2010).
    Keeping a third of the configs random is from Falkner, Klein & Hutter, "BOHB" (ICML 2018).
    """

    def choose(self, known: Known) -> list[Chosen]:
        """The configs that are expected to improve most, the best first."""
        arms, losses = at_the_end(known.seen)
        scale = Scale.of(losses)
        values = scale.values(losses)
        kept = spread_over(values, EXACT)
        arms, values = [arms[k] for k in kept.tolist()], values[kept]
        middle, unit = float(values.mean()), float(values.std()) or 1.0
        values = (values - middle) / unit

        pending = _without_loss(known.begun, known.seen)[-PENDING:]
        drawn = list(known.candidates[:DRAWN])
        space = read_space(known.space)
        rows, parameters = encode(space, [*arms, *pending, *drawn])
        few = spread_over(values, FITTED)
        found = fit(rows[few], parameters, values[few])
        process = Posterior.of(rows[: len(arms)], parameters, values, found)
        if pending:
            process = process.believing(rows[len(arms) : len(arms) + len(pending)])

        pool = Pool(process)
        pool.add(drawn, rows[len(arms) + len(pending) :])
        random = generator(known.seed, "neighbours")
        best = [arms[k] for k in np.argsort(np.round(values, PLACES), kind="stable")[:BEST].tolist()]
        _add_neighbours(pool, space, best, random, REACHES, NEAR)
        hopeful = [pool.configs[place] for place in pool.ranking()[:HOPEFUL].tolist()]
        _add_neighbours(pool, space, hopeful, random, FINE, FINER)

        taken = set(map(config_identity, known.begun))
        chosen: list[Chosen] = []
        while len(chosen) < known.count and (place := pool.next(taken)) is not None:
            mean = middle + unit * float(pool.means[place])
            variance = float(pool.variances[place]) + found.noise
            chosen.append(Chosen(pool.configs[place], *scale.expected(mean, unit * sqrt(variance))))
            pool.believe(place)
        return chosen


def _add_neighbours(
    pool: Pool,
    space: Space,
    configs: Sequence[Config],
    random: np.random.Generator,
    reaches: Sequence[float],
    count: int,
) -> None:
    """Let neighbours of these configs be candidates, too."""
    near = [
        one
        for config in configs
        for reach in reaches
        for one in neighbours(space, config, count, random, reach)
    ]
    if near:
        pool.add(near, encode(space, near).rows)


def at_the_end(seen: Sequence[Seen]) -> tuple[list[Config], Array]:
    """The config of each arm, and its loss as it would be at the highest level that any has reached.

    What is to be expected after a level is the median of what happened to the arms that went on
    from there. An arm that failed or diverged has inf.

    >>> configs = [{"x": 1}, {"x": 2}, {"x": 3}]
    >>> seen = [Seen(configs[0], 1, 0.5), Seen(configs[0], 3, 0.25), Seen(configs[1], 1, 0.75)]
    >>> at_the_end([*seen, Seen(configs[2], 1, np.inf)])[1]
    array([0.25, 0.5 ,  inf])
    """
    numbers: dict[int, int] = {}  # the rows of one arm have the very same config
    configs: list[Config] = []
    for one in seen:
        if id(one.config) not in numbers:
            numbers[id(one.config)] = len(configs)
            configs.append(one.config)
    levels = sorted({one.level for one in seen}, reverse=True)
    column = {level: place for place, level in enumerate(levels)}
    table = np.full((len(configs), len(levels)), np.nan)
    for one in seen:
        table[numbers[id(one.config)], column[one.level]] = min(max(one.loss, -HUGE), HUGE)
        if not isfinite(one.loss):
            table[numbers[id(one.config)], column[one.level]] = np.inf
    losses = np.full(len(configs), np.nan)
    drop = 0.0
    for losses_there in table.T:
        went_on = np.isfinite(losses_there) & np.isfinite(losses)
        if went_on.any():
            drop = float(np.median(losses_there[went_on] - losses[went_on]))
        ended = np.isnan(losses) & ~np.isnan(losses_there)
        losses[ended] = losses_there[ended] - drop
    return configs, losses


class Scale(NamedTuple):
    """A scale of losses on which a model learns: differences among the best ones count most.

    It is the logarithm of how far a loss is above the least one. Beyond twice the distance of the
    median all losses count as equally bad, and so do failures.

    - `least`: the least loss.
    - `spread`: how far the median is above it.
    """

    least: float
    spread: float

    @classmethod
    def of(cls, losses: Array) -> Scale:
        """The scale for these losses, of which failures are inf."""
        finite = losses[np.isfinite(losses)]
        if not len(finite):
            return cls(np.inf, 1.0)
        above = finite - finite.min()
        spread = float(np.median(above)) or float(above[above > 0].min(initial=np.inf))
        return cls(float(finite.min()), spread if isfinite(spread) else 1.0)

    def values(self, losses: Array) -> Array:
        """Losses on this scale."""
        if not isfinite(self.least):
            return np.zeros(len(losses))
        return np.asarray(np.log(np.minimum((losses - self.least) / self.spread, 2.0) + FLOOR))

    def expected(self, mean: float, deviation: float) -> tuple[float, float] | tuple[None, None]:
        """The mean and deviation of a loss, if they are these on the scale: it is log-normal."""
        if not isfinite(self.least):
            return None, None
        middle = exp(mean + deviation**2 / 2)
        return (
            self.least + self.spread * (middle - FLOOR),
            self.spread * middle * sqrt(expm1(deviation**2)),
        )


def spread_over(values: Array, most: int) -> NDArray[np.int64]:
    """The places of at most `most` values: of the least ones, and as many spread over the others.

    >>> spread_over(np.array([5.0, 3.0, 1.0, 4.0, 2.0, 6.0]), 4)
    array([1, 2, 4, 5])
    """
    order = np.argsort(np.round(values, PLACES), kind="stable")
    if len(order) > most:
        rest = order[most // 2 :]
        even = np.arange(most - most // 2) * (len(rest) - 1) // max(1, most - most // 2 - 1)
        order = np.concatenate([order[: most // 2], rest[even]])
    return np.sort(order)


def _without_loss(begun: Sequence[Config], seen: Sequence[Seen]) -> list[Config]:
    """The configs of arms that have begun and have no loss yet."""
    known = {id(one.config) for one in seen}
    return [config for config in begun if id(config) not in known]


class Pool:
    """Candidates, and what a process expects of them.

    - `process`: what has learnt from the arms.
    """

    def __init__(self, process: Posterior) -> None:
        self.process = process
        self.configs: list[Config] = []
        self._best = float(process.values.min())
        self._rows = np.zeros((0, process.rows.shape[1]))
        self.means, self.variances = np.zeros(0), np.zeros(0)
        self._explained = np.zeros((len(process.rows), 0))
        self._gone = np.zeros(0, dtype=bool)

    def add(self, configs: Sequence[Config], rows: Array) -> None:
        """Let configs be candidates; before any is believed."""
        means, variances, explained = self.process.at(rows)
        self.configs += configs
        self._rows = np.vstack([self._rows, rows])
        self.means = np.append(self.means, means)
        self.variances = np.append(self.variances, variances)
        self._explained = np.hstack([self._explained, explained])
        self._gone = np.append(self._gone, np.zeros(len(configs), dtype=bool))

    def ranking(self) -> NDArray[np.int64]:
        """The places of all candidates that are left, by how much they are expected to improve."""
        gains = log_improvement(self.means, np.sqrt(self.variances), self._best)
        gains[self._gone] = -np.inf
        order = np.argsort(-np.round(gains, PLACES), kind="stable")
        return order[: int((~self._gone).sum())]

    def next(self, taken: set[Hashable]) -> int | None:
        """The place of the best candidate that is not among the `taken` ones, and is from now on."""
        for place in self.ranking().tolist():
            self._gone[place] = True
            identity = config_identity(self.configs[place])
            if identity not in taken:
                taken.add(identity)
                return int(place)
        return None

    def believe(self, place: int) -> None:
        """Go on as if the candidate had come out as expected: others close to it are surer now."""
        row, explained = self._rows[place : place + 1], self._explained[:, place]
        covariances = self.process.covariances(row, self._rows)[0] - explained @ self._explained
        certain = self.process.hyperparameters.noise + JITTER
        news = covariances / sqrt(float(self.variances[place]) + certain)
        self._explained = np.vstack([self._explained, news])
        self.variances = np.maximum(self.variances - news * news, JITTER)
        self._best = min(self._best, float(self.means[place]))


def log_improvement(means: Array, deviations: Array, best: float) -> Array:
    """The logarithm of how far a normal number is expected to be below `best`; above it, 0 counts.

    log E max(best − Y, 0) = log σ (z Φ(z) + φ(z)) for z = (best − μ) / σ.
    """
    z = (best - means) / deviations
    density = np.exp(-z * z / 2) / sqrt(2 * pi)
    share = np.array([erfc(-one / sqrt(2)) / 2 for one in z.tolist()])
    with np.errstate(divide="ignore", invalid="ignore"):
        near = np.log(np.maximum(z * share + density, 0))
        far = -z * z / 2 - np.log(sqrt(2 * pi) * z**2) - 3 / z**2 + 10.5 / z**4
    return np.asarray(np.log(deviations) + np.where(z > -20, near, far))
