"""The front door: wiring only."""

from __future__ import annotations

import importlib
import os
import platform
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, cast

from lastarm.arguments import as_float, time_limit, whole_number
from lastarm.batched import BatchedTrainer, Single, is_batched
from lastarm.checkpoints import Checkpoints
from lastarm.errors import AllArmsFailed, InvalidArgument, ReplayDiverged
from lastarm.events import Closed, Event, Opened, Pull
from lastarm.journal import Journal, Unwritten
from lastarm.ledger import Ledger, Timesheet
from lastarm.loop import run
from lastarm.plain import fingerprint
from lastarm.policies.named import make_policy, name_of, takes
from lastarm.policy import Extendable, Policy, describe, fresh
from lastarm.result import Result
from lastarm.runners import AnyRunner, Arms, chosen_runner
from lastarm.samplers import SampledPolicy, Sampler
from lastarm.signals import stop_on_signals
from lastarm.space import Space, domains, draw
from lastarm.space import describe as describe_space
from lastarm.trainers import (
    AnyTrainer,
    Config,
    Maximized,
    Trainer,
    arm_seed,
    as_trainer,
    observation,
)


def search(
    trainer: AnyTrainer | BatchedTrainer[Any, Any],
    space: Space,
    *,
    policy: Policy | str | None = None,
    arms: int | None = None,
    budget: int | None = None,
    max_pulls: int | None = None,
    runner: AnyRunner = None,
    workers: int | None = None,
    journal: str | Path | None = None,
    checkpoints: Checkpoints | str | Path | bool = True,
    seed: int = 0,
    sampler: Sampler | None = None,
    seconds: float | None = None,
    pull_seconds: float | None = None,
    retries: int = 0,
    switch_seconds: float | None = None,
    include: Sequence[Config] | None = None,
    maximize: bool = False,
    recommend: Literal["latest", "best"] = "latest",
    on_event: Callable[[Event], None] | None = None,
    progress: bool | None = None,
) -> Result:
    """Find the best of many configs, training as many of them as far as the policy asks for.

    `trainer` is an object with `start(config, seed)`, `train(state, pulls)` and `loss(state)`; a
    generator function that yields a loss once a pull; a pair of functions; or a batched trainer,
    which trains many arms in one kernel (`lastarm.batched`). The config of arm i is drawn from
    `space` by (seed, i); those to `include` come first. With a `sampler`, such as `Forest()`, most
    of the later arms get configs that resemble the good ones so far.

    >>> from lastarm import LogUniform
    >>> def root_of_two(config):
    ...     x = 1.0
    ...     while True:
    ...         x -= config["step"] * (x * x - 2)
    ...         yield abs(x * x - 2)
    >>> space = {"step": LogUniform(0.001, 1.0)}
    >>> result = search(root_of_two, space, arms=16, budget=256)
    >>> result.spent.pulls, result.complete, result.loss < 1e-6
    (256, True, True)

    Deciding. So many `arms` share a `budget` of pulls. `max_pulls` is the most that one arm is
    worth training for, where that is known: then the policy is `HorizonHalving`, which finds
    better arms with it; else it is the paper's `SuccessiveHalving`. `policy` is the name of
    another, or one with numbers of its own, such as Hyperband(arms=64, budget=4096, max_pulls=81).

    Performing. `runner` is "serial", "processes" (`workers` of them; a pull that takes longer than
    `pull_seconds` is a failure), "batched", "ray", a Dask client, or anything that makes a runner.
    A failed pull is tried again `retries` times; then that arm is out. All arms failing is an
    error, `AllArmsFailed`. An arm stays with the worker that has its state in memory, unless
    waiting for that one takes longer than moving the state: that is measured, or `switch_seconds`.

    Remembering. With a `journal`, the same call resumes a search that was killed or stopped; with
    a larger budget it extends one, also one that had ended, and every arm goes on from where it
    is. A call with other arguments is refused. Trained states are kept in `checkpoints`, a folder
    or `Checkpoints`: beside the journal unless said otherwise; False keeps them in memory only.

    Ending. Ctrl-C, SIGTERM or `seconds` end the search with the recommendation so far; a second
    Ctrl-C ends it at once. To the policy "timed-halving", `seconds` are a budget instead.
    `recommend` "latest" is the paper's: the arm that the policy found, as it is now. "best" is the
    best state that any arm was observed in, for arms that overfit. With `maximize` the trainer's
    figure is better when it is higher; its negative is the loss.

    `on_event` sees every event as it counts, on resuming also those of before. `progress` is shown
    on standard error if that is a terminal, unless it is said to be wanted or not.
    """
    _require_fit(sampler, journal, maximize, recommend, switch_seconds)
    batched = is_batched(trainer)
    how = as_trainer(Single(cast(Any, trainer)) if batched else cast(AnyTrainer, trainer))
    how = Maximized(how) if maximize else how
    seed = whole_number("seed", seed, 0, "what all randomness is derived from")
    policy, limit = _chosen(policy, seed, seconds, arms=arms, budget=budget, max_pulls=max_pulls)
    retries = whole_number("retries", retries, 0, "how often a failed pull is tried again")
    make_runner = chosen_runner(
        runner,
        workers,
        pull_seconds,
        starts_processes=getattr(how, "starts_processes", False),
        batched=batched and not maximize,
    )
    include = () if include is None else include
    configs = draw(space, policy.arms, seed, include)
    policy, ledger = fresh(policy), Ledger()

    with ExitStack() as stack:
        written: Journal | Unwritten = Unwritten()
        if journal is not None:
            opened = _opened(seed, policy, space, configs, how, recommend, sampler)
            written = stack.enter_context(closing(Journal(journal, opened)))
        states = Arms(how, configs, seed, switch_seconds=switch_seconds)
        if kept := Checkpoints.of(checkpoints):
            index = stack.enter_context(kept.opened(how, journal, best=recommend == "best"))
            always = journal is not None or recommend == "best"
            states = replace(states, index=index, memory=kept.memory, always=always)
        running = stack.enter_context(closing(make_runner(states)))
        if isinstance(written, Journal):
            policy = _as_it_began(policy, written)
        asked = sampler and SampledPolicy(policy, sampler, space, configs, seed, include)
        sheet = Timesheet(running.free, known=len(written.events))
        stop = stack.enter_context(stop_on_signals(limit))
        watchers: list[Callable[[Event], object]] = [
            *([asked.confirm] if asked else []),
            *([on_event] if on_event else []),
            *([states.index.add] if states.index else []),
        ]
        if (sys.stderr and sys.stderr.isatty()) if progress is None else progress:
            display = importlib.import_module(
                "lastarm.report.progress"
            )  # rich takes time to import
            watchers.append(stack.enter_context(display.shown(policy, configs, sheet)))

        def count(event: Event) -> None:
            ledger.add(event)
            # Simulated workers have a clock of their own.
            sheet.add(event, getattr(running, "now", perf_counter()))
            for watch in watchers:
                watch(event)

        for event in run(asked or policy, running, written, configs, retries=retries, stop=stop):
            count(event)
        complete = policy.finished
        found = _recommended(policy, ledger, recommend)
        state = running.state(found) if found else None
        if not found and complete:
            raise AllArmsFailed(ledger.causes())
        if found and complete and not ledger.closed:
            closed, state = _close(how, configs[found.arm], found, state, seed)
            written.append(closed)
            written.sync()
            count(closed)
        elif ledger.closed and found != Pull(ledger.closed.arm, ledger.closed.upto):
            raise ReplayDiverged(len(written.events), ledger.closed, found)
    return Result(
        arm=found.arm if found else None,
        config=configs[found.arm] if found else None,
        level=found.upto if found else None,
        loss=dict(ledger.curves[found.arm])[found.upto] if found else None,
        test_loss=ledger.closed.test_loss if ledger.closed else None,
        complete=complete,
        spent=ledger.spent,
        digest=ledger.digest(found.arm if found else None),
        curves=ledger.curves,
        metrics=ledger.metrics,
        failures=ledger.failures,
        configs=configs,
        rungs=dict(sorted(ledger.rungs.items())),
        best_so_far=ledger.best_so_far,
        policy=_described(policy, recommend, sampler),
        space=domains(space),
        maximized=maximize,
        state=how.unwrap(state) if state is not None and hasattr(how, "unwrap") else state,
        stopped_by=None if complete else stop.signal,
        journal=None if journal is None else str(journal),
        utilisation=sheet.utilisation,
        budget=ledger.stretches[-1].budget if ledger.stretches else policy.budget,
        stretches=ledger.stretches,
    )


