"""`watch=True`: a search is shown on a page of another process, or below a notebook's cell."""

from __future__ import annotations

import html
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from urllib.request import urlopen

import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier

from lastarm import LogUniform, SuccessiveHalving, search
from lastarm.report.live import at_hand
from lastarm.sklearn import HalvingSearch
from lastarm.trainers import Config
from tests.refusals import refused
from tests.test_result import Kernel

SPACE = {"lr": LogUniform(0.001, 1.0)}
POLICY = SuccessiveHalving(4, 16)


def train(config: Config) -> Iterator[float]:
    for pulls in range(1, 99):
        yield config["lr"] + 1 / pulls


@pytest.mark.parametrize("watch", [True, "open"])
def test_the_address_is_printed_and_the_page_ends_with_the_search(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], watch: Any
) -> None:
    opened: list[str] = []
    seen: list[bytes] = []
    said = ""

    def look(event: Any) -> None:
        nonlocal said
        said += capfd.readouterr().err
        if not seen and (found := re.search(r"Watch at (\S+)", said)):
            with urlopen(found[1], timeout=30) as page:
                seen.append(page.read())

    with patch("webbrowser.open", opened.append):
        result = search(
            train, SPACE, policy=POLICY, journal=tmp_path / "s.jsonl", watch=watch, on_event=look
        )
    assert result.complete
    assert b"<title>lastarm report</title>" in seen[0]
    found = re.search(r"Watch at (\S+)", said)
    assert found
    assert opened == ([found[1]] if watch == "open" else [])
    with pytest.raises(OSError, match=r"refused|Errno"):
        urlopen(found[1], timeout=5)
    alone = search(train, SPACE, policy=POLICY, journal=tmp_path / "alone.jsonl")
    assert alone.digest == result.digest


def test_no_name_of_a_journal_or_of_a_file_beside_it_is_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("hmac.py", "socketserver.py", "lastarm.py"):
        (tmp_path / name).write_text("raise SystemExit('this is not what was meant')\n")
    search(train, SPACE, policy=POLICY, journal="--help", watch=True, progress=False)
    said = capfd.readouterr().err
    assert "Watch at http://127.0.0.1:" in said
    assert "not what was meant" not in said


def test_a_page_needs_a_journal_to_follow() -> None:
    with refused("watch", True):
        search(train, SPACE, policy=POLICY, watch=True)
    with refused("watch", "yes"):
        search(train, SPACE, policy=POLICY, watch="yes")  # type: ignore[arg-type]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    front = Kernel()
    shell = SimpleNamespace(kernel=front)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=front.display))
    return front


@pytest.mark.parametrize("with_journal", [True, False])
def test_a_cell_holds_the_report_and_is_drawn_again_and_again(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_journal: bool
) -> None:
    monkeypatch.setattr(at_hand, "EVERY", 0.0)
    monkeypatch.setattr(at_hand, "SHARE", 1e9)
    journal = tmp_path / "s.jsonl" if with_journal else None
    search(train, SPACE, policy=POLICY, watch=True, journal=journal, progress=False)
    frames = [drawn["text/html"] for drawn in kernel.drawn if "text/html" in drawn]
    assert len(frames) > 4
    assert all(frame.startswith('<iframe sandbox="allow-scripts" srcdoc=') for frame in frames)
    last = html.unescape(frames[-1])
    assert "is recommended" in last
    assert '"state":"complete"' in last
    assert '"state":"running"' in html.unescape(frames[1])
    assert threading.active_count() < 50


def test_a_cell_is_drawn_once_a_second_at_most(kernel: Kernel) -> None:
    search(train, SPACE, policy=POLICY, watch=True, progress=False)
    assert len(kernel.drawn) == 2, "at the beginning and at the end"


def test_halving_search_is_watched_too(kernel: Kernel) -> None:
    rows, targets = make_classification(80, random_state=0)
    space = {"alpha": LogUniform(1e-6, 1.0)}
    HalvingSearch(SGDClassifier(), space, n_arms=4, budget=16, random_state=0, watch=True).fit(
        rows, targets
    )
    assert "is recommended" in kernel.drawn[-1]["text/html"]
