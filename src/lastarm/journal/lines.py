"""How an event is written in the journal: one line of JSON, with its own checksum.

    {"event":"loss","arm":3,"upto":25,"value":0.25,…,"durable":12,"after":"5f0c…","sum":"9b1e…"}

`sum` is a checksum of the line up to it. `after` is the `sum` of the line before, which chains
them. `durable` is the number of lines that were known to be on the disk when this one was written.
Numbers read back bit for bit. JSON has no nan and no ±inf, so these are strings. Nothing in a line
is ever executed or unpickled.

Almost all lines are of pulls and losses as lastarm writes them. They are read by a decoder that
knows their fields, which takes a quarter of the time of `json`. Any line that it does not take is
read by `json` and `event_of`, which say what a line means.
"""

from __future__ import annotations

import json
import sys
from hashlib import blake2b
from operator import index
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from lastarm.events import (
    Beginning,
    Changed,
    Closed,
    Event,
    Extended,
    Failure,
    Loss,
    Opened,
    Origin,
    Pull,
    Saved,
    Started,
    Work,
)
from lastarm.plain import number, readable

FORMAT = 1

_to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class KnownLine(msgspec.Struct, tag_field="event", forbid_unknown_fields=True, gc=False):
    """A whole line as lastarm writes pulls and losses. One with anything unusual is an `Other`."""

    arm: int
    upto: int
    durable: int
    after: str
    sum: str


class PullLine(KnownLine, tag="pull"):
    """A pull."""

    config: dict[str, Any] | UnsetType = UNSET
    origin: str | UnsetType = UNSET
    mean: float | None = None
    deviation: float | None = None
    worker: str = ""
    at: float | None = None

    def event(self) -> Pull:
        """The pull."""
        config = None if self.config is UNSET else self.config
        if config is not None and self.origin is not UNSET:
            config = Beginning(config, Origin(self.origin, self.mean, self.deviation))
        if not self.worker and self.at is None:  # as in journals of version 0.1
            return Pull(self.arm, self.upto, config)
        return Started(self.arm, self.upto, config, sys.intern(self.worker), self.at)


class SavedFields(NamedTuple):
    """How a state is written in the line of a loss."""

    digest: str
    size: int
    seal: str = ""


class LossLine(KnownLine, tag="loss", kw_only=True):
    """A loss."""

    value: float | str
    trained: int
    train_seconds: float
    loss_seconds: float
    worker: str
    attempt: int
    moves: int = 0
    move_seconds: float = 0.0
    metrics: dict[str, Any] | UnsetType = UNSET
    saved: SavedFields | UnsetType = UNSET
    continues: bool = True  # whether what was saved does

    def event(self) -> Loss:
        """The loss."""
        work = Work(
            self.trained,
            self.train_seconds,
            self.loss_seconds,
            sys.intern(self.worker),  # there are few names, and many losses
            self.attempt,
            self.moves,
            self.move_seconds,
        )
        metrics = None if self.metrics is UNSET else self.metrics
        saved = None
        if self.saved is not UNSET:
            saved = Saved(*self.saved)
            saved = saved if self.continues else saved._replace(continues=False)
        value = float(self.value)
        return Loss(Pull(self.arm, self.upto), value, work, metrics, saved)


class Other(NamedTuple):
    """Any other whole line: what is written in it, which may be no event."""

    fields: dict[str, Any]
    durable: int
    after: str
    sum: str

    def event(self) -> Event:
        """As `event_of`."""
        return event_of(self.fields)


Line = PullLine | LossLine | Other

_known = msgspec.json.Decoder(PullLine | LossLine).decode
_SUM = len(',"sum":"0123456789abcdef"}')


def encode(event: Event, durable: int, after: str) -> tuple[bytes, str]:
    """The line of an event, and its checksum."""
    fields = {**fields_of(event), "durable": durable, "after": after}
    # A lone surrogate, as in a broken file name, becomes an escape that JSON reads back.
    body = _to_json(fields)[:-1].encode("utf-8", "backslashreplace")
    checksum = blake2b(body, digest_size=8).hexdigest()
    return body + f',"sum":"{checksum}"}}\n'.encode(), checksum


def decode(line: bytes) -> Line | None:
    """The line without its newline, or None if it is not what was written."""
    body = line[:-_SUM]
    checksum = blake2b(body, digest_size=8).hexdigest()
    if line[-_SUM:] != f',"sum":"{checksum}"}}'.encode():
        return None
    try:
        known: PullLine | LossLine = _known(line)
        return known
    except (msgspec.DecodeError, ValueError, RecursionError):
        return by_json(body, checksum)


def by_json(body: bytes, checksum: str) -> Other | None:
    """A line that is not as lastarm writes pulls and losses; None if it is of no use at all."""
    try:
        fields = json.loads(body + b"}")
        return Other(fields, int(fields.pop("durable")), str(fields.pop("after")), checksum)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None  # whole, but not written by lastarm


