"""The data of the paper's experiments: files, downloads and stand-ins."""

import hashlib
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lastarm.papers.jamieson2015 import data
from lastarm.papers.jamieson2015.data import classification_table, ratings, regression_table
from tests.refusals import refused

U_DATA = "196\t242\t3\t881250949\n186\t302\t3\t891717742\n196\t377\t1\t878887116\n"
RENUMBERED = [[1, 0, 3], [0, 1, 3], [1, 2, 1]]


def skewness(y: NDArray[np.float64]) -> float:
    return float(np.mean((y - y.mean()) ** 3) / y.std() ** 3)


def explained(X: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """R² of least squares, of the second half of the rows by the first."""
    half, X = len(y) // 2, np.column_stack([np.ones(len(y)), X])
    w = np.linalg.lstsq(X[:half], y[:half], rcond=None)[0]
    return float(1 - np.mean((y[half:] - X[half:] @ w) ** 2) / y[half:].var())


def file(path: Path, content: str | dict[str, str]) -> str:
    """A text file, or a .zip with several."""
    if isinstance(content, str):
        path.write_text(content)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in content.items():
                archive.writestr(name, text)
    return str(path)


def saved(path: Path, **arrays: Any) -> str:
    np.savez(path, **arrays)
    return str(path)


# Stand-ins --------------------------------------------------------------------------------------


def test_the_years_stand_in_is_as_large_skewed_and_hard_to_predict_as_the_real_ones() -> None:
    table = regression_table(None)
    assert table.name == "year-stand-in"
    assert "51,534 rows × 90 columns" in table.about
    assert table.X.shape == (51_534, 90)
    assert table.y.shape == (51_534,)
    assert skewness(table.y) < -1
    assert 1922 <= table.y.min() < table.y.max() == 2011
    assert 0.2 < explained(table.X, table.y) < 0.25
    correlations = np.abs(np.corrcoef(table.X[:5000].T))
    assert 0.5 < np.max(correlations - np.eye(90)) < 0.9
    assert np.mean(((table.X - table.X.mean(0)) / table.X.std(0)) ** 4) > 4  # a normal one has 3


def test_stand_ins_are_the_same_every_time() -> None:
    once, again = (regression_table(None, quick=True) for _ in range(2))
    assert once.X.shape == (2000, 90)
    np.testing.assert_array_equal(once.X, again.X)
    np.testing.assert_array_equal(once.y, again.y)
    np.testing.assert_array_equal(ratings(None).rows, ratings(None).rows)


@pytest.mark.parametrize(
    ("quick", "users", "items", "count"), [(False, 600, 900, 50_000), (True, 150, 200, 5_000)]
)
def test_the_ratings_stand_in_is_skewed_and_without_gaps(
    quick: bool, users: int, items: int, count: int
) -> None:
    made = ratings(None, quick=quick)
    assert made.name == "low-rank-stand-in"
    assert made.rows.shape == (count, 3)
    assert f"{count:,} ratings, {users} users × {items} items." in made.about
    for column, size in enumerate((users, items)):
        counts = np.bincount(made.rows[:, column].astype(int))
        assert len(counts) == size
        assert counts.min() >= 1
        assert counts.max() > 3 * np.median(counts) > 6 * counts.min()
    assert len(np.unique(made.rows[:, :2], axis=0)) == count
    assert set(made.rows[:, 2]) == {1, 2, 3, 4, 5}
    assert made.rows[:, 2].mean() == pytest.approx(3.5, abs=0.15)


def test_without_a_file_even_digits_are_told_from_odd_ones() -> None:
    table = classification_table(None, quick=True)
    assert (table.name, table.X.shape, set(table.y)) == ("digits", (1797, 64), {-1.0, 1.0})


# Tables from files ------------------------------------------------------------------------------


def test_an_npz_file_is_read_and_its_test_part_is_not(tmp_path: Path) -> None:
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    path = saved(tmp_path / "my table.npz", X=X, y=[1, 2, 4], X_test=X, y_test=["?"] * 3)
    table = regression_table(path)
    assert table.name == "my-table"
    assert table.about == "The file my table.npz: 3 rows × 2 columns."
    assert {table.X.dtype, table.y.dtype} == {np.dtype(np.float64)}
    assert (table.X.tolist(), table.y.tolist()) == (X.tolist(), [1, 2, 4])


@pytest.mark.parametrize("header", ["", "length,width,weight\n", "\ufefflength,width,weight\n"])
def test_the_last_column_of_a_csv_file_is_the_target(tmp_path: Path, header: str) -> None:
    table = regression_table(file(tmp_path / "t.csv", header + "1,2,3\n4,5,6\n\n"))
    assert (table.X.tolist(), table.y.tolist()) == ([[1, 2], [4, 5]], [3, 6])


@pytest.mark.parametrize("name", ["YearPredictionMSD.txt", "yearpredictionmsd.zip"])
def test_of_all_songs_a_tenth_is_drawn_and_the_year_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text = "".join(f"{1900 + i},{i}.5,{-i}\n" for i in range(105))
    path = file(tmp_path / name, {"YearPredictionMSD.txt": text} if "zip" in name else text)
    part = regression_table(path)
    assert (part.name, part.X.shape) == (Path(name).stem, (105, 2))
    monkeypatch.setattr(data, "ALL_SONGS", 105)
    whole = regression_table(path)
    assert whole.name == "year-prediction-msd"
    assert whole.about.endswith(": 10 rows × 2 columns drawn from 105.")
    assert (whole.X[:, 0] - 0.5 == whole.y - 1900).all()
    assert (np.diff(whole.y) > 0).all()
    assert len(set(np.diff(whole.y))) > 1  # not each tenth, for neighbours are of one artist


@pytest.mark.parametrize("labels", [[0, 1], [-1, 1], [3, 7], ["no", "yes"], [False, True]])
def test_the_lower_of_two_labels_becomes_minus_one(tmp_path: Path, labels: list[Any]) -> None:
    low, high = labels
    path = saved(tmp_path / "two.npz", X=np.eye(3), y=[high, low, high])
    assert classification_table(path).y.tolist() == [1, -1, 1]


def test_quickly_at_most_2000_rows_and_10000_ratings_are_used(tmp_path: Path) -> None:
    n = 3000
    path = saved(tmp_path / "many.npz", X=np.arange(n)[:, None], y=np.arange(n) % 2)
    for read in (regression_table, classification_table):
        table = read(path, quick=True)
        assert table.about == "The file many.npz: 2,000 rows × 1 columns drawn from 3,000."
        np.testing.assert_array_equal(table.X[:, 0] % 2, table.y > 0)
        np.testing.assert_array_equal(table.X, read(path, quick=True).X)
        assert len(read(path).y) == n
    lines = "".join(f"{i // 7},{i},3\n" for i in range(12_000))
    rows = ratings(file(tmp_path / "r.csv", "userId,movieId,rating\n" + lines), quick=True).rows
    assert rows.shape == (10_000, 3)
    assert (rows[:, 1] == np.arange(10_000)).all()


# Ratings from files -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("u.data", U_DATA),
        ("ml-100k.inter", "user_id:token\titem_id:token\trating:float\tt:float\n" + U_DATA),
        ("ratings.csv", "userId,movieId,rating,timestamp\n" + U_DATA.replace("\t", ",")),
        ("ml-100k.zip", {"ml-100k/README": "terms", "ml-100k/u.data": U_DATA}),
        ("folder", U_DATA),
    ],
)
def test_ratings_are_read_in_all_their_forms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: Any
) -> None:
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
        file(path / "u.data", content)
    read = ratings(str(path) if name == "folder" else file(path, content))
    assert read.name == Path(name).stem
    assert read.rows.tolist() == RENUMBERED
    assert read.about == f"The file {name}: 3 ratings, 2 users × 3 items."
    monkeypatch.setattr(data, "U_DATA", hashlib.sha256(U_DATA.encode()).hexdigest())
    assert ratings(str(path)).name == ("ratings" if "csv" in name else "movielens-100k")


