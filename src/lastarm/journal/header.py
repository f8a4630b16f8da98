"""The header of a journal: all that decides the answer of a search, and how to run it again."""

from __future__ import annotations

import importlib
import os
import platform
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from lastarm.errors import OtherSearch, OtherSecret, OtherVersion
from lastarm.events import Changed, Event, Extended, Opened
from lastarm.journal.lines import decode, encode
from lastarm.masking import is_masked, is_same, masked_words, without_hashes
from lastarm.plain import CODE, fingerprint
from lastarm.policies.named import facts_of
from lastarm.policy import Policy, describe
from lastarm.samplers import Sampler
from lastarm.space import Space
from lastarm.space import describe as describe_space
from lastarm.trainers import Config, Maximized, Trainer
from lastarm.trainers.metric import LOSS, UNNAMED, Metric
from lastarm.trainers.source_code import changes, code_of

# What trainers say since version 0.1, whose journals do not say it and are resumed all the same.
SAID_LATER = ("trainer.bins", "trainer.histograms")


def header(
    *,
    seed: int,
    policy: Policy,
    space: Space,
    configs: Sequence[Config],
    trainer: Trainer[Any],
    recommend: str,
    sampler: Sampler | None,
    metric: Metric = LOSS,
) -> Opened:
    """The header of a search that begins here and now.

    :param seed: the seed of the search.
    :param policy: it decides. Its name, version and arguments are in the header.
    :param space: what configs are drawn from.
    :param configs: those that were drawn. The header has their fingerprint.
    :param trainer: its kind, its version, its own fingerprint and hashes of its code are in the
        header.
    :param recommend: "latest" or "best".
    :param sampler: what chooses configs, if they are not all drawn. The header has the versions of
        the packages that it uses.
    :param metric: what people read in place of the loss. It is not compared on resuming.
    """
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
        space=described | {drawn: fingerprint(list(configs))},
        trainer=kind | (trainer.fingerprint() if hasattr(trainer, "fingerprint") else {}),
        versions={"python": platform.python_version()} | {p: version(p) for p in packages},
        command=tuple(sys.argv),
        folder=os.getcwd(),
        code=code_of(trainer),
        metric={} if metric == LOSS else asdict(metric),
    )


def described_policy(policy: Policy, recommend: str, sampler: Sampler | None) -> dict[str, Any]:
    """All that decides: the policy, and what else is not as usual."""
    said = describe(policy)
    said |= {"recommend": recommend} if recommend != "latest" else {}
    return said | ({"sampler": str(sampler)} if sampler else {})


def budgets_of(events: Sequence[Event]) -> list[int]:
    """The budgets that a search has had: of its header, and then what it was extended to."""
    first = header_of(events).policy.get("budget")
    return ([first] if isinstance(first, int) else []) + [
        event.budget for event in events if isinstance(event, Extended)
    ]


def changed_code(events: Sequence[Event], now: Opened) -> dict[str, str]:
    """What differs between the code that a journal was written with last and that of a header.

    Journals of version 0.1 do not say what their code was, and are not compared.
    """
    written = dict(header_of(events).code)
    if not written:
        return {}
    for event in events:
        if isinstance(event, Changed):
            written |= event.code
    return changes({name: hashed for name, hashed in written.items() if hashed}, now.code)


def refuse_another_search(path: Path, events: Sequence[Event], now: Opened) -> None:
    """Compare the header of a journal with that of the search that would resume it."""
    written, current = header_of(events), _as_read(now)
    _refuse_another_version(path, written, current)
    before, after = _identity(written), _identity(current)
    budgets, budget = budgets_of(events), after.get("budget")
    if budgets and isinstance(budget, int):
        resumed_or_extended = budget in budgets or budget > budgets[-1]
        before["budget"] = budget if resumed_or_extended else budgets[-1]
    differences = {
        name: _shown_apart(before.get(name), after.get(name))
        for name in {**before, **after}
        if not is_same(before.get(name), after.get(name))
        # A journal may not say what a function does: see `code_fingerprint`.
        and (CODE not in name or (name in before and name in after))
        and (name not in SAID_LATER or name in before)
    }
    if differences.get("policy.seed") == differences.get("seed"):
        differences.pop("policy.seed", None)  # the policy has it from the search
    if differences:
        raise OtherSearch(path, [(name, *values) for name, values in differences.items()])


