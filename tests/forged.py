"""Forged journals: lines with checksums that fit, and with claims that no search would make."""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

from lastarm.events import Closed, Event, Extended, Failure, Loss, Opened, Pull, Work
from lastarm.journal.lines import fields_of

Fields = dict[str, Any]
HUGE = 10**400
DIGITS = 10**4299  # with one more digit, Python would not write it
PULLS, LOSSES = (1, 3, 5, 7), (2, 4, 6, 8, 10, 12)  # lines of the journal below, from 0


def honest() -> list[Fields]:
    """The lines of a search that was extended, with a failure in it."""
    space = {"lr": {"log-uniform": [1e-4, 1.0]}, "act": {"choice": ["relu", "tanh"]}}
    policy = {"name": "successive-halving", "arms": 4, "budget": 24}
    events: list[Event] = [Opened(0, policy, space, {}, {}, ("python", "tune.py"), "/tmp")]
    for arm, level in [(0, 3), (1, 3), (2, 3), (3, 3), (0, 9), (1, 9)]:
        config = {"lr": 0.1 / (arm + 1), "act": ("relu", "tanh")[arm % 2]}
        pull = Pull(arm, level, config if level == 3 else None)
        work = Work(3, 0.5, 0.1, f"worker {arm % 2}")
        events += [pull, Loss(pull, (4 + arm) / level, work, {"accuracy": 0.5})]
    pull = Pull(1, 10)
    events += [pull, Failure(pull, "ValueError: no", "Traceback", Work(1, 0.1, 0.1))]
    return [fields_of(event) for event in [*events, Extended(48), Closed(0, 9, 0.3)]]


def forge(path: Path, lines: list[Fields]) -> Path:
    """A journal of these lines, each with its checksum, as lastarm would have written it."""
    written, after = b"", ""
    for fields in lines:
        body = json.dumps({**fields, "durable": 0, "after": after})[:-1].encode()
        after = blake2b(body, digest_size=8).hexdigest()
        written += body + f',"sum":"{after}"}}\n'.encode()
    path.write_bytes(written)
    return path


def claiming(value: Any, *where: tuple[Any, ...]) -> list[Fields]:
    """The honest lines, but for a value in some places: a line, and the names that lead there."""
    lines = honest()
    for line, *names, last in where:
        fields: Any = lines[line]
        for name in names:
            fields = fields[name]
        fields[last] = value
    return lines


def nested(deep: int) -> Any:
    return json.loads(deep * "[" + deep * "]")


def each(lines: tuple[int, ...], *names: str) -> list[tuple[Any, ...]]:
    return [(line, *names) for line in lines]


TOLD = {
    "losses of 1e308": claiming(1e308, *each(LOSSES, "value")),
    "a loss of 1e300": claiming(1e300, (2, "value")),
    "a loss of -1e308": claiming(-1e308, (10, "value")),
    "subnormal losses": claiming(5e-324, *each(LOSSES[::2], "value")),
    "nothing but subnormal losses": claiming(1e-310, *each(LOSSES, "value")),
    "losses as far apart as can be": [
        fields | {"value": 1e300 if number % 4 else 1.1e-290} if "value" in fields else fields
        for number, fields in enumerate(honest())
    ],
    "a loss that was nan before": claiming("nan", (2, "value")),
    "the winner's loss is nan": claiming("nan", (10, "value")),
    "a subnormal time": claiming(5e-324, *each(LOSSES, "train_seconds")),
    "a subnormal setting": claiming(5e-324, (1, "config", "lr")),
    "settings of 1e308": claiming(1e308, *each(PULLS[1:], "config", "lr")),
    "a setting of 4300 digits": claiming(DIGITS, (1, "config", "lr")),
    "a setting of another kind": claiming({"a": [1, None]}, (1, "config", "lr")),
    "a space without end": claiming({"log-uniform": [-HUGE, HUGE]}, (0, "space", "lr")),
    "a policy that is a list": claiming([["x"], {}], (0, "policy", "name")),
    "a policy without a name": claiming("", (0, "policy", "name")),
    "a policy with a long name": claiming("x" * 10**6, (0, "policy", "name")),
    "no policy": claiming({}, (0, "policy")),
    "a budget that is a text": claiming("many", (0, "policy", "budget")),
    "a command of numbers": claiming(["lastarm", 7, None], (0, "command")),
    "a folder that cannot be": claiming("a\0b", (0, "folder")),
    "an empty name": claiming(1, *each(PULLS, "config", "")),
    "a name of a million signs": claiming(1, (1, "config", "y" * 10**6)),
    "a metric without a name": claiming({"": {"": ""}}, (2, "metrics")),
    "thousands of settings": claiming({f"p{n}": n for n in range(3000)}, (1, "config")),
    "an error of a million signs": claiming("x" * 10**6, (14, "error")),
    "pulls and no loss": honest()[:1] + honest()[1:9:2],
    "the last pulls that there can be": claiming(2**63 - 1, (9, "upto"), (10, "upto")),
}

# The lines, and the line that is refused with the name of what is impossible in it; without a name
# the line cannot be read at all.
REFUSED: dict[str, tuple[list[Fields], int, str | None]] = {
    "an arm of 400 digits": (claiming(HUGE, (2, "arm")), 3, "arm"),
    "an arm of 4300 digits": (claiming(DIGITS, (2, "arm")), 3, "arm"),
    "arm 2**53": (claiming(2**53, (1, "arm")), 2, "arm"),
    "a level of 400 digits": (claiming(HUGE, (9, "upto")), 10, "upto"),
    "level 2**63": (claiming(2**63, (9, "upto")), 10, "upto"),
    "trained without end": (claiming(DIGITS, *each(LOSSES, "trained")), 3, "trained"),
    "trained less than nothing": (claiming(-1, (2, "trained")), 3, "trained"),
    "an attempt of 400 digits": (claiming(HUGE, (14, "attempt")), 15, "attempt"),
    "a first budget of 400 digits": (claiming(HUGE, (0, "policy", "budget")), 1, "budget"),
    "a second budget of 400 digits": (claiming(HUGE, (15, "budget")), 16, "budget"),
    "a seed of 400 digits": (claiming(HUGE, (0, "seed")), 1, "seed"),
    "an answer of 400 digits": (claiming(HUGE, (16, "upto")), 17, "upto"),
    "endless seconds": (claiming("inf", (2, "train_seconds")), 3, "train_seconds"),
    "seconds that are nan": (claiming("nan", (14, "loss_seconds")), 15, "loss_seconds"),
    "negative seconds": (claiming(-0.5, (2, "loss_seconds")), 3, "loss_seconds"),
    "seconds of 1e308": (claiming(1e308, (2, "train_seconds")), 3, "train_seconds"),
    "a setting 500 deep": (claiming(nested(500), (1, "config", "lr")), 2, "config"),
    "a space 500 deep": (claiming(nested(500), (0, "space", "lr")), 1, "space"),
    "a metric 65 deep": (claiming(nested(65), (2, "metrics", "x")), 3, "metrics"),
    "a config that is a list": (claiming([1], (1, "config")), 2, None),
    "a test loss in words": (claiming("x" * 10**6, (16, "test_loss")), 17, None),
}
