"""The fault campaigns in their short form, and planted bugs that they must catch."""

import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest

from faults.all import CAMPAIGNS, PLANTED
from faults.campaign import Campaign, Most, added, part_of
from faults.engines import DASK_FAULTS, KILLED, RAY_FAULTS, Engine, dask_engine, strike
from faults.offspring import Place, Started
from faults.planted import Planted
from faults.records import PAGE, ROOT, Part, Records
from faults.reference import Reference
from lastarm import UniformAllocation, search
from lastarm.errors import AllArmsFailed
from lastarm.events import Event, Failure, Loss, Opened, Pull, Told, Work
from lastarm.journal import read
from lastarm.runners import Arms
from lastarm.testing.runners import Scripted

# For F9 see below, for F10 test_ray.py.
OTHERS = [campaign for campaign in CAMPAIGNS if campaign not in (DASK_FAULTS, RAY_FAULTS)]


@pytest.mark.parametrize("campaign", OTHERS, ids=lambda campaign: campaign.name)
def test_campaign(campaign: Campaign, tmp_path: Path) -> None:
    figures = campaign.run(range(campaign.short), tmp_path)
    assert figures


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_a_campaign_catches(bug: Planted, tmp_path: Path) -> None:
    with bug.plant(), pytest.raises(AssertionError) as caught:
        bug.campaign.run(bug.tries, tmp_path)
    cause = caught.value.__cause__
    assert not isinstance(cause, NameError | AttributeError | ImportError), "badly planted"


@pytest.mark.parametrize("parts", [1, 3, 7])
def test_the_parts_of_a_campaign_are_all_of_it_and_add_up(parts: int) -> None:
    for campaign in CAMPAIGNS:
        ranges = [part_of(campaign, number, parts) for number in range(1, parts + 1)]
        assert [n for tries in ranges for n in tries] == list(range(campaign.full))
    several = [{"kills": number, "s": number / 2, "there are": Most(9)} for number in range(parts)]
    assert added(several) == {"kills": sum(range(parts)), "s": (parts - 1) / 2, "there are": 9}


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=lambda campaign: campaign.name)
def test_a_campaign_names_the_code_that_it_exercises(campaign: Campaign) -> None:
    files = {path: set(ROOT.glob(path)) for path in campaign.paths}
    assert all(files.values())
    own = getattr(campaign.run, "func", campaign.run).__module__
    assert ROOT / f"{own.replace('.', '/')}.py" in set[Path]().union(*files.values())


def test_a_campaign_is_due_again_if_its_code_has_changed(tmp_path: Path) -> None:
    def commit(name: str, content: str) -> None:
        (tmp_path / name).write_text(content)
        for words in (["add", name], ["-c", "commit.gpgsign=false", "commit", "-qm", content]):
            who = ["-c", "user.name=x", "-c", "user.email=x"]
            subprocess.run(["git", *who, *words], cwd=tmp_path, check=True)

    def ran(number: int, *, broken: str = "") -> str:
        at = records.commit(campaign)
        records.keep(campaign, Part(number, 2, at, "here", 1.0, {"kills": 3}, broken))
        return at

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "code").mkdir()
    campaign = CAMPAIGNS[0]._replace(paths=("code/*.py",), parts=2)
    records = Records(tmp_path)
    commit("code/one.py", "first")
    assert list(records.due(campaign)) == [(1, 2), (2, 2)]
    first = ran(1)
    assert list(records.due(campaign)) == [(2, 2)]
    commit("other.py", "another file")
    second = ran(2)
    assert not records.due(campaign)
    assert f"| 6 kills | 2 | {first}, {second} |" in records.page([campaign])
    commit("code/one.py", "changed")
    assert len(records.due(campaign)) == 2
    ran(1, broken="a promise")
    assert len(records.due(campaign)) == 2
    ran(1)
    assert [part.number for part in records.of(campaign)] == [1], "of other code"
    (tmp_path / "code/one.py").write_text("changed, and not committed")
    assert ran(1).endswith("-dirty")
    assert len(records.due(campaign)) == 2


def test_a_process_of_the_campaign_of_children_knows_the_campaign(tmp_path: Path) -> None:
    place = Place(tmp_path, "knows")
    place.temporary.mkdir()
    assert Started(place, "-c", "import faults.offspring").end() == (0, [], "")


def test_a_campaign_that_is_told_to_end_does_not_say_that_a_promise_is_broken(
    tmp_path: Path,
) -> None:
    def stop(event: Event) -> None:
        if isinstance(event, Opened):
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        Reference(tmp_path).resumed("nothing", on_event=stop)


def test_the_page_of_the_campaigns_shows_what_they_saw() -> None:
    assert Records().page(CAMPAIGNS) == (ROOT / PAGE).read_text(), "python -m faults.records"


@pytest.fixture(scope="module")
def dask() -> Iterator[Engine]:
    with dask_engine() as engine:
        yield engine


def test_campaign_f9(dask: Engine, tmp_path: Path) -> None:
    _, blow = strike(0, KILLED, dask, tmp_path)
    assert blow.struck == 1


def test_campaign_f9_catches_a_bug(dask: Engine, tmp_path: Path) -> None:
    with (
        patch("lastarm.loop.ATTEMPTS_OF_LOST", 1),
        pytest.raises(AssertionError, match=r"\{\d"),  # the arms that are out
    ):
        strike(0, KILLED, dask, tmp_path)


class Fated:
    """A runner whose attempts end as it is written: in an error, a death of the worker, a loss."""

    def __init__(self, arms: Arms, fate: str) -> None:
        self._fate = fate
        self._told: list[Told] = []

    @property
    def free(self) -> int:
        return 1 - len(self._told)

    def start(self, pull: Pull, attempt: int) -> None:
        end, work = self._fate[attempt - 1], Work(pull.upto, attempt=attempt)
        failure = Failure(pull, "it failed", work=work, lost=end == "d")
        self._told.append(Loss(pull, 0.5, work) if end == "l" else failure)

    def wait(self, seconds: float) -> list[Told]:
        results, self._told = self._told, []
        return results

    def state(self, pull: Pull) -> None:
        return None

    def close(self) -> None:
        pass


class Crash(Exception):
    """The search is cut short."""


@pytest.mark.parametrize("fate", ["eeddl", "dedel", "eee", "ddd", "edee", "edded"])
def test_deaths_of_workers_are_counted_apart_from_errors(fate: str, tmp_path: Path) -> None:
    seen: list[Event] = []

    def crash(event: Event) -> None:
        if isinstance(event, Failure) and event not in seen:
            seen.append(event)
            raise Crash

    def go_on() -> bool:
        try:
            search(
                Scripted(),
                [{"script": [0.5]}, {"script": [0.25]}],
                policy=UniformAllocation(2, 2),
                runner=partial(Fated, fate=fate),
                retries=2,
                journal=tmp_path / "search.jsonl",
                on_event=crash,
            )
        except Crash:
            return True
        except AllArmsFailed:
            assert not fate.endswith("l")
        return False

    while go_on():
        pass
    told = [
        event for event in read(tmp_path / "search.jsonl") if isinstance(event, Loss | Failure)
    ]
    for arm in (0, 1):
        attempts = [event.work.attempt for event in told if event.pull.arm == arm]
        assert attempts == [*range(1, len(fate) + 1)]