def warn_of_other_secrets(path: Path, events: Sequence[Event], now: Opened) -> None:
    """Compare what is masked in the command. The answer does not depend on it."""
    written, given = list(header_of(events).command), list(now.command)
    alike = is_masked(written) and without_hashes(written) == masked_words(given, hashes=False)
    if alike and not is_same(written, given):
        warnings.warn(OtherSecret(path, without_hashes(written)), stacklevel=4)


def without_secrets(opened: Opened) -> Opened:
    """A header as it is written: in the command, and in that of a program, secrets are masked."""
    trainer, argv = dict(opened.trainer), opened.trainer.get("argv")
    if isinstance(argv, list | tuple) and all(isinstance(word, str) for word in argv):
        trainer["argv"] = masked_words(argv)
    return replace(opened, command=tuple(masked_words(opened.command)), trainer=trainer)


def _shown_apart(was: Any, now: Any) -> tuple[Any, Any]:
    """Two values as an error may show them, without secrets."""
    if not isinstance(now, list) or not all(isinstance(word, str) for word in now):
        return was, now
    now = masked_words(now, hashes=False)
    if isinstance(was, list):
        was = without_hashes([str(word) for word in was])
    return was, "the same with another value for ***" if was == now else now


def _refuse_another_version(path: Path, written: Opened, now: Opened) -> None:
    """What one rule has begun is never continued by another."""
    for part, name in (("policy", "name"), ("trainer", "kind")):
        before, after = getattr(written, part), getattr(now, part)
        was, is_now = before.get("version", 1), after.get("version", 1)
        numbers = isinstance(was, int) and isinstance(is_now, int)  # a fingerprint may have texts
        if before.get(name) == after.get(name) and was != is_now and numbers:
            by = str(written.versions.get("lastarm", ""))
            named = after.get("maximized", after.get(name))  # not what is only around it
            raise OtherVersion(path, part, str(named), was, is_now, by)


def header_of(events: Sequence[Event]) -> Opened:
    """The first event of a journal."""
    assert isinstance(events[0], Opened), "the first event of a journal is its header"
    return events[0]


def metric_of(opened: Opened) -> Metric:
    """What people read in place of the losses of a journal.

    One of version 0.1 does not say it, but it says what is maximized and how estimators are
    scored.
    """
    if opened.metric:
        return Metric(**opened.metric)
    trainer = opened.trainer
    if trainer.get("kind") == Maximized.__name__:
        return Metric(UNNAMED, maximize=True)
    scored = (
        re.fullmatch(r"'(\w+)'", str(trainer.get("scoring"))) if "estimator" in trainer else None
    )
    return Metric(scored[1], maximize=True) if scored else LOSS


def _as_read(opened: Opened) -> Opened:
    """A header as a journal gives it back: tuples are lists there, for example."""
    line = decode(encode(opened, durable=0, after="")[0].rstrip(b"\n"))
    assert line is not None, "what was encoded can be decoded"
    return header_of([line.event()])


def _identity(opened: Opened) -> dict[str, Any]:
    """All that decides the answer of a search, by name."""
    names = {"name": "policy", "seed": "policy.seed", "version": "policy.version"}
    policy = {
        names.get(name, name): value
        for name, value in opened.policy.items()
        # How many workers began it, if it plans for them: another number may continue it.
        if name != "at_once" or not facts_of(str(opened.policy.get("name"))).measures
    }
    parts = {"trainer": opened.trainer, "space": opened.space}
    others = {f"{part}.{name}": parts[part][name] for part in parts for name in parts[part]}
    return {"seed": opened.seed, **policy, **others}
