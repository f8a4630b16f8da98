"""What is known of a journal that is watched, and what of it is new.

All that a page shows is in parts, each with a name and the number of the update that changed it
last. So a browser that knows of update 12 is sent the parts that changed since, and no others.

There are two kinds of parts. What every line may change is kept up to date line by line: who works
on what, the best so far, how full rungs are, and the curves of arms. All else is made by
`contents`, as for a report, which takes longer the longer the search is. So it is made again as
soon as there is something new, but at most a fifth of the time is spent on that.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from math import isfinite
from pathlib import Path
from time import monotonic, time
from typing import Any, NamedTuple

from lastarm.events import Event, Failure, Loss, Opened, Pull, Started
from lastarm.journal.following import Following
from lastarm.journal.header import metric_of
from lastarm.journal.lock import is_held
from lastarm.ledger import Ledger
from lastarm.plain import finite
from lastarm.report.axes import thinned
from lastarm.report.hyperparameters import flat
from lastarm.report.page.contents import MOST_ARMS, MOST_POINTS, contents
from lastarm.report.page.html import rendered
from lastarm.result import Result
from lastarm.texts import clean
from lastarm.trainers.metric import LOSS, Metric

SHARE = 0.2  # of the time that may be spent on making contents
LOCK = 1.0  # seconds between two looks at whether the journal is held by its writer
STILL = 60.0  # seconds without a new line, after which a search on another machine has stopped
MOST_AT_WORK = 200  # pulls under way that are listed
MOST_CORNERS = 400  # of the line of the best so far
RECENT = 256  # starts of pulls, from which the time that is left is foreseen


class Since(NamedTuple):
    """How much a browser knows: which reading of the journal, and which update of it."""

    reading: str
    update: int

    def __str__(self) -> str:
        return f"{self.reading}.{self.update}"


class Watched:
    """A journal that is watched.

    :param path: the file. It may not exist yet.
    :param name: what it is called on the page.

    One thread calls `look`, and another one `tell`; any may ask for `news`.
    """

    def __init__(self, path: str | Path, name: str) -> None:
        self.path, self.name = Path(path), name
        self._following = Following(path)
        self._lock = threading.Lock()
        self._looked_at_lock = -LOCK
        self._grew = -STILL
        self._held = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.reading = secrets.token_hex(4)
        self._update = 0
        self._parts: dict[str, tuple[int, str]] = {}  # name → the update that changed it, its JSON
        self._events: list[Event] = []
        self._ledger = Ledger()
        self._metric: Metric = LOSS
        self._opened: Opened | None = None
        self._configs: dict[int, Mapping[str, Any]] = {}
        self._at_work: dict[int, Pull] = {}  # arm → its pull
        self._rungs: dict[int, list[int]] = {}  # level → how many arms began it, and came to it
        self._level: dict[int, int] = {}  # arm → the level that it began last
        self._recent: deque[tuple[float, int]] = deque(maxlen=RECENT)  # time of day, pulls by then
        self._stories: dict[int, list[str]] = {}
        self._stints: list[tuple[int, Any]] = []  # each with the update that brought it
        self._shown: set[int] = set()  # the arms that the page has
        self._told_of, self._told_as = -1, ""  # how many events and which state are in contents
        self._may_tell = 0.0
        self._more = False

    # For the thread that reads ------------------------------------------------------------------

    def look(self) -> bool:
        """Read what is new, as much as fits into a moment; whether anything is."""
        before = self._following.trouble, self._held, self._state()
        news = self._following.news()
        now = monotonic()
        if now >= self._looked_at_lock + LOCK:
            self._held, self._looked_at_lock = is_held(self.path), now
        as_before = (self._following.trouble, self._held, self._state()) == before
        if as_before and not news.events and not news.anew:
            return False
        with self._lock:
            if news.anew:
                self._begin_anew()
            if news.events:  # those that were there already are as old as their file
                old = news.anew or self._more
                self._grew = now - (max(0.0, time() - self._following.written) if old else 0.0)
            self._more = news.more
            arms = self._fold(news.events)
            self._update += 1
            self._put("now", self._now())
            self._put("best", self._best())
            self._put("filling", [[level, *n] for level, n in sorted(self._rungs.items())])
            self._put("summary", self._summary())
            for arm in islice(arms, MOST_ARMS):
                self._put_arm(arm)
        return True

    @property
    def has_more(self) -> bool:
        """Whether there is more to read at once."""
        return self._more

    def _fold(self, events: list[Event]) -> dict[int, None]:
        """Account for events; the arms that they are about."""
        arms: dict[int, None] = {}
        for event in events:
            self._ledger.add(event)
            match event:
                case Opened():
                    self._opened, self._metric = event, metric_of(event)
                case Pull(arm, upto, config):
                    arms[arm] = None
                    self._at_work[arm] = event
                    if config is not None:
                        self._configs[arm] = config
                    if self._level.get(arm, 0) < upto:
                        self._level[arm] = upto
                        self._rungs.setdefault(upto, [0, 0])[0] += 1
                    if isinstance(event, Started) and event.at is not None:
                        self._recent.append((event.at, self._ledger.spent.pulls))
                case Loss(pull) | Failure(pull):
                    arms[pull.arm] = None
                    self._at_work.pop(pull.arm, None)
                    if not (isinstance(event, Failure) and event.retried):
                        self._rungs.setdefault(pull.upto, [0, 0])[1] += 1
        self._events += events
        return arms

    def _state(self) -> str:
        """What becomes of the search, in a word."""
        if not self._following.lines:
            return "waiting"
        if self._ledger.closed and not self._at_work:
            return "complete"
        if self._held or monotonic() < self._grew + STILL:
            return "running"
        return "stopped"

    @property
    def _budget(self) -> int | None:
        stretches = self._ledger.stretches
        return stretches[-1].budget if stretches else None

    def _now(self) -> dict[str, Any]:
        """What goes on at this moment."""
        ledger, at_work = self._ledger, islice(self._at_work.values(), MOST_AT_WORK)
        trouble = self._following.trouble
        return {
            "state": self._state(),
            "trouble": clean(trouble) if trouble else "",
            "lines": self._following.lines,
            "reading": self._following.end / max(1, self._following.size) if self._more else 1.0,
            "pulls": ledger.spent.pulls,
            "budget": self._budget,
            "left": self._seconds_left(),
            "arms": len(self._level),
            "looks": ledger.spent.observations,
            "failed": len(ledger.failures),
            "at_work": [
                {
                    "arm": pull.arm,
                    "upto": pull.upto,
                    "from": self._ledger.level_of(pull.arm),
                    "worker": clean(getattr(pull, "worker", ""), 60),
                    "since": getattr(pull, "at", None),
                }
                for pull in at_work
            ],
        }

    def _seconds_left(self) -> float | None:
        """Until the budget is used, at the pace of the latest pulls; None if it is not known."""
        budget, recent = self._budget, self._recent
        if budget is None or len(recent) < 2 or self._state() != "running":
            return None
        (since, before), (at, pulls) = recent[0], recent[-1]
        if pulls <= before or at <= since:
            return None
        return (at - since) / (pulls - before) * max(0, budget - pulls)

    def _best(self) -> list[list[float]]:
        """The best so far, each time that it changed: pulls by then, and the figure."""
        corners = self._ledger.best_so_far
        step = max(1, -(-len(corners) // MOST_CORNERS))
        kept = corners[::-step][::-1]  # with the last of them
        return [[pulls, self._metric.value(loss)] for pulls, loss in kept]

    def _summary(self) -> dict[str, Any]:
        """What a list of searches says of this one."""
        best = self._best()
        policy = self._opened.policy if self._opened else {}
        return {
            "name": clean(self.name, 200),
            "state": self._state(),
            "policy": clean(str(policy.get("name", "")), 60),
            "metric": self._metric.label,
            "maximize": self._metric.maximize,
            "best": best[-1][1] if best else None,
            "said": self._metric.figure(self._ledger.best_so_far[-1][1]) if best else "",
            "pulls": self._ledger.spent.pulls,
            "budget": self._budget,
            "failed": len(self._ledger.failures),
            "line": best,
        }

    def _put_arm(self, arm: int) -> None:
        """What is known of an arm from its latest lines, until contents tell more of it."""
        ledger, known = self._ledger, self._parts.get(f"arm {arm}")
        if known is None and len(self._shown) >= MOST_ARMS:
            return  # contents say which of them are shown
        curve = thinned(ledger.curves.get(arm, []), max(8, MOST_POINTS // MOST_ARMS))
        row: dict[str, Any] = {"arm": arm, "beside": [], "series": []}
        if known:
            row = json.loads(known[1])
        level, loss = curve[-1] if curve else (0, float("nan"))
        fate = "not decided" if isfinite(loss) else "diverged" if curve else "not seen yet"
        row |= {
            "fate": "failed" if arm in ledger.failures else fate,
            "pulls": level,
            "loss": self._metric.value(loss) if isfinite(loss) else None,
            "said": self._metric.figure(loss) if curve else "",
            "levels": [upto for upto, _ in curve],
            "losses": [self._metric.value(loss) if isfinite(loss) else None for _, loss in curve],
        }
        row["series"] = [
            [*series, *[None] * len(curve)][: len(curve)] for series in row["series"]
        ]  # what was told beside losses comes with contents
        row.setdefault("far", 0.5)
        row.setdefault("seconds", 0.0)
        row.setdefault("origin", None)
        self._put(f"arm {arm}", row)
        self._put_settings(arm)
        self._shown.add(arm)

    def _put_settings(self, arm: int) -> None:
        """What never changes of an arm."""
        if f"settings {arm}" not in self._parts:
            settings = self._configs.get(arm, {})
            self._put(f"settings {arm}", {clean(n, 128): flat(v) for n, v in settings.items()})

    def _put(self, name: str, value: Any) -> None:
        """Write a part down; if it is not as before, it is new."""
        text = _json(value)
        before = self._parts.get(name)
        if before is None or before[1] != text:
            self._parts[name] = self._update, text

    def _put_stints(self, stints: list[Any]) -> None:
        """Of a list that mostly grows, only what is behind the old beginning is new."""
        same = 0
        for new, (_, old) in zip(stints, self._stints, strict=False):
            if new != old:
                break
            same += 1
        self._stints[same:] = [(self._update, stint) for stint in stints[same:]]
        if len(stints) == same < len(self._stints):
            del self._stints[same:]

    # For the thread that tells ------------------------------------------------------------------

    def tell(self) -> bool:
        """Make contents of all events so far, if it is time for that; whether it was."""
        state = self._state()
        told = len(self._events), state
        if self._more or monotonic() < self._may_tell or told == (self._told_of, self._told_as):
            return False
        with self._lock:
            reading, events = self.reading, self._events[: told[0]]
        if not events:
            return False
        began = monotonic()
        result = Result.of(events, journal=str(self.path))
        made = contents(result, events, running=state == "running")
        took = monotonic() - began
        with self._lock:
            if reading != self.reading:
                return False
            self._told_of, self._told_as = told
            self._may_tell = monotonic() + took * (1 / SHARE - 1)
            self._update += 1
            self._put_contents(made, len(events))
        return True

    def _put_contents(self, made: dict[str, Any], events: int) -> None:
        """Write all parts of contents down."""
        arms = made.pop("arms")
        self._stories = {row["arm"]: row.pop("story") for row in arms}
        later: dict[int, None] = {}  # arms that lines are about which came meanwhile
        for event in islice(self._events, events, None):
            if isinstance(event, Pull):
                later[event.arm] = None
            elif isinstance(event, Loss | Failure):
                later[event.pull.arm] = None
        for row in arms:
            del row["values"]
            self._put_settings(row["arm"])
            self._put(f"arm {row['arm']}", row)
        self._shown = {row["arm"] for row in arms}
        for name in [n for n in self._parts if n[:4] == "arm " or n[:9] == "settings "]:
            if int(name.split()[1]) not in self._shown:
                del self._parts[name]
        told_most = made["answer"]["runner_up"], made["answer"]["arm"]
        made["stories"] = {arm: self._stories[arm] for arm in told_most if arm in self._stories}
        made["order"] = [row["arm"] for row in arms]
        self._put_stints(made["spending"]["timeline"].pop("stints"))
        for name, value in made.items():
            self._put(name, value)
        for arm in later:
            self._put_arm(arm)

    # For everybody ------------------------------------------------------------------------------

    def news(self, since: Since | None, only: str = "") -> tuple[Since, list[tuple[str, str]]]:
        """The parts that changed since then, each with its name and its JSON, and up to when.

        :param since: what is known; None if nothing is. Of another reading of the journal, nothing
            is known either.
        :param only: the name of the only part that is asked for.
        """
        with self._lock:
            known = since.update if since and since.reading == self.reading else -1
            now = Since(self.reading, self._update)
            if known == self._update:
                return now, []
            if only:
                parts = {only: self._parts[only]} if only in self._parts else {}
            else:
                parts = self._parts
            new = [(name, text) for name, (update, text) in parts.items() if update > known]
            first = next((n for n, (at, _) in enumerate(self._stints) if at > known), None)
            if first is not None and not only:
                stints = [stint for _, stint in self._stints[first:]]
                new.append(("stints", _json({"from": first, "stints": stints})))
        return now, new

    def story(self, arm: int) -> list[str]:
        """What became of an arm, in sentences; none if that was not told yet."""
        with self._lock:
            return self._stories.get(arm, [])

    def report(self, library: str | None = None) -> str:
        """The static report of all that was read so far, as a page of its own.

        :param library: what draws the charts, if that is at hand.
        """
        with self._lock:
            events, running = list(self._events), self._state() == "running"
        result = Result.of(events, journal=str(self.path))
        return rendered(contents(result, events, running=running), library)


def _json(value: Any) -> str:
    return json.dumps(finite(value), allow_nan=False, separators=(",", ":"))


def named(paths: list[str]) -> Iterator[Watched]:
    """Journals to be watched, each with the shortest name that tells it from the others."""
    split = [Path(path).parts for path in paths]
    for path, parts in zip(paths, split, strict=True):
        shortest = (
            Path(*parts[-length:])
            for length in range(1, len(parts) + 1)
            if sum(other[-length:] == parts[-length:] for other in split) == 1
        )
        yield Watched(path, str(next(shortest, path)))
