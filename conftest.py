"""Documents are run in a folder of their own, so that what they write does not stay."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _documents_write_elsewhere(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if request.node.path.suffix == ".md":
        monkeypatch.chdir(tmp_path)
