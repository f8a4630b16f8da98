"""The data of the paper's three experiments (§5): its own, a file of the user's, or a stand-in.

Nothing is downloaded unless it is asked for by name, and nothing that is downloaded is kept in the
project. The paper does not say what its kernel SVM learnt from; here that is the digits which come
with lastarm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lastarm.data import digits
from lastarm.errors import InvalidArgument
from lastarm.papers.jamieson2015 import reading

QUICK_ROWS, QUICK_RATINGS = 2_000, 10_000  # at most, of a file


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and their targets; `name` is fit for a file's name, `about` a sentence for the page."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    about: str


@dataclass(frozen=True, eq=False)
class Ratings:
    """Rows of user, item, both numbered from 0 without gaps, and rating."""

    name: str
    rows: NDArray[np.float64]
    about: str


def regression_table(given: str | None, *, quick: bool = False) -> Table:
    """For ridge regression: "year-prediction-msd", a path, or, if None, a stand-in for the former.

    Of all of YearPredictionMSD, from its home or by a path, a tenth is drawn, as in the paper.
    """
    if given is None:
        return _songs_stand_in(QUICK_ROWS if quick else reading.ALL_SONGS // 10)
    path = reading.file_of(given, "year-prediction-msd")
    X, y = reading.table(path)
    if y.dtype.kind == "U":
        raise InvalidArgument(
            f"{str(path)!r} has words as targets, and a regression is of numbers. "
            f"Give {reading.TABLES}."
        )
    of, name, what = len(y), reading.plain(path), f"The file {path.name}"
    most = QUICK_ROWS if quick else of
    if reading.is_songs(path) and of == reading.ALL_SONGS:
        name = "year-prediction-msd"
        what = "YearPredictionMSD of the UCI repository, years of songs and features of timbre"
        most = min(most, of // 10)
    rows = reading.draw(of, most)
    return Table(name, X[rows], y[rows].astype(np.float64), _about(what, X[rows], of))


def classification_table(given: str | None, *, quick: bool = False) -> Table:
    """For the kernel SVM, with targets −1 and +1: a path, or, if None, even against odd digits.

    Of the two labels in a file, the lower, or the first in the alphabet, becomes −1.

    >>> print(classification_table(None).about)
    Handwritten digits of the UCI repository, even (+1) against odd (−1): 1,797 rows × 64 columns.
    """
    if given is None:
        images, labels = digits()
        X, y = images.astype(np.float64), np.where(labels % 2 == 0, 1.0, -1.0)
        what = "Handwritten digits of the UCI repository, even (+1) against odd (−1)"
        return Table("digits", X, y, _about(what, X, len(y)))
    path = reading.file_of(given)
    X, labels = reading.table(path)
    classes, y = np.unique(labels, return_inverse=True)
    if len(classes) != 2:
        raise InvalidArgument(
            f"the targets in {str(path)!r} have {len(classes)} different values, and the kernel "
            "SVM tells two classes apart. Give a file with two, or make two of them first."
        )
    rows = reading.draw(len(y), QUICK_ROWS if quick else len(y))
    about = _about(f"The file {path.name}", X[rows], len(y))
    return Table(reading.plain(path), X[rows], np.where(y[rows] == 1, 1.0, -1.0), about)


def ratings(given: str | None, *, quick: bool = False) -> Ratings:
    """For matrix completion: "movielens-100k", a path, or, if None, a generated stand-in."""
    if given is None:
        users, items, count = (150, 200, 5_000) if quick else (600, 900, 50_000)
        return _ratings_stand_in(users, items, count)
    path = reading.file_of(given, "movielens-100k")
    read, movielens = reading.ratings(path)
    rows = read[reading.draw(len(read), QUICK_RATINGS if quick else len(read))]
    for column in (0, 1):
        rows[:, column] = np.unique(rows[:, column], return_inverse=True)[1]
    if movielens:
        what = "MovieLens 100k of GroupLens Research, stars that people gave to films"
        return Ratings("movielens-100k", rows, _about_ratings(what, rows, len(read)))
    what = f"The file {path.name}"
    return Ratings(reading.plain(path), rows, _about_ratings(what, rows, len(read)))


def _songs_stand_in(n: int) -> Table:
    """Years and 90 features, about as skewed, correlated and hard to predict as the real ones.

    A row is x = c + s (A f + 0.2 g) h, with 90 factors f and as many noises g, all normal, and
    h² = 6/χ² with 8 degrees of freedom, which makes for rows far out. A_jk is normal with
    variance 1/k, so that few factors explain much; the scales s are log-normal, and the centres c
    normal of their order. The year is 1998.4 + 10.9 (0.53 z − 0.85 e), rounded and cut to
    1922–2011, where z is a fixed combination of the first 20 of the f h, and −e is skewed towards
    late years: e has a gamma distribution of shape 1.5. Both have mean 0 and variance 1. Least
    squares explains a bit less than a quarter of the years' variance.
    """
    random, features = np.random.default_rng(reading.SEED), 90
    A = random.normal(size=(features, features)) / np.sqrt(1 + np.arange(features))
    s = np.exp(random.normal(size=features))
    c = s * random.normal(size=features)
    slopes = random.normal(size=20)
    h = np.sqrt(6 / random.chisquare(8, size=(n, 1)))
    f, g = h * random.normal(size=(2, n, features))
    z = f[:, :20] @ slopes / np.sqrt(slopes @ slopes)
    e = (random.gamma(1.5, size=n) - 1.5) / np.sqrt(1.5)
    years = np.clip(np.round(1998.4 + 10.9 * (0.53 * z - 0.85 * e)), 1922, 2011)
    X = np.round(c + s * (f @ A.T + 0.2 * g), 5)  # the same on all machines
    what = "Generated years and features of songs, a stand-in for YearPredictionMSD"
    return Table("year-stand-in", X, years, _about(what, X, n))


def _ratings_stand_in(users: int, items: int, count: int) -> Ratings:
    """Stars 1 to 5: a matrix of rank 5, and noise. Few users and items have most of the ratings.

    Entry (i, j) is u_i·v_j + 0.7 times normal noise, rounded and cut. Of the 5 entries of each u
    and v the first is normal with mean √3.6 and deviation 1/4, the others with mean 0 and 1/2.
    Which entries are known is drawn without replacement, with chances in proportion to the user's
    1/(10 + rank) times the item's 1/(10 + rank)^1.5, ranks in random order; and at least one is
    known in every row and every column.
    """
    random = np.random.default_rng(reading.SEED)
    u, v = (random.normal(size=(size, 5)) / [4, 2, 2, 2, 2] for size in (users, items))
    u[:, 0] += np.sqrt(3.6)
    v[:, 0] += np.sqrt(3.6)
    stars = np.clip(np.round(u @ v.T + 0.7 * random.normal(size=(users, items))), 1, 5)
    rare = [10.0 + random.permutation(size) for size in (users, items)]
    turn = random.exponential(size=stars.shape) * np.outer(rare[0], rare[1] ** 1.5)
    first = turn.argmin(axis=1), turn.argmin(axis=0)
    turn[np.arange(users), first[0]] = turn[first[1], np.arange(items)] = 0
    known = np.sort(np.argsort(turn, axis=None, kind="stable")[:count])
    user, item = np.unravel_index(known, turn.shape)
    rows = np.column_stack([user, item, stars[user, item]])
    what = "Generated stars, a matrix of rank 5 with noise, in place of MovieLens 100k"
    return Ratings("low-rank-stand-in", rows, _about_ratings(what, rows, count))


def _about(what: str, X: NDArray[np.float64], of: int) -> str:
    drawn = f" drawn from {of:,}" if len(X) < of else ""
    return f"{what}: {len(X):,} rows × {X.shape[1]} columns{drawn}."


def _about_ratings(what: str, rows: NDArray[np.float64], of: int) -> str:
    users, items = (1 + int(rows[:, column].max()) for column in (0, 1))
    drawn = f" drawn from {of:,}" if len(rows) < of else ""
    return f"{what}: {len(rows):,} ratings{drawn}, {users:,} users × {items:,} items."
