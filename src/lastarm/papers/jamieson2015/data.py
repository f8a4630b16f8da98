"""The data of the paper's three experiments (§5): its own, a file of the user's, or a stand-in.

Nothing is downloaded unless it is asked for by name, and nothing that is downloaded is stored in
the project. The paper does not say on which data its kernel SVM was trained; here it is the digits
that come with lastarm.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lastarm.data import digits
from lastarm.errors import InvalidArgument

Array = NDArray[Any]
SEED = 2015  # of all rows that are drawn from a file

ALL_SONGS = 515_345  # rows of YearPredictionMSD; the paper has a tenth of them
U_DATA = "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490"  # sha256 of the lines

TABLES = (
    "an .npz file with the arrays X and y, or a .csv file of numbers with the target in the last "
    "column"
)
RATINGS = (
    "u.data or ml-100k.zip of MovieLens, its folder, or a text file whose columns begin with "
    "user, item and rating, all of them numbers, separated by tabs or commas"
)

QUICK_ROWS, QUICK_RATINGS = 2_000, 10_000  # at most, of a file


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and targets; `name` is fit for a file's name, `about` is a sentence for the page."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    about: str


@dataclass(frozen=True, eq=False)
class RatingTable:
    """Rows of user, item, both numbered from 0 without gaps, and rating."""

    name: str
    rows: NDArray[np.float64]
    about: str


def regression_table(given: str | None, *, quick: bool = False) -> Table:
    """For ridge regression: "year-prediction-msd", a path, or, if None, a stand-in for the former.

    Of all of YearPredictionMSD, from its home or by a path, a tenth is drawn, as in the paper.
    """
    if given is None:
        return _songs_stand_in(QUICK_ROWS if quick else ALL_SONGS // 10)
    path = file_of(given, "year-prediction-msd")
    X, y = read_table(path)
    if y.dtype.kind == "U":
        raise _not_usable(
            path,
            f"{str(path)!r} has words as targets, but a regression needs numbers. Use {TABLES}.",
        )
    of, name, what = len(y), file_name(path), f"The file {path.name}"
    most = QUICK_ROWS if quick else of
    if is_songs(path) and of == ALL_SONGS:
        name = "year-prediction-msd"
        what = "YearPredictionMSD of the UCI repository, years of songs and features of timbre"
        most = min(most, of // 10)
    rows = draw_rows(of, most)
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
    path = file_of(given)
    X, labels = read_table(path)
    classes, y = np.unique(labels, return_inverse=True)
    if len(classes) != 2:
        raise _not_usable(
            path,
            f"The targets in {str(path)!r} have {len(classes)} different values, but the kernel "
            "SVM is for two classes. Use a file with two classes, or join classes first.",
        )
    rows = draw_rows(len(y), QUICK_ROWS if quick else len(y))
    about = _about(f"The file {path.name}", X[rows], len(y))
    return Table(file_name(path), X[rows], np.where(y[rows] == 1, 1.0, -1.0), about)


def ratings(given: str | None, *, quick: bool = False) -> RatingTable:
    """For matrix completion: "movielens-100k", a path, or, if None, a generated stand-in."""
    if given is None:
        users, items, count = (150, 200, 5_000) if quick else (600, 900, 50_000)
        return _ratings_stand_in(users, items, count)
    path = file_of(given, "movielens-100k")
    content, read = _read(path, _lines, RATINGS)
    _require_all(path, np.isfinite(read).all(axis=1))
    rows = read[draw_rows(len(read), QUICK_RATINGS if quick else len(read))]
    for column in (0, 1):
        rows[:, column] = np.unique(rows[:, column], return_inverse=True)[1]
    name, what = file_name(path), f"The file {path.name}"
    headless = content.partition(b"\n")[2]
    if U_DATA in {hashlib.sha256(data).hexdigest() for data in (content, headless)}:
        name = "movielens-100k"
        what = "MovieLens 100k of GroupLens Research, stars that people gave to films"
    return RatingTable(name, rows, _about_ratings(what, rows, len(read)))


def _songs_stand_in(n: int) -> Table:
    """Years and 90 features, about as skewed, correlated and hard to predict as the real ones."""
    random, features = np.random.default_rng(SEED), 90
    A = random.normal(size=(features, features)) / np.sqrt(1 + np.arange(features))  # few do much
    s = np.exp(random.normal(size=features))
    c = s * random.normal(size=features)
    slopes = random.normal(size=20)
    h = np.sqrt(6 / random.chisquare(8, size=(n, 1)))  # makes for rows far out
    f, g = h * random.normal(size=(2, n, features))
    z = f[:, :20] @ slopes / np.sqrt(slopes @ slopes)
    e = (random.gamma(1.5, size=n) - 1.5) / np.sqrt(1.5)  # −e is skewed towards late years
    # Least squares explains a bit less than a quarter of the years' variance.
    years = np.clip(np.round(1998.4 + 10.9 * (0.53 * z - 0.85 * e)), 1922, 2011)
    X = np.round(c + s * (f @ A.T + 0.2 * g), 5)  # the same on all machines
    what = "Generated years and features of songs, a stand-in for YearPredictionMSD"
    return Table("year-stand-in", X, years, _about(what, X, n))


def _ratings_stand_in(users: int, items: int, count: int) -> RatingTable:
    """A matrix of rank 5, and noise. Few users and items have most of the ratings."""
    random = np.random.default_rng(SEED)
    u, v = (random.normal(size=(size, 5)) / [4, 2, 2, 2, 2] for size in (users, items))
    u[:, 0] += np.sqrt(3.6)
    v[:, 0] += np.sqrt(3.6)
    stars = np.clip(np.round(u @ v.T + 0.7 * random.normal(size=(users, items))), 1, 5)
    # Drawn without replacement, in proportion to 1/(10 + rank) of the user and, to the power of
    # 1.5, of the item; at least one in every row and every column.
    rare = [10.0 + random.permutation(size) for size in (users, items)]
    turn = random.exponential(size=stars.shape) * np.outer(rare[0], rare[1] ** 1.5)
    first = turn.argmin(axis=1), turn.argmin(axis=0)
    turn[np.arange(users), first[0]] = turn[first[1], np.arange(items)] = 0
    known = np.sort(np.argsort(turn, axis=None, kind="stable")[:count])
    user, item = np.unravel_index(known, turn.shape)
    rows = np.column_stack([user, item, stars[user, item]])
    what = "Generated stars, a matrix of rank 5 with noise, in place of MovieLens 100k"
    return RatingTable("low-rank-stand-in", rows, _about_ratings(what, rows, count))


def _about(what: str, X: NDArray[np.float64], of: int) -> str:
    drawn = f" drawn from {of:,}" if len(X) < of else ""
    return f"{what}: {len(X):,} rows × {X.shape[1]} columns{drawn}."


def _about_ratings(what: str, rows: NDArray[np.float64], of: int) -> str:
    users, items = (1 + int(rows[:, column].max()) for column in (0, 1))
    drawn = f" drawn from {of:,}" if len(rows) < of else ""
    return f"{what}: {len(rows):,} ratings{drawn}, {users:,} users × {items:,} items."


# Files, and the two data sets that can be downloaded --------------------------


class Source(NamedTuple):
    """Where a data set is published, its checksum, and its terms."""

    url: str
    sha256: str
    terms: str


SOURCES = {
    "year-prediction-msd": Source(
        "https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip",
        "06f801af323bb7798e800583acce4ea1ed2697ac12c23f4424aea0a7a3d09e11",
        "YearPredictionMSD, about 200 MB: T. Bertin-Mahieux, UCI Machine Learning Repository\n"
        "(2011), doi:10.24432/C50K61. Licence CC BY 4.0: give credit where you use it.",
    ),
    "movielens-100k": Source(
        "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
        "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
        "MovieLens 100k, 5 MB: GroupLens Research, University of Minnesota. It may be used for\n"
        "research. You may not redistribute it without permission, nor use it commercially\n"
        "without permission, nor imply that they endorse you; and you must acknowledge it in\n"
        "publications: F. M. Harper and J. A. Konstan, The MovieLens Datasets: History and\n"
        "Context (2015), doi:10.1145/2827872. Without warranty; the README inside has the full\n"
        "terms.",
    ),
}


def file_of(given: str, name: str | None = None) -> Path:
    """The path that was given; or, if `name` was given, that data set, downloaded if needed."""
    return download(given) if given == name else Path(given)


def download(name: str) -> Path:
    """The file of a data set, downloaded or from the user's cache.

    Its terms are printed to standard error before the download begins.
    """
    try:
        pooch = importlib.import_module("pooch")
    except ImportError:
        raise _not_usable(
            name,
            f"{name} cannot be downloaded, because the package pooch is not installed. Run "
            'pip install "lastarm[paper]", or use a file of yours with --data PATH.',
        ) from None
    source, cache = SOURCES[name], Path(pooch.os_cache("lastarm"))
    file = source.url.rpartition("/")[2]
    if not (cache / file).exists():
        print(source.terms, file=sys.stderr, flush=True)
    known = f"sha256:{source.sha256}"
    try:
        return Path(pooch.retrieve(source.url, known, fname=file, path=cache, progressbar=False))
    except (OSError, ValueError) as error:  # no network, no room, or not the file that it was
        raise _not_usable(
            name,
            f"{name} could not be downloaded from {source.url}: {_reason(error)}. Download {file} "
            "from there on another machine and use it with --data PATH, or leave --data out to "
            "use the stand-in.",
        ) from error


def read_table(path: Path) -> tuple[Array, Array]:
    """Rows and targets as they are in the file."""
    X, y = _read(path, _arrays if path.suffix.lower() == ".npz" else _columns, TABLES)
    if X.ndim != 2 or 0 in X.shape or y.shape != X.shape[:1]:
        raise _not_usable(
            path,
            f"{str(path)!r} has X of shape {X.shape} and y of shape {y.shape}, but a table needs "
            f"at least one row and one column, and one target for each row. Use {TABLES}.",
        )
    finite = np.isfinite(X).all(axis=1)
    if y.dtype.kind == "f":
        finite &= np.isfinite(y)
    _require_all(path, finite)
    return X, y


def is_songs(path: Path) -> bool:
    """Whether a file is YearPredictionMSD, by its name."""
    return "yearpredictionmsd" in path.name.lower()


def draw_rows(n: int, most: int) -> NDArray[np.intp]:
    """All of n rows if there are at most `most`; else `most` of them, always the same ones.

    >>> draw_rows(3, most=5), draw_rows(5, most=3).size
    (array([0, 1, 2]), 3)
    """
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(SEED).choice(n, most, replace=False))


def file_name(path: Path) -> str:
    """The file's stem, with a dash for every character that is awkward in a file's name.

    >>> file_name(Path("some folder/my data (2).csv"))
    'my-data-2'
    """
    return re.sub(r"[^\w.]+", "-", path.stem).strip("-.") or "data"


def _read(path: Path, read: Callable[[Path], Any], forms: str) -> Any:
    try:
        return read(path)
    except Exception as error:  # whatever goes wrong in its reader, the file is not usable
        raise _not_usable(
            path,
            f"{str(path)!r} cannot be read: {_reason(error)}. Use {forms}; or leave --data out, "
            "and no file is needed.",
        ) from error


def _not_usable(given: Path | str, message: str) -> InvalidArgument:
    return InvalidArgument(message, argument="data", given=str(given))


def _reason(error: Exception) -> str:
    said = getattr(error, "strerror", None) or " ".join(str(error).split())
    return (said or type(error).__name__).rstrip(".")


def _require_all(path: Path, finite: NDArray[np.bool_]) -> None:
    if not finite.all():
        raise _not_usable(
            path,
            f"{str(path)!r} has nan or inf in {int((~finite).sum())} of {finite.size} rows, first "
            f"in row {int(np.argmin(finite))} counted from 0. Fill in these values, or leave "
            "these rows out.",
        )


def _arrays(path: Path) -> tuple[Array, Array]:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        missing = [name for name in ("X", "y") if name not in arrays]
        if missing:
            raise ValueError(f"it has no array {' and no array '.join(missing)}")
        X, y = arrays["X"], arrays["y"]
    if X.dtype.kind not in "biuf" or y.dtype.kind not in "biufU":
        raise ValueError(f"X is of type {X.dtype} and y of type {y.dtype}, which are not numbers")
    return X.astype(np.float64), y


def _columns(path: Path) -> tuple[Array, Array]:
    """A .csv file, or the text in a .zip: the target is last, but first if it is the songs."""
    if path.suffix.lower() == ".zip":
        with (
            zipfile.ZipFile(path) as archive,
            archive.open(_member(archive, ".csv", ".txt")) as file,
        ):
            rows = _numbers(io.TextIOWrapper(file, "utf-8-sig"))
    else:
        with path.open(encoding="utf-8-sig") as text:
            rows = _numbers(text)
    return (rows[:, 1:], rows[:, 0]) if is_songs(path) else (rows[:, :-1], rows[:, -1])


def _lines(path: Path) -> tuple[bytes, NDArray[np.float64]]:
    """A file of ratings, or the u.data in a .zip or a folder: as it is, and read."""
    if path.suffix.lower() == ".zip":
        with zipfile.ZipFile(path) as archive:
            content = archive.read(_member(archive, "u.data"))
    else:
        content = (path / "u.data" if path.is_dir() else path).read_bytes()
    return content, _numbers(io.StringIO(content.decode("utf-8-sig")), range(3))


def _member(archive: zipfile.ZipFile, *endings: str) -> str:
    for name in archive.namelist():
        if name.lower().endswith(endings):
            return name
    raise ValueError(f"there is no {' or '.join(endings)} file inside")


def _numbers(file: Iterable[str], columns: Sequence[int] | None = None) -> NDArray[np.float64]:
    """A row a line, without the header if there is one: a first line with no number in it.

    >>> _numbers(["a,b", "1,2", "3,4"])
    array([[1., 2.],
           [3., 4.]])
    """
    lines = (line for line in file if line.strip())
    first = next(lines, "")
    separator = "\t" if "\t" in first else ","
    if not any(map(_is_number, first.split(separator))):
        first = next(lines, "")
    if not first:
        raise ValueError("it has no rows")
    return np.loadtxt(
        chain([first], lines), delimiter=separator, comments=None, usecols=columns, ndmin=2
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