def _chosen(
    policy: Any, seed: int, seconds: float | None, **numbers: int | None
) -> tuple[Policy, float]:
    """The policy that was given, or the one by that name, or the default; and when to stop it."""
    given: dict[str, Any] = {name: n for name, n in numbers.items() if n is not None}
    if isinstance(policy, str | None):
        name = name_of(policy, numbers["max_pulls"])
        if takes(name, "seconds"):  # it plans for so much work, and is not stopped
            given, seconds = given | {"seconds": seconds}, None
        if takes(name, "seed"):
            given["seed"] = seed
        return make_policy(name, given), time_limit("seconds", seconds, "how long to search")
    if isinstance(policy, type) or not hasattr(policy, "ask"):
        raise InvalidArgument(
            f"policy={policy!r} is no policy: give one with its numbers, such as "
            "SuccessiveHalving(arms=64, budget=4096), or a name."
        )
    if given:
        raise InvalidArgument(
            f"{', '.join(given)} will not do beside policy={policy!r}, which has its own. Leave "
            "one of them out."
        )
    return policy, time_limit("seconds", seconds, "how long to search")


def _require_fit(sampler: Any, journal: Any, maximize: Any, recommend: Any, switch: Any) -> None:
    if not isinstance(sampler, Sampler | None):
        raise InvalidArgument(f"sampler={sampler!r} is no sampler: give one, such as Forest().")
    if not isinstance(maximize, bool):
        raise InvalidArgument(f"maximize={maximize!r} will not do: give True or False.")
    if not isinstance(journal, str | Path | None):
        raise InvalidArgument(f"journal={journal!r} will not do: give the path of a file.")
    if not isinstance(recommend, str) or recommend not in ("latest", "best"):
        raise InvalidArgument(f'recommend={recommend!r} will not do: give "latest" or "best".')
    if switch is not None and not 0 <= as_float(switch) < inf:
        raise InvalidArgument(
            f"switch_seconds={switch!r} will not do: it is what moving a state to another worker "
            "takes. Give finite seconds, 0 or more, or leave it out to have it measured."
        )