# What cannot be used ----------------------------------------------------------------------------

X = np.ones((3, 2))
REFUSED: list[tuple[str, Any, type[Exception] | None]] = [  # and the error of its reader
    ("gone.csv", None, FileNotFoundError),
    ("a.npz", {"X": X}, ValueError),
    ("a.npz", {"losses": X}, ValueError),
    ("a.npz", {"X": X, "y": np.ones(2)}, None),
    ("a.npz", {"X": np.ones(3), "y": np.ones(3)}, None),
    ("a.npz", {"X": np.ones((0, 2)), "y": []}, None),
    ("a.npz", {"X": X, "y": np.array([None] * 3)}, ValueError),
    ("a.npz", {"X": X + 1j, "y": np.ones(3)}, ValueError),
    ("a.npz", {"X": X, "y": [0, np.nan, 1]}, None),
    ("a.npz", {"X": X * [1, np.inf], "y": ["a", "b", "c"]}, None),
    ("a.npz", "PK\3\4 torn", zipfile.BadZipFile),
    ("a.csv", "", ValueError),
    ("a.csv", "x,y\n", ValueError),
    ("a.csv", "1,2,3\n", None),
    ("a.csv", "1,2\n3,inf\nnan,1\n", None),
    ("a.csv", "1,,3\n1,2,3\n", ValueError),
    ("a.csv", "1,2\n1,2,3\n", ValueError),
    ("a.csv", "1\n2\n", None),
    ("a.csv", "1,1\n1,2\n1,3\n", None),
    ("a.zip", {"b.bin": "1,2\n"}, ValueError),
    (".", None, IsADirectoryError),
]


