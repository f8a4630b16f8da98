"""A sampler that learns, by a Gaussian process, which losses to expect of which configs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import erfc, isfinite, log, pi, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lastarm.plain import config_identity
from lastarm.samplers.matern import JITTER, Array, Posterior, fit
from lastarm.samplers.protocol import Chosen, Config, Known, Sampler, Seen
from lastarm.space import Space, encode, neighbours
from lastarm.space.encoding import Encoded
from lastarm.space.spaces import generator, read_space

EXACT = 1000  # the most arms that the process learns from
LOOKS = 500  # if there are more, earlier looks at an arm are left out
FITTED = 80  # the most arms that its hyperparameters are fitted to
DRAWN = 400  # candidates that are drawn from the space
BEST, REACHES, NEAR = (
    10,
    (0.3, 0.1, 0.03),
    13,
)  # arms, and neighbours of each of them at each reach
HOPEFUL, FINE, FINER = 10, (0.1, 0.03), 5  # the same for the candidates that look best
PENDING = 100  # the most arms without a loss that are taken into account
HUGE = 1e150  # losses beyond it are taken for it, so that their squares are finite
PLACES = 9  # what is compared is rounded to so many
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(16)  # for means over a normal distribution
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True, kw_only=True)
class GaussianProcess(Sampler):
    """Chooses the configs that are expected to improve most on the best one so far.

    - `batch`: how many arms are chosen at a time. A policy that begins its arms in brackets of its
      own has each bracket chosen as a whole.
    - `random_share`: the share of all arms that keep the config they would have without a sampler.

    The losses of each level are shifted by what the arms that went on gained from there. From
    these losses a Gaussian process learns what to expect of any config at the level at which arms
    are compared, and how sure that is. The level is one more column of what it learns from, so it
    also learns how much early losses tell. The candidates are random configs and neighbours of the
    best. The one with the greatest expected improvement is chosen, then the next one as if that
    had come out as expected, and so on.

    >>> from lastarm.space import Uniform
    >>> begun = [{"x": x / 10} for x in range(10)]
    >>> seen = [Seen(config, 1, (config["x"] - 0.33) ** 2) for config in begun]
    >>> known = Known({"x": Uniform(0, 1)}, seen, begun, [{"x": 0.95}], 1, seed=0, level=1)
    >>> (chosen,) = GaussianProcess().choose(known)
    >>> 0.30 < chosen.config["x"] < 0.36
    True

    It needs nothing but NumPy. What it chooses does not depend on how NumPy rounds: scores are
    rounded before they are compared, and the first of the greatest is taken. Up to 500 looks it
    learns from all of them. With more, earlier looks of an arm are left out, those at the lowest
    levels first. Of more than 1,000 arms, it learns from the 500 best and 500 of the others.

    Source: Jones, Schonlau & Welch, "Efficient global optimization of expensive black-box
    functions" (1998). To believe that a batch comes out as expected is the "kriging believer" of
    Ginsbourger, Le Riche & Carraro, "Kriging is well-suited to parallelize optimization" (2010).
    Keeping a third of the configs random is from Falkner, Klein & Hutter, "BOHB" (ICML 2018).
    """

    def choose(self, known: Known) -> list[Chosen]:
        """The configs that are expected to improve most, the best first."""
        arms, looks = shifted(known.seen)
        scores, values = Scores.of(looks.losses)
        kept = spread_over(values, EXACT)
        which, levels, values = looks.arms[kept], looks.levels[kept], values[kept]
        middle, unit = float(values.mean()), float(values.std()) or 1.0
        values = (values - middle) / unit

        pending = _without_loss(known.begun, known.seen)[-PENDING:]
        drawn = list(known.candidates[:DRAWN])
        space = read_space(known.space)
        every, parameters = in_the_end(encode(space, [*arms, *pending, *drawn]))
        begun, waiting, fresh = np.split(every, [len(arms), len(arms) + len(pending)])
        top = max(known.level or 1, int(levels.max()))
        rows = begun[which]
        rows[:, -1] = np.log(levels) / log(top) if top > 1 else 1.0
        few = spread_over(values, FITTED)
        found = fit(rows[few], parameters, values[few])
        process = Posterior.of(rows, parameters, values, found)
        expected = process.at(begun)[0]
        if pending:
            process = process.believing(waiting)

        pool = Pool(process, float(expected.min()))
        pool.add(drawn, fresh)
        random = generator(known.seed, "neighbours")
        order = np.argsort(np.round(expected, PLACES), kind="stable")
        best = [arms[k] for k in order[:BEST].tolist()]
        _add_neighbours(pool, space, best, random, REACHES, NEAR)
        hopeful = [pool.configs[place] for place in pool.ranking()[:HOPEFUL].tolist()]
        _add_neighbours(pool, space, hopeful, random, FINE, FINER)

        taken = set(map(config_identity, known.begun))
        chosen: list[Chosen] = []
        while len(chosen) < known.count and (place := pool.next(taken)) is not None:
            mean = middle + unit * float(pool.means[place])
            variance = float(pool.variances[place]) + found.noise
            chosen.append(
                Chosen(pool.configs[place], *scores.expected(mean, unit * sqrt(variance)))
            )
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
        pool.add(near, in_the_end(encode(space, near)).rows)


class Looks(NamedTuple):
    """Looks at losses, as a model learns them.

    - `arms`: the number of the arm that was looked at.
    - `levels`: after how many pulls.
    - `losses`: as they would be at the highest level of all; inf if the arm failed or diverged.
    """

    arms: NDArray[np.int64]
    levels: NDArray[np.int64]
    losses: Array


def shifted(seen: Sequence[Seen]) -> tuple[list[Config], Looks]:
    """The config of each arm, and what was seen of them, as if all levels were the highest.

    What is to be expected after a level is the median of what happened to the arms that went on
    from there. An arm that failed or diverged has inf at the highest level, and nothing besides.

    >>> configs = [{"x": 1}, {"x": 2}, {"x": 3}]
    >>> seen = [Seen(configs[0], 1, 0.5), Seen(configs[0], 3, 0.25), Seen(configs[1], 1, 0.75)]
    >>> _, looks = shifted([*seen, Seen(configs[2], 1, np.inf)])
    >>> looks.arms, looks.levels, looks.losses
    (array([0, 0, 1, 2]), array([3, 1, 1, 3]), array([0.25, 0.25, 0.5 ,  inf]))
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
    ends = np.full(len(configs), np.nan)
    looked = ~np.isnan(table)
    drop = 0.0
    for k in range(len(levels)):
        losses_there = table[:, k]
        went_on = np.isfinite(losses_there) & np.isfinite(ends)
        if went_on.any():
            drop = float(np.median(losses_there[went_on] - ends[went_on]))
        looked[np.isinf(ends), k] = False
        table[:, k] -= drop
        ends = np.where(np.isnan(ends), table[:, k], ends)
    which, place = np.nonzero(looked)
    earlier = place != np.argmax(looked, axis=1)[which]
    kept = np.lexsort((which, place, earlier))[: max(LOOKS, len(configs))]
    which, place = which[np.sort(kept)], place[np.sort(kept)]
    losses = table[which, place]
    return configs, Looks(which, np.array(levels)[np.where(np.isinf(losses), 0, place)], losses)


