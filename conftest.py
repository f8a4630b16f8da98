"""What all tests need of the process that they run in."""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Several test processes share the cores. Linear algebra on more threads than that makes them wait
# for each other, which takes several times as long.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# Keras looks for TensorFlow if it is not told of another backend.
os.environ.setdefault("KERAS_BACKEND", "torch")

# Ray's workers give way to all other processes. Beside other tests they would wait for minutes.
os.environ.setdefault("RAY_worker_niceness", "0")

# Hundreds of tests start Python. A module is compiled by the first process that needs it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# No test asserts a time, and a machine may be busy. Continuous integration tries the same examples
# every time; elsewhere new ones are looked for.
settings.register_profile(
    "lastarm",
    derandomize=bool(os.environ.get("CI")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("lastarm")

# Without PyTorch, what needs it is not read for doctests: `make frameworks` runs these.
collect_ignore_glob = [] if find_spec("torch") else ["src/lastarm/torch/*"]
collect_ignore_glob += [
    f"src/lastarm/trainers/callbacks/{framework}.py"
    for framework in ("keras", "lightning", "transformers")
    if not find_spec(framework)
]

# The tests, and what they start, have a secret of their own: nothing is put into the user's home.
SECRET = tempfile.mkdtemp(prefix="lastarm-tests-")
os.environ["LASTARM_KEY_FILE"] = os.path.join(SECRET, "key")

# A shell that starts the tests in the background has them ignore Ctrl-C, and with them every
# process that they start; the tests of Ctrl-C want to be heard.
signal.signal(signal.SIGINT, signal.default_int_handler)

# These take longest. They are started first, so that at the end no process waits for another.
LONGEST = (
    "test_ray.py",
    "test_faults.py",
    "test_processes.py",
    "test_dask.py",
    "test_sklearn.py",
    "test_ray_of_its_own.py",
    "test_tune.py",
    "test_examples.py",
    "test_docs.py",
    "test_samplers.py",
    "test_counted.py",
    "test_paper_parts.py",
    "test_report_page.py",
    "test_chooser.py",
    "test_reproduce.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(place)))


def pytest_unconfigure() -> None:
    """Remove the secret."""
    shutil.rmtree(SECRET, ignore_errors=True)


def pytest_collection_finish() -> None:
    """Keep all that has been imported out of the search for garbage.

    These are 400,000 objects, and a test that counts what is left behind looks for garbage often.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def alive() -> Callable[[int], bool]:
    """Whether a process is running; one that only waits to be buried is not."""

    def alive(process: int) -> bool:
        try:
            stat = Path(f"/proc/{process}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] != "Z"

    return alive