@pytest.mark.parametrize(("name", "content", "cause"), REFUSED)
def test_a_table_that_cannot_be_used_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: Any,
    cause: type[Exception] | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    if isinstance(content, dict) and name.endswith(".npz"):
        saved(Path(name), **content)
    elif content is not None:
        file(Path(name), content)
    with refused("data", name) as error:
        classification_table(name)
    assert isinstance(error.value.__cause__, cause or type(None))


def test_an_error_counts_the_rows_that_are_not_finite(tmp_path: Path) -> None:
    path = file(tmp_path / "a.csv", "1,2\n3,inf\nnan,1\n")
    with refused("data", path) as error:
        classification_table(path)
    assert "2 of 3 rows, first in row 1 counted from 0" in str(error.value)


def test_a_regression_is_not_of_words(tmp_path: Path) -> None:
    path = saved(tmp_path / "words.npz", X=X, y=["a", "b", "a"])
    with refused("data", path):
        regression_table(path)


@pytest.mark.parametrize(
    ("name", "content", "cause"),
    [
        ("gone.data", None, FileNotFoundError),
        ("r.csv", "user,item\n1,2\n", ValueError),
        ("r.csv", "user,item,rating\n", ValueError),
        ("r.csv", "ann,7,3\nbob,7,4\n", ValueError),
        ("u.data", "1\t2\tnan\t0\n", None),
        ("m.zip", {"README": ""}, ValueError),
        (".", None, FileNotFoundError),
    ],
)
def test_ratings_that_cannot_be_used_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: Any,
    cause: type[Exception] | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        file(Path(name), content)
    with refused("data", name) as error:
        ratings(name)
    assert isinstance(error.value.__cause__, cause or type(None))


# Downloads --------------------------------------------------------------------------------------

NAMED: list[tuple[str, Callable[[str], Any], str]] = [
    ("year-prediction-msd", regression_table, "CC BY 4.0"),
    ("movielens-100k", ratings, "may not redistribute"),
]


@pytest.mark.parametrize(("name", "read", "terms"), NAMED)
def test_terms_are_shown_before_a_download_and_a_failed_one_says_what_to_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    read: Callable[[str], Any],
    terms: str,
) -> None:
    def retrieve(url: str, *arguments: Any, **settings: Any) -> str:
        assert terms in capsys.readouterr().err
        raise ConnectionError("no network")

    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / project)
    monkeypatch.setattr("pooch.retrieve", retrieve)
    with refused("data", name) as error:
        read(name)
    assert data.SOURCES[name].url in str(error.value)
    assert isinstance(error.value.__cause__, ConnectionError)


def test_a_download_is_checked_and_kept_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def retrieve(url: str, known_hash: str, *, fname: str, path: Path, progressbar: bool) -> str:
        assert (url, known_hash) == (source.url, f"sha256:{source.sha256}")
        assert not progressbar
        path.mkdir(exist_ok=True)
        return file(path / fname, {"ml-100k/u.data": U_DATA})

    source = data.SOURCES["movielens-100k"]
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / project)
    monkeypatch.setattr("pooch.retrieve", retrieve)
    assert ratings("movielens-100k").rows.tolist() == RENUMBERED
    assert "may not redistribute" in capsys.readouterr().err
    assert (tmp_path / "lastarm" / "ml-100k.zip").exists()
    ratings("movielens-100k")
    assert not capsys.readouterr().err


def test_without_pooch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with refused("data", "movielens-100k") as error:
        ratings("movielens-100k")
    assert "lastarm[paper]" in str(error.value)


def test_a_table_is_not_looked_for_by_the_name_of_the_ratings() -> None:
    with refused("data", "movielens-100k") as error:
        regression_table("movielens-100k")
    assert isinstance(error.value.__cause__, FileNotFoundError)
