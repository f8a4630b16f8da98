"""`lastarm replay`: play a policy, or all of them, on recorded learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from rich.markup import escape

from lastarm.arguments import rational, whole_number
from lastarm.cli import display
from lastarm.cli.options import by_options
from lastarm.errors import AllArmsFailed, BudgetTooSmall, InvalidArgument
from lastarm.events import Event, Loss, Pull, Told
from lastarm.policies import POLICIES
from lastarm.policies.named import takes
from lastarm.policies.parts.as_many import grows
from lastarm.policies.parts.budgeted import Budgeted
from lastarm.policy import Rounds
from lastarm.result import Result
from lastarm.runners import Arms, Serial
from lastarm.searching import search
from lastarm.space import Configs
from lastarm.theory import Truth, audit, ends_lower
from lastarm.trainers import RecordedCurves
from lastarm.trainers.recorded import Position

GROUP = 256  # recorded pulls take no time, so that this many share one wait for the disk
MOST_SHOWN = 10


def replay(
    file: str,
    policy: str | None,
    as_json: bool,
    arms: Any,
    seed: Any,
    all_policies: bool,
    with_audit: bool,
    journal: str | None,
    fresh: bool,
    seconds_per_pull: float,
    **options: Any,
) -> int:
    """Play a policy on recorded learning curves."""
    table = CurveTable(file, arms, seed, seconds_per_pull)
    if all_policies:
        if journal or with_audit:
            option, given = ("--journal", journal) if journal else ("--audit", True)
            rule = "it is about one search, and --compare about many"
            raise InvalidArgument.of(option, given, rule, "Leave one of the two out")
        found, stopped_by = compare(table, options)
        if as_json:
            display.print_json({"budget": options["budget"], "policies": found})
        else:
            print_comparison(found, table, options["budget"])
            if stopped_by:
                display.say("Stopped before the other policies were played.")
        return display.exit_code(stopped_by)
    chosen = table.policy(policy, **options)
    played = table.play(chosen, journal, fresh=fresh)
    result = played.result
    if as_json:
        answer = {**result.as_dict(), "arm": played.row}
        answer |= {"policy": chosen.name, "budget": result.budget}
        display.print_json(answer | ({"audit": audited(played, table)} if with_audit else {}))
        display.note_about_this_call(result)
    else:
        row = played.rows.__getitem__
        display.console.print(display.rungs(result, row))
        display.answer(result, row, longest=table.columns)
        if not result.complete:
            display.stopped(journal)
        if with_audit:
            print_audit(audited(played, table))
    return 0 if result.complete else display.exit_code(result.stopped_by)


# The table, and a policy played on it ---------------------------------------------------------


class Played(NamedTuple):
    """What a policy found, and which row of the file each arm was."""

    result: Result
    rows: list[int]

    @property
    def row(self) -> int | None:
        """The recommended row."""
        return None if self.result.arm is None else self.rows[self.result.arm]


class Places(Serial):
    """A runner for rows of a table, whose states need not be kept: each is a place in a row.

    `reached` says how far the arms are known to be. `prices`, if given, are told as the seconds
    that a pull and a look took: measured times would give another answer every time.
    """

    def __init__(
        self,
        arms: Arms,
        reached: dict[int, int],
        *,
        group: int,
        prices: tuple[float, float] | None,
    ) -> None:
        super().__init__(arms, group=group)
        self._reached = reached
        self._prices = prices
        if prices is not None:
            self.now = 0.0  # the clock by which they are told

    def start(self, pull: Pull, attempt: int) -> None:
        """Continue from there, also if that was before a crash or with a smaller budget."""
        if pull.arm in self._reached:
            known = Pull(pull.arm, self._reached[pull.arm])
            self._states.put_back(known, self.state(known))
        super().start(pull, attempt)

    def wait(self, seconds: float = 0.0) -> list[Told]:
        """Perform the group."""
        told = super().wait(seconds)
        if self._prices is None:
            return told
        a_pull, a_look = self._prices
        works = (event.work for event in told)
        priced = [w._replace(train_seconds=w.trained * a_pull, loss_seconds=a_look) for w in works]
        self.now += sum(work.train_seconds + work.loss_seconds for work in priced)
        return [event._replace(work=work) for event, work in zip(told, priced, strict=True)]

    def state(self, pull: Pull) -> Position:
        """It can always be made."""
        return Position(self._arms.configs[pull.arm]["row"], pull.upto)


class CurveTable:
    """Recorded curves, and the rows of them that are arms: all, or some drawn by the seed."""

    def __init__(self, file: str, arms: Any, seed: Any, seconds_per_pull: float = 0.0) -> None:
        self.curves = RecordedCurves.load(file, seconds_per_pull=seconds_per_pull)
        self.seed = whole_number("seed", seed, 0, "what all randomness is derived from")
        rows, self.columns = self.curves.losses.shape
        self.rows = list(range(rows))
        if arms is not None:
            arms = whole_number("arms", arms, 1, "how many rows to draw")
            if arms > rows:
                rule, way_out = f"the table has {rows} rows", f"Use {rows} or less"
                raise InvalidArgument.of("arms", arms, rule, way_out)
            drawn = np.random.default_rng(self.seed).choice(rows, arms, replace=False)
            self.rows = sorted(drawn.tolist())

    def policy(self, name: str | None, **options: Any) -> Budgeted:
        """A policy for this table, which knows the length of its curves and the seed."""
        numbers = {**options, "arms": len(self.rows)}
        suggested = {"max_pulls": self.columns}
        return by_options(name, numbers, seed=self.seed, suggested=suggested)[0]

    def play(
        self,
        policy: Budgeted,
        journal: str | None = None,
        look_cost: Any = None,
        *,
        fresh: bool = False,
    ) -> Played:
        """Play a policy to its end, or until it is stopped.

        To one that measures, a pull takes one second or as many as are really waited, and a look
        as long as `look_cost` pulls.
        """
        a_pull = self.curves.seconds_per_pull or 1.0
        a_look = a_pull * float(rational("look_cost", look_cost or 0, 0, "what a look costs"))
        prices = (a_pull, a_look) if policy.measures else None
        rows = self.rows
        in_rounds = isinstance(policy, Rounds)
        if not in_rounds or grows(policy):  # it begins arms in order; that of the file is chance
            rows = np.random.default_rng(self.seed).permutation(rows).tolist()
        group = 1 if not in_rounds or self.curves.seconds_per_pull else GROUP
        reached: dict[int, int] = {}
        self.curves.restarts = getattr(policy, "restarts", False)

        def note(event: Event) -> None:
            if isinstance(event, Loss):
                reached[event.pull.arm] = event.pull.upto

        result = search(
            self.curves,
            Configs([{"row": row} for row in rows]),
            policy=policy,
            runner=partial(Places, reached=reached, group=group, prices=prices),
            journal=journal,
            fresh=fresh,
            checkpoints=False,
            seed=self.seed,
            on_event=note,
        )
        return Played(result, rows)


# All policies at one budget -------------------------------------------------------------------


def compare(table: CurveTable, options: dict[str, Any]) -> tuple[list[dict[str, Any]], int | None]:
    """What each policy found and spent, and the signal that stopped it all, if one did."""
    found: list[dict[str, Any]] = []
    failed: list[AllArmsFailed] = []
    for name in POLICIES:
        known = {key: value for key, value in options.items() if takes(name, key)}
        if options["restarts"] and not takes(name, "restarts"):
            said = "it does not plan for arms that are trained from zero at every level."
            found.append({"policy": name, "error": said})
            continue
        try:
            policy = table.policy(name, **known)
            result, rows = table.play(policy, look_cost=options["look_cost"])
        except (BudgetTooSmall, AllArmsFailed) as error:
            found.append({"policy": name, "error": str(error)})
            failed += [error] if isinstance(error, AllArmsFailed) else []
            continue
        if isinstance(result.stopped_by, int):
            return found, result.stopped_by
        assert result.arm is not None
        curves = table.curves.losses[rows]
        found.append(
            {
                "policy": name,
                "arm": rows[result.arm],
                "loss": result.loss,
                "final_loss": float(curves[result.arm, -1]),
                "better_arms": len(ends_lower(curves, result.arm)),
                "pulls": result.spent.pulls,
                "observations": result.spent.observations,
            }
        )
    if failed and all("error" in row for row in found):
        raise failed[0]
    return found, None


def print_comparison(found: list[dict[str, Any]], table: CurveTable, budget: int) -> None:
    """The same as a table for people."""
    headings = ("policy", "arm", "loss", "final", "better", "pulls", "looks")
    shown = display.table(*headings, no_wrap=True)
    shown.columns[0].justify = "left"
    for row in found:
        if "error" in row:
            continue
        final = row["final_loss"]
        shown.add_row(
            row["policy"],
            f"{row['arm']}",
            f"{row['loss']:.4g}",
            f"{final:.4g}" if isfinite(final) else "diverged",
            f"{row['better_arms']:,}",
            f"{row['pulls']:,}",
            f"{row['observations']:,}",
        )
    full = len(table.rows) * table.columns
    display.say(
        f"{len(table.rows):,} arms with a budget of {budget:,} pulls, {budget / full:.1%} of "
        f"training all of them to the end."
    )
    display.console.print(shown)
    display.say("Final: the loss at the end of that arm's curve. Better: how many arms end lower.")
    for row in found:
        if "error" in row:
            display.say(f"{row['policy']}: {escape(row['error'])}")


# How close the eliminations were, by estimate and in truth ------------------------------------


def audited(played: Played, table: CurveTable) -> dict[str, Any]:
    """The audit and the truth as one object; arms are rows of the file."""
    if played.result.arm is None:
        return {}
    report = audit(played.result.curves, played.result.arm, out=played.result.failures)
    truth = Truth.of(table.curves.losses[played.rows], played.result.arm)
    return {
        "eliminations": [
            {**asdict(e), "arm": played.rows[e.arm], "close": e.close} for e in report.eliminations
        ],
        "close_calls": len(report.close_calls),
        "unknown": sum(e.moved is None for e in report.eliminations),
        "diverged": report.diverged,
        "budget": report.budget,
        "truth": {
            "better_arms": [played.rows[arm] for arm in truth.better],
            "budget": truth.budget,
        },
    }


def print_audit(found: dict[str, Any]) -> None:
    """The same for people."""
    if not found:
        return
    eliminations, truth = found["eliminations"], found["truth"]
    display.say(
        f"\nAudit, an estimate and never a proof: of {len(eliminations):,} arms that were "
        f"dropped, {found['close_calls']:,} were close calls."
    )
    if found["unknown"]:
        display.say(
            f"{found['unknown']:,} were dropped where no arm went on, so nothing is known of how "
            "they would have moved."
        )
    if found["diverged"]:
        display.say(f"{found['diverged']:,} more failed or diverged.")
    shown = display.table("arm", "dropped at", "its loss", "had to fall by", "others moved", "")
    for row in eliminations[:MOST_SHOWN]:
        shown.add_row(
            f"{row['arm']}",
            f"{row['level']:,}",
            f"{row['loss']:.6g}",
            f"{row['margin']:.6g}",
            "no arm went on" if row["moved"] is None else f"{row['moved']:.6g}",
            "close" if row["close"] else "",
        )
    display.console.print(shown)
    if len(eliminations) > MOST_SHOWN:
        display.say(f"… and {len(eliminations) - MOST_SHOWN:,} that were not as close.")
    display.say(
        "A call is close when some arm that went on from that level moved as far as the dropped "
        "one would have had to fall to win."
    )
    covers = f"{found['budget']:,.0f}" if isfinite(found["budget"]) else "none would"
    display.say(f"The budget above which Theorem 1 would cover what was seen: {covers}.")
    better = truth["better_arms"]
    known = {row["arm"]: row["close"] for row in eliminations}
    close = sum(known.get(arm, False) for arm in better)
    display.say(f"The whole curves show: {in_truth(better, close)}.")


def in_truth(better: Sequence[int], close: int) -> str:
    """The arms that end lower than the recommended one, and how many of them were close calls.

    >>> in_truth([7], close=1)
    'arm 7 ends lower; it was a close call'
    """
    if not better:
        return "no arm ends lower than the recommended one"
    if len(better) == 1:
        return f"arm {better[0]} ends lower; it was {'' if close else 'not '}a close call"
    were = "was a close call" if close == 1 else "were close calls"
    return (
        f"{len(better):,} arms end lower, the best of them arm {better[0]}; {close:,} of them "
        f"{were}"
    )