def fields_of(event: Event) -> dict[str, Any]:
    """An event as the fields of its line."""
    match event:
        case Pull(arm, upto, config):
            fields: dict[str, Any] = {"event": "pull", "arm": arm, "upto": upto}
            if isinstance(event, Started):
                fields |= {"worker": event.worker} if event.worker else {}
                fields |= {} if event.at is None else {"at": event.at}
            if config is None:
                return fields
            origin = event.origin
            said: dict[str, Any] = {} if origin is None else {"origin": origin.how}
            if origin and origin.mean is not None:
                said |= {"mean": origin.mean, "deviation": origin.deviation}
            return {**fields, "config": readable(dict(config)), **said}
        case Loss(Pull(arm, upto), value, work, metrics, saved):
            fields = {"event": "loss", "arm": arm, "upto": upto, "value": number(value)}
            also = {"metrics": dict(metrics)} if metrics else {}
            file = {"saved": list(saved[: 3 if saved.seal else 2])} if saved else {}
            only = {} if saved is None or saved.continues else {"continues": False}
            return fields | _work(work) | also | file | only
        case Failure(Pull(arm, upto), error, traceback, work, retried, lost):
            fields = {"event": "failure", "arm": arm, "upto": upto, "error": error}
            whose = {"retried": retried, "lost": lost}
            return fields | _work(work) | whose | {"traceback": traceback}
        case Extended(budget):
            return {"event": "extended", "budget": budget}
        case Closed(arm, upto, test_loss, trained):
            fields = {"event": "closed", "arm": arm, "upto": upto}
            told = None if test_loss is None else number(test_loss)
            return fields | {"test_loss": told, "trained": trained}
        case Changed(code):
            return {"event": "changed", "code": dict(code)}
        case Opened():
            fields = {
                "event": "opened",
                "format": FORMAT,
                "seed": event.seed,
                "policy": dict(event.policy),
                "space": dict(event.space),
                "trainer": dict(event.trainer),
                "versions": dict(event.versions),
                "command": list(event.command),
                "folder": event.folder,
            }
            # Version 0.1 has none of these.
            fields |= {"metric": dict(event.metric)} if event.metric else {}
            fields |= {"code": dict(event.code)} if event.code else {}
            fields |= {"id": event.identity} if event.identity else {}
            return fields | ({"seal": event.seal} if event.seal else {})


def _work(work: Work) -> dict[str, Any]:
    fields = {
        "trained": work.trained,
        "train_seconds": work.train_seconds,
        "loss_seconds": work.loss_seconds,
        "worker": work.worker,
        "attempt": work.attempt,
    }
    moved = {"moves": work.moves, "move_seconds": work.move_seconds}
    return fields | {name: figure for name, figure in moved.items() if figure}  # most have none


def event_of(fields: dict[str, Any]) -> Event:
    """The event that the fields of a line stand for.

    Raises a KeyError, TypeError or ValueError if there is none.
    """
    match fields["event"]:
        case "pull":
            pull, worker, at = _pull_of(fields), str(fields.get("worker", "")), fields.get("at")
            if not worker and at is None:
                return pull
            at = None if at is None else float(at)
            return Started(pull.arm, pull.upto, pull.config, worker, at)
        case "loss":
            metrics = {**fields["metrics"]} if "metrics" in fields else None
            saved = None
            if "saved" in fields:
                digest, size, *seal = fields["saved"]
                goes_on = bool(fields.get("continues", True))
                saved = Saved(str(digest), index(size), "".join(map(str, seal[:1])), goes_on)
            value = float(fields["value"])
            return Loss(_pull_of(fields), value, _work_of(fields), metrics, saved)
        case "failure":
            error, traceback = str(fields["error"]), str(fields["traceback"])
            whose = bool(fields["retried"]), bool(fields["lost"])
            return Failure(_pull_of(fields), error, traceback, _work_of(fields), *whose)
        case "extended":
            return Extended(index(fields["budget"]))
        case "closed":
            arm, upto, trained = (index(fields[name]) for name in ("arm", "upto", "trained"))
            test_loss = fields["test_loss"]
            return Closed(arm, upto, None if test_loss is None else float(test_loss), trained)
        case "opened":
            return Opened(
                index(fields["seed"]),
                {**fields["policy"]},
                {**fields["space"]},
                {**fields["trainer"]},
                {**fields["versions"]},
                tuple(str(word) for word in fields["command"]),
                str(fields["folder"]),
                str(fields.get("id", "")),
                str(fields.get("seal", "")),
                _code_of(fields) if "code" in fields else {},
                _metric_of(fields["metric"]) if "metric" in fields else {},
            )
        case "changed":
            return Changed(_code_of(fields))
        case unknown:
            raise ValueError(f"{unknown!r} is not an event")


def _pull_of(fields: dict[str, Any]) -> Pull:
    config: dict[str, Any] | None = {**fields["config"]} if "config" in fields else None
    if config is not None and "origin" in fields:
        mean, deviation = (fields.get(name) for name in ("mean", "deviation"))
        numbers = (None if number is None else float(number) for number in (mean, deviation))
        config = Beginning(config, Origin(str(fields["origin"]), *numbers))
    return Pull(index(fields["arm"]), index(fields["upto"]), config)


def _code_of(fields: dict[str, Any]) -> dict[str, str]:
    return {name: str(hashed) for name, hashed in fields["code"].items()}


def _metric_of(fields: dict[str, Any]) -> dict[str, Any]:
    return {"name": str(fields["name"]), "maximize": bool(fields["maximize"])}


def _work_of(fields: dict[str, Any]) -> Work:
    return Work(
        index(fields["trained"]),
        float(fields["train_seconds"]),
        float(fields["loss_seconds"]),
        str(fields["worker"]),
        index(fields["attempt"]),
        index(fields.get("moves", 0)),
        float(fields.get("move_seconds", 0.0)),
    )
