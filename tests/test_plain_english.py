"""Plain English: the turns of phrase that were hard to read do not come back."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOT_TEXTS = {".npz", ".png"}
HISTORY = ROOT / "docs" / "decisions.md"  # what was decided stays as it was written
HARD = re.compile(
    r"will not do|(?<!there )\bis no (?!longer|more\b)[a-z]|\bmend|gone on with"
    r"|how-manieth|takes to the grave",
    re.IGNORECASE,
)
NOBODY = re.compile(r"\bnobody\b(?! else\b)", re.IGNORECASE)


def texts() -> Iterator[tuple[Path, int, str]]:
    """Every line that a person may read."""
    paths = [*(ROOT / "src").rglob("*"), *(ROOT / "docs").rglob("*"), ROOT / "README.md"]
    for path in paths:
        if not path.is_file() or "__pycache__" in path.parts or path == HISTORY:
            continue
        if path.suffix not in NOT_TEXTS:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                yield path.relative_to(ROOT), number, line


def test_no_text_is_hard_to_read() -> None:
    assert [place for place in texts() if HARD.search(place[2])] == []


def test_nobody_is_a_person() -> None:
    assert [place for place in texts() if NOBODY.search(place[2])] == []


@pytest.mark.parametrize(
    "sentence",
    [
        "budget=1.5 will not do",
        "asha2 is no policy",
        "Mend that, and run it again",
        "another search is not gone on with",
        "the how-manieth attempt",
        "what a worker takes to the grave",
    ],
)
def test_a_planted_sentence_is_found(sentence: str) -> None:
    assert HARD.search(sentence)


@pytest.mark.parametrize(
    "sentence", ["There is no rung", "It is no longer there", "It is no more", "Recommended arms"]
)
def test_a_plain_sentence_is_not(sentence: str) -> None:
    assert not HARD.search(sentence)