def in_the_end(encoded: Encoded) -> Encoded:
    """Rows with one more column: where their level is between 1 pull, 0, and the highest, 1."""
    rows, parameters = encoded
    own = parameters.max(initial=-1) + 1
    return Encoded(np.column_stack([rows, np.ones(len(rows))]), np.append(parameters, own))


class Scores(NamedTuple):
    """Losses as a model learns them: by their order, as if they were normal.

    Of n losses the k-th has the score Φ⁻¹((k − ½) / n). Equal losses share the mean place, and so
    do failures, at the end. So differences among the best count most, no loss is too large, and
    the model's assumption, that values are normal, is true of the scores.

    - `scores`: those of the distinct finite losses, from low to high.
    - `losses`: these losses.
    """

    scores: Array
    losses: Array

    @classmethod
    def of(cls, losses: Array) -> tuple[Scores, Array]:
        """What scores mean, and the score of each of these losses, of which failures are inf.

        >>> Scores.of(np.array([0.1, 1e300, 0.2, np.inf]))[1].round(2)
        array([-1.15,  0.32, -0.32,  1.15])
        """
        distinct, which, counts = np.unique(losses, return_inverse=True, return_counts=True)
        shares = (np.cumsum(counts) - counts / 2) / len(losses)
        scores = np.array([NormalDist().inv_cdf(share) for share in shares.tolist()])
        finite = np.isfinite(distinct)
        return cls(scores[finite], distinct[finite]), scores[which]

    def loss(self, scores: Array) -> Array:
        """The losses that scores stand for; below the least one they fall as they do above it."""
        below = np.minimum(scores - self.scores[0], 0)
        middle = (len(self.scores) - 1) // 2
        rise = self.losses[middle] - self.losses[0]
        slope = rise / (self.scores[middle] - self.scores[0]) if middle else 0.0
        return np.asarray(np.interp(scores, self.scores, self.losses) + slope * below)

    def expected(self, mean: float, deviation: float) -> tuple[float, float] | tuple[None, None]:
        """The mean and deviation of a loss whose score has these; None if there is no loss yet."""
        if not len(self.losses):
            return None, None
        losses, weights = self.loss(mean + deviation * NODES), WEIGHTS
        expected = float(weights @ losses)
        return expected, sqrt(float(weights @ (losses - expected) ** 2))


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
    - `best`: the least value that is expected of any of them.
    """

    def __init__(self, process: Posterior, best: float) -> None:
        self.process = process
        self.configs: list[Config] = []
        self._best = best
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
        """The place of the best candidate that is not `taken`. From now on it is."""
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
