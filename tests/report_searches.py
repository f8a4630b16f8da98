"""Searches for the tests of the report: real ones, odd ones, and one of hostile strings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np

from lastarm import Result, SuccessiveHalving, search
from lastarm.events import (
    Beginning,
    Closed,
    Event,
    Failure,
    Loss,
    Opened,
    Origin,
    Pull,
    Work,
)
from lastarm.journal import Journal
from lastarm.policies import POLICIES
from lastarm.policy import Policy, describe
from lastarm.report.page.contents import contents
from lastarm.report.page.html import write_report
from lastarm.trainers import RecordedCurves

HOSTILE = [
    "<script>window.hit=1</script>",
    "</script><script>window.hit=1</script>",
    "</title><img src=x onerror=window.hit=1>",
    "<!--<script>",
    "-->",
    "<img src=x onerror=window.hit=1>",
    "<svg onload=window.hit=1>",
    "<svg><script>window.hit=1</script></svg>",
    "<iframe src=javascript:window.parent.hit=1>",
    "<iframe srcdoc='<script>parent.hit=1</script>'>",
    "<a href='javascript:window.hit=1'>arm</a>",
    "javascript:window.hit=1",
    "data:text/html,<script>window.hit=1</script>",
    "<body onload=window.hit=1>",
    "<style>*{display:none}</style>",
    "<link rel=stylesheet href=//example.com/x.css>",
    "<meta http-equiv=refresh content='0;url=https://example.com'>",
    "<base href=https://example.com/>",
    "<object data=https://example.com/x>",
    "<form action=https://example.com><input name=q>",
    "<math><mtext><table><mglyph><style><img src=x onerror=window.hit=1>",
    "<details open ontoggle=window.hit=1>",
    "' onmouseover='window.hit=1",
    '" onfocus="window.hit=1" autofocus="',
    "`${window.hit=1}`",
    "{{contents}} {{script}} {{rules}}",
    "${window.hit=1} #{1+1} <%= 1 %>",
    "\\u003cscript>window.hit=1</script>",
    "\\",
    "datum.arm = picked; names[0]",
    "__proto__",
    "constructor",
    "\u202egnp.mra\u202c",
    "\u2066\u2067right\u2069 to left",
    "a\u2028b\u2029c",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "null\x00byte",
    "lone \ud800 surrogate",
    "carriage\rreturn\x08\x7f\x9b",
    "long " + 10_000 * "x",
]
assert len(HOSTILE) == 40


def table(arms: int = 16, pulls: int = 81, seed: int = 0) -> np.ndarray[Any, Any]:
    """Falling curves that cross."""
    random = np.random.default_rng(seed)
    ends, speeds = random.random((arms, 1)), random.random((arms, 1))
    return ends + (1 + np.arange(pulls)) ** -(0.2 + speeds)


def events_of(policy: Policy, losses: Any = None, **more: Any) -> list[Event]:
    """What happens when a policy searches among recorded curves."""
    losses = table(policy.arms) if losses is None else losses
    header = Opened(0, describe(policy), {}, {}, command=("lastarm", "replay", "curves.npz"))
    events: list[Event] = [header]
    rows = {"row": range(len(losses))}
    search(RecordedCurves(losses), rows, policy=policy, on_event=events.append, **more)
    return events


def made(name: str, arms: int, budget: int) -> Policy:
    """The policy of that name."""
    given = {"max_pulls": 27} if "max_pulls" in POLICIES[name].__dataclass_fields__ else {}
    return POLICIES[name](arms=arms, budget=budget, **given)


def told(
    losses: Mapping[int, Sequence[tuple[int, float]]], closed: Closed | None = None
) -> list[Event]:
    """A search that saw just this, level by level."""
    seen = sorted((level, arm, loss) for arm in losses for level, loss in losses[arm])
    events: list[Event] = [Opened(0, {"name": "successive-halving", "budget": 9}, {}, {})]
    for level, arm, loss in seen:
        events += [Pull(arm, level, {"x": arm}), Loss(Pull(arm, level), loss, Work(1, 0.5, 0.1))]
    return events + ([closed] if closed else [])


ODD: dict[str, list[Event]] = {
    "no pull": [Opened(0, {"name": "uniform", "arms": 3, "budget": 9}, {}, {})],
    "one arm under way": [Opened(0, {"name": "uniform"}, {}, {}), Pull(0, 4, {"lr": 0.1})],
    "one arm": told({0: [(4, 0.5)]}, Closed(0, 4)),
    "all failed": [
        Opened(0, {"name": "successive-halving", "arms": 2, "budget": 8}, {}, {}),
        *(
            event
            for arm in range(2)
            for event in (
                Pull(arm, 4, {"lr": arm}),
                Failure(Pull(arm, 4), f"ValueError: arm {arm}", "Traceback\n  line\n"),
            )
        ),
    ],
    "all diverged": told({0: [(1, nan)], 1: [(1, inf)], 2: [(1, -inf)]}),
    "negative": told({0: [(1, -1.0), (2, -5.0)], 1: [(1, -0.5)]}, Closed(0, 2)),
    "huge": told({0: [(1, 1e300), (2, 1e299)], 1: [(1, 1.7e308)], 2: [(1, inf)]}, Closed(0, 2)),
    "huge of both signs": told({0: [(1, -1.7e308)], 1: [(1, 1.7e308)]}, Closed(0, 1)),
    "tiny": told({0: [(1, 5e-324), (2, 0.0)], 1: [(1, 1e-300)]}, Closed(0, 2)),
    "far apart": told({0: [(1, 1e-12), (9**9, 1e-15)], 1: [(1, 1e12)]}, Closed(0, 9**9)),
    "the same": told({0: [(1, 0.5)], 1: [(1, 0.5)], 2: [(1, 0.5)]}, Closed(0, 1)),
    "nearly the same": told({0: [(1, 0.1)], 1: [(1, 0.1 + 1e-16)]}, Closed(0, 1)),
    "no header": told({0: [(1, 0.5), (2, 0.3)], 1: [(1, 0.6)]}, Closed(0, 2))[1:],
    "a stranger's": [
        Opened(0, {"name": 7, "budget": "many"}, {"grid": 3}, {}, command=("rm", "-rf")),
        Loss(Pull(10**6, 3), 0.25),  # never begun
        Pull(5, 2, {"deep": json.loads(60 * "[" + 60 * "]")}),
        Loss(Pull(5, 9), 0.5, Work(1, 5e-324, 1e12, "worker", 2)),
        Pull(6, 2**63 - 1, {"x": 10**400, "y": True, "z": None}),
        Loss(Pull(6, 2**63 - 1), 0.75),
        Failure(Pull(7, 1), "", "", retried=True),
        Closed(99, 1, nan),
    ],
}


def chosen_events(metric: str = "accuracy") -> list[Event]:
    """A search that chose some of its arms, said what it expected of them, and maximizes."""
    header = Opened(
        0,
        {"name": "brackets", "budget": 60, "max_pulls": 9, "sampler": "GaussianProcess()"},
        {"x": {"uniform": [0, 1]}},
        {},
        metric={"name": metric, "maximize": True},
    )
    arms = {
        0: (Origin("included"), {1: -0.5, 3: -0.6, 9: -0.7}),
        1: (Origin("random"), {1: -0.4, 3: -0.5, 9: -0.65}),
        2: (Origin("chosen", -0.8, 0.05), {1: -0.6, 3: -0.7, 9: -0.75}),
        3: (Origin("chosen", -0.9, 0.01), {1: -0.5, 3: -0.65, 9: -0.7}),
        4: (Origin("chosen", -0.9, 0.02), {1: -0.3}),
        5: (Origin("chosen"), {1: nan}),
    }
    events: list[Event] = [header]
    for arm, (origin, curve) in arms.items():
        for level, loss in curve.items():
            config = Beginning({"x": arm / 10}, origin) if level == 1 else None
            events += [Pull(arm, level, config), Loss(Pull(arm, level), loss)]
    return [*events, Closed(2, 9)]


def hostile_events(strings: Iterable[str]) -> list[Event]:
    """A search in which strings are names, options, errors, workers and all else that is text."""
    strings = list(strings)
    first = strings[0]
    space = {text: {"choice": strings} for text in strings}
    policy = {"name": first, "arms": len(strings), "budget": 400, strings[1]: strings[2]}
    events: list[Event] = [
        Opened(0, policy, space, {"kind": first}, {}, tuple(strings), folder=strings[3])
    ]
    for arm, text in enumerate(strings):
        config = dict.fromkeys(strings, text) | {"number": arm, "mixed": arm if arm % 2 else text}
        pull, work = Pull(arm, 4, config), Work(4, 1.0, 0.5, worker=text)
        failed = Failure(pull, f"{text} {arm}", f"Traceback\n{text}\n", work)
        events += [pull, Loss(pull, 1 / (arm + 1), work, {text: text}) if arm % 4 else failed]
    return [*events, Closed(len(strings) - 1, 4, 0.125)]


def write_journal(path: Path, events: Sequence[Event]) -> Path:
    """A journal of these events."""
    opened = events[0]
    assert isinstance(opened, Opened)
    with Journal(path, opened) as journal:
        for event in events[1:]:
            journal.append(event)
        journal.sync()
    return path


def large(arms: int, levels: int) -> list[Event]:
    """Every arm seen at every level, by four workers."""
    losses = table(arms, levels).round(12)
    random = np.random.default_rng(1)
    header = SuccessiveHalving(arms, arms * levels * 20)
    events: list[Event] = [Opened(0, describe(header), {"lr": {"log-uniform": [1e-5, 0.1]}}, {})]
    for level in range(1, levels + 1):
        for arm in range(arms):
            rate, layers = float(10 ** random.uniform(-5, -1)), int(random.integers(1, 9))
            config = {"lr": rate, "layers": layers, "act": ("relu", "tanh", "gelu")[arm % 3]}
            work = Work(1, 0.01, 0.002, f"process {arm % 4}")
            events.append(Pull(arm, level, config if level == 1 else None))
            events.append(Loss(Pull(arm, level), float(losses[arm, level - 1]), work))
    return [*events, Closed(int(losses[:, -1].argmin()), levels, 0.5)]


def contents_of(
    events: Sequence[Event], *, journal: str | None = None, running: bool = False
) -> dict[str, Any]:
    """What the page of these events tells."""
    return contents(Result.of(events, journal=journal), events, running=running)


def page_of(output: Path, events: Sequence[Event], journal: str | None = None) -> Path:
    """The page of these events, written to a file."""
    return write_report(output, Result.of(events, journal=journal), events)


def figures(text: str) -> list[float]:
    """The numbers of a sentence, in their order: what it says, however it is worded."""
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]
