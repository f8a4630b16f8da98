"""The header of a journal: all that decides the answer of a search, and how to run it again."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lastarm.errors import OtherSearch, OtherVersion
from lastarm.events import Event, Extended, Opened
from lastarm.journal.lines import decode, encode, event_of
from lastarm.plain import CODE, fingerprint
from lastarm.policy import Policy, describe
from lastarm.samplers import Sampler
from lastarm.space import Space
from lastarm.space import describe as describe_space
from lastarm.trainers import Config, Trainer


def header(
    *,
    seed: int,
    policy: Policy,
    space: Space,
    configs: Sequence[Config],
    trainer: Trainer[Any],
    recommend: str,
    sampler: Sampler | None,
) -> Opened:
    """The header of a search that begins here and now."""
    packages = ["lastarm", *(sampler.packages if sampler else ())]
    version = importlib.import_module("importlib.metadata").version  # which takes time to import
    kind: dict[str, Any] = {"kind": type(trainer).__qualname__}
    rule = getattr(trainer, "version", 1)
    if isinstance(rule, int) and rule != 1:
        kind["version"] = rule
    described, drawn = describe_space(space), "configs"
    while isinstance(described.get(drawn), Mapping):  # a hyperparameter may be called that
        drawn += " drawn"
    return Opened(
        seed=seed,
        policy=described_policy(policy, recommend, sampler),
        space=described | {drawn: fingerprint(configs)},
        trainer=kind | (trainer.fingerprint() if hasattr(trainer, "fingerprint") else {}),
        versions={"python": platform.python_version()} | {p: version(p) for p in packages},
        command=tuple(sys.argv),
        folder=os.getcwd(),
    )


def described_policy(policy: Policy, recommend: str, sampler: Sampler | None) -> dict[str, Any]:
    """All that decides: the policy, and what besides is not as usual."""
    said = describe(policy)
    said |= {"recommend": recommend} if recommend != "latest" else {}
    return said | ({"sampler": str(sampler)} if sampler else {})


def budgets_of(events: Sequence[Event]) -> list[int]:
    """The budgets that a search has had: of its header, and then what it was extended to."""
    first = _header_of(events).policy.get("budget")
    return ([first] if isinstance(first, int) else []) + [
        event.budget for event in events if isinstance(event, Extended)
    ]


def refuse_another_search(path: Path, events: Sequence[Event], now: Opened) -> None:
    """Compare the header of a journal with that of the search that would resume it."""
    written, current = _header_of(events), _as_read(now)
    _refuse_another_version(path, written, current)
    before, after = _identity(written), _identity(current)
    budgets, budget = budgets_of(events), after.get("budget")
    if budgets and isinstance(budget, int):
        resumed_or_extended = budget in budgets or budget > budgets[-1]
        before["budget"] = budget if resumed_or_extended else budgets[-1]
    differences = {
        name: (before.get(name), after.get(name))
        for name in {**before, **after}
        if before.get(name) != after.get(name) and not _is_unknown(name, before, after)
    }
    if differences.get("policy.seed") == differences.get("seed"):
        differences.pop("policy.seed", None)  # the policy has it from the search
    if differences:
        raise OtherSearch(path, [(name, *values) for name, values in differences.items()])


def _is_unknown(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether only one of them can say what a function does: see `code_fingerprint`."""
    return CODE in name and not (name in before and name in after)


def _refuse_another_version(path: Path, written: Opened, now: Opened) -> None:
    """A rule that has changed since is never followed to the end of what the old one began."""
    for part, name in (("policy", "name"), ("trainer", "kind")):
        before, after = getattr(written, part), getattr(now, part)
        versions = before.get("version", 1), after.get("version", 1)
        if before.get(name) == after.get(name) and versions[0] != versions[1]:
            by = str(written.versions.get("lastarm", ""))
            raise OtherVersion(path, part, str(after.get(name)), *versions, by)


def _header_of(events: Sequence[Event]) -> Opened:
    assert isinstance(events[0], Opened), "the first event of a journal is its header"
    return events[0]


def _as_read(opened: Opened) -> Opened:
    """A header as a journal gives it back: tuples are lists there, for example."""
    line = decode(encode(opened, durable=0, after="")[0].rstrip(b"\n"))
    assert line is not None, "what was encoded can be decoded"
    return _header_of([event_of(line.fields)])


def _identity(opened: Opened) -> dict[str, Any]:
    """All that decides the answer of a search, by name."""
    names = {"name": "policy", "seed": "policy.seed", "version": "policy.version"}
    policy = {names.get(name, name): value for name, value in opened.policy.items()}
    parts = {"trainer": opened.trainer, "space": opened.space}
    others = {f"{part}.{name}": parts[part][name] for part in parts for name in parts[part]}
    return {"seed": opened.seed, **policy, **others}
