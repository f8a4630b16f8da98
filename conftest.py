"""What all tests need of the process that they run in."""

import signal
from pathlib import Path

import pytest

# A shell that starts the tests in the background has them ignore Ctrl-C, and with them every
# process that they start; the tests of Ctrl-C want to be heard.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _documents_write_elsewhere(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents are run in a folder of their own, so that what they write does not stay."""
    if request.node.path.suffix == ".md":
        monkeypatch.chdir(tmp_path)