def _opened(
    seed: int,
    policy: Policy,
    space: Space,
    configs: Sequence[Config],
    trainer: Trainer[Any],
    recommend: str,
    sampler: Sampler | None,
) -> Opened:
    packages = ["lastarm", *(sampler.packages if sampler else ())]
    version = importlib.import_module("importlib.metadata").version  # which takes time to import
    kind = {"kind": type(trainer).__qualname__}
    described, drawn = describe_space(space), "configs"
    while isinstance(described.get(drawn), Mapping):  # a hyperparameter may be called that
        drawn += " drawn"
    return Opened(
        seed=seed,
        policy=_described(policy, recommend, sampler),
        space=described | {drawn: fingerprint(configs)},
        trainer=kind | (trainer.fingerprint() if hasattr(trainer, "fingerprint") else {}),
        versions={"python": platform.python_version()} | {p: version(p) for p in packages},
        command=tuple(sys.argv),
        folder=os.getcwd(),
    )


def _described(policy: Policy, recommend: str, sampler: Sampler | None) -> dict[str, Any]:
    """All that decides: the policy, and what besides is not as usual."""
    said = describe(policy)
    said |= {"recommend": recommend} if recommend != "latest" else {}
    return said | ({"sampler": str(sampler)} if sampler else {})


def _as_it_began(policy: Policy, journal: Journal) -> Policy:
    """The policy with the budget that the search began with; a larger one than ever extends it."""
    first, *others = journal.budgets or [policy.budget]
    if policy.budget == first:
        return policy
    if policy.budget not in others:  # so it is larger than all of them
        if not isinstance(policy, Extendable):
            raise InvalidArgument(
                f"budget={policy.budget} will not do: the search in {journal.path} has one of "
                f"{journal.budgets[-1]}, and its policy {policy.name} cannot be extended, because "
                "it has no extend(budget). Give the same budget, or name another journal."
            )
        journal.extend(policy.budget)
    return fresh(policy, budget=first)


def _recommended(policy: Policy, ledger: Ledger, recommend: str) -> Pull | None:
    """The recommended arm and the level at which it is meant."""
    if policy.recommendation is None:
        return None
    if recommend == "latest":
        return Pull(policy.recommendation, upto=ledger.curves[policy.recommendation][-1][0])
    out = ledger.causes()
    _, arm, upto = min(
        (loss, arm, upto)
        for arm, curve in ledger.curves.items()
        if arm not in out
        for upto, loss in curve
    )
    return Pull(arm, upto)


def _close(trainer: Any, config: Config, last: Pull, state: Any, seed: int) -> tuple[Closed, Any]:
    """Test the recommended arm, once. An error here must not cost the search its answer."""
    if not hasattr(trainer, "test"):
        return Closed(last.arm, last.upto), state
    trained = 0
    try:
        if state is None:  # lost in a crash, or with a worker
            trained = last.upto
            state = trainer.train(trainer.start(config, arm_seed(seed, last.arm)), trained)
        test_loss = trainer.test(state)
        test_loss = None if test_loss is None else observation(test_loss)[0]
    except (Exception, SystemExit) as error:
        warnings.warn(f"the test loss could not be computed: {error!r}", stacklevel=3)
        test_loss = None
    return Closed(last.arm, last.upto, test_loss, trained), state
