"""Files of data, and the two data sets of the paper that can be downloaded from their homes."""

from __future__ import annotations

import hashlib
import importlib
import io
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lastarm.errors import InvalidArgument

Array = NDArray[Any]
SEED = 2015  # of all rows that are drawn from a file

SONGS = "yearpredictionmsd"  # what the file of the songs is called, in whatever case
ALL_SONGS = 515_345  # its rows; the paper has a tenth of them
U_DATA = "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490"  # sha256 of the lines

TABLES = (
    "an .npz file with the arrays X and y, or a .csv file of numbers with the target in the last "
    "column"
)
RATINGS = (
    "u.data or ml-100k.zip of MovieLens, its folder, or a text file whose columns begin with "
    "user, item and rating, all of them numbers, separated by tabs or commas"
)


class Source(NamedTuple):
    """Where a data set is at home, what is there, and on what terms."""

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
    """The path that was given; if it is `name` instead, that data set, downloaded if need be."""
    return download(given) if given == name else Path(given)


def download(name: str) -> Path:
    """The file of a data set, from its home or from the user's cache.

    Its terms are shown before the download begins, on standard error.
    """
    try:
        pooch = importlib.import_module("pooch")
    except ImportError:
        raise InvalidArgument(
            f"pooch is needed to download {name}, and it is not installed: "
            'pip install "lastarm[paper]", or give a file by --data PATH.'
        ) from None
    source, cache = SOURCES[name], Path(pooch.os_cache("lastarm"))
    file = source.url.rpartition("/")[2]
    if not (cache / file).exists():
        print(source.terms, file=sys.stderr, flush=True)
    known = f"sha256:{source.sha256}"
    try:
        return Path(pooch.retrieve(source.url, known, fname=file, path=cache, progressbar=False))
    except (OSError, ValueError) as error:  # no network, no room, or not the file that it was
        raise InvalidArgument(
            f"{name} could not be downloaded from {source.url}: {_reason(error)}. Fetch {file} "
            "from there on another machine and give it by --data PATH, or leave --data out to "
            "use the stand-in."
        ) from error


def table(path: Path) -> tuple[Array, Array]:
    """Rows and targets as they are in the file."""
    X, y = _read(path, _arrays if path.suffix.lower() == ".npz" else _columns, TABLES)
    if X.ndim != 2 or 0 in X.shape or y.shape != X.shape[:1]:
        raise InvalidArgument(
            f"{str(path)!r} has X of shape {X.shape} and y of shape {y.shape}: there are to be "
            f"rows and columns, at least one of each, and one target for each row. Give {TABLES}."
        )
    finite = np.isfinite(X).all(axis=1)
    if y.dtype.kind == "f":
        finite &= np.isfinite(y)
    _require_all(path, finite)
    return X, y


def ratings(path: Path) -> tuple[NDArray[np.float64], bool]:
    """User, item and rating of each line as they are there, and whether it is MovieLens 100k."""
    content, rows = _read(path, _lines, RATINGS)
    _require_all(path, np.isfinite(rows).all(axis=1))
    headless = content.partition(b"\n")[2]
    return rows, U_DATA in {hashlib.sha256(data).hexdigest() for data in (content, headless)}


def is_songs(path: Path) -> bool:
    """Whether a file is YearPredictionMSD, by its name."""
    return SONGS in path.name.lower()


def draw(n: int, most: int) -> NDArray[np.intp]:
    """All of n rows if there are no more than `most`; else so many of them, always the same.

    >>> draw(3, most=5), draw(5, most=3).size
    (array([0, 1, 2]), 3)
    """
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(SEED).choice(n, most, replace=False))


def plain(path: Path) -> str:
    """The file's stem, with a dash for whatever is awkward in the name of a file.

    >>> plain(Path("some folder/my data (2).csv"))
    'my-data-2'
    """
    return re.sub(r"[^\w.]+", "-", path.stem).strip("-.") or "data"


def _read(path: Path, read: Callable[[Path], Any], forms: str) -> Any:
    try:
        return read(path)
    except Exception as error:  # whatever a foreign file does to its reader, it is no data
        raise InvalidArgument(
            f"{str(path)!r} cannot be read: {_reason(error)}. Give {forms}; or leave --data out, "
            "and no file is needed."
        ) from error


def _reason(error: Exception) -> str:
    said = getattr(error, "strerror", None) or " ".join(str(error).split())
    return (said or type(error).__name__).rstrip(".")


def _require_all(path: Path, finite: NDArray[np.bool_]) -> None:
    if not finite.all():
        raise InvalidArgument(
            f"{str(path)!r} holds nan or inf, first in row {int(np.argmin(finite))} counted from "
            f"0, and in {int((~finite).sum())} of {finite.size} rows. Fill in or leave out such "
            "rows."
        )


def _arrays(path: Path) -> tuple[Array, Array]:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        missing = [name for name in ("X", "y") if name not in arrays]
        if missing:
            raise ValueError(f"it has no array {' and no array '.join(missing)}")
        X, y = arrays["X"], arrays["y"]
    if X.dtype.kind not in "biuf" or y.dtype.kind not in "biufU":
        raise ValueError(f"X is of type {X.dtype} and y of type {y.dtype}, which are no numbers")
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
        raise ValueError("there are no rows in it")
    return np.loadtxt(
        chain([first], lines), delimiter=separator, comments=None, usecols=columns, ndmin=2
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
