"""The laws of policies, and the small games in which they are tried."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import SupportsInt

import numpy as np

from lastarm.errors import BudgetTooSmall, NotAsked
from lastarm.events import Failure, Loss, Pull, Told
from lastarm.policy import Policy, price

MakePolicy = Callable[[int, int], Policy]
"""`make(arms, budget)`; a policy class is one."""
CheckPolicy = Callable[[MakePolicy], None]

FINITE = (0.0, 0.25, 0.5, 1.0)
ANY = FINITE * 4 + (math.inf, -math.inf, math.nan, None)  # None is a failure
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 27)


@dataclass(frozen=True)
class Game:
    """Some arms, a budget, and a table with the outcome of every pull."""

    make: MakePolicy
    arms: int
    budget: int
    outcomes: Sequence[Sequence[float | None]]

    def __repr__(self) -> str:
        return f"arms={self.arms}, budget={self.budget}, outcomes={self.outcomes}"

    def begin(self) -> Policy:
        """A policy that has not begun."""
        return self.make(self.arms, self.budget)

    def answer(self, pull: Pull) -> Told:
        """What the policy is told about a pull."""
        row = self.outcomes[pull.arm]
        loss = row[pull.upto % len(row)]
        return Failure(pull, "it fails in this game") if loss is None else Loss(pull, loss)

    def play(
        self,
        policy: Policy,
        *,
        width: int = 3,
        pick: Callable[[int], SupportsInt] = lambda _: 0,
        begun: Sequence[Pull | Told] = (),
    ) -> list[Pull | Told]:
        """Everything asked and told to the end, with `width` pulls in flight at a time.

        `pick(k)` says which of k pulls in flight is told next; `begun` is the beginning of a game
        that continues here.
        """
        history = list(begun)
        told = {event.pull for event in history if not isinstance(event, Pull)}
        in_flight = [event for event in history if isinstance(event, Pull) and event not in told]
        while True:
            asked = policy.ask(width - len(in_flight))
            in_flight += asked
            history += asked
            if not in_flight:
                return history
            answer = self.answer(in_flight.pop(int(pick(len(in_flight)))))
            policy.tell(answer)
            history.append(answer)


def games(make: MakePolicy, outcomes: Sequence[float | None] = ANY) -> Iterator[Game]:
    """Many small games for a policy, with its least budget and larger ones."""
    for seed, arms in enumerate(SIZES):
        try:
            make(arms, 1)
            least = 1
        except BudgetTooSmall as error:
            least = error.least
        random = np.random.default_rng(seed)
        for budget in (least, least + 1, 2 * least + 1, 7 * least):
            table = random.integers(0, len(outcomes), (arms, 23)).tolist()
            yield Game(make, arms, budget, [[outcomes[k] for k in row] for row in table])


def check_the_budget_is_never_exceeded(make: MakePolicy) -> None:
    """What is trained adds up to at most the budget, at every moment.

    It is the levels reached; for a trainer that restarts, all levels that arms were brought to.
    """
    for game in games(make):
        policy = game.begin()
        restarts = getattr(policy, "restarts", False)
        level: dict[int, int] = {}
        trained = 0
        for event in game.play(policy):
            if isinstance(event, Pull):
                trained += price(level.get(event.arm, 0), event.upto, restarts=restarts)
                level[event.arm] = event.upto
                assert trained <= game.budget, game


def check_every_pull_is_news(make: MakePolicy) -> None:
    """A pull asks for more than the arm has; an arm has at most one pull in flight."""
    for game in games(make):
        level: dict[int, int] = {}
        in_flight: set[int] = set()
        for event in game.play(game.begin()):
            if isinstance(event, Pull):
                assert event.upto > level.get(event.arm, 0), (event, game)
                assert event.arm not in in_flight, (event, game)
                level[event.arm] = event.upto
                in_flight.add(event.arm)
            else:
                in_flight.remove(event.pull.arm)


def check_the_same_calls_give_the_same_answers(make: MakePolicy) -> None:
    """Nothing but the arguments and the losses decides."""
    for game in games(make):
        once, again = game.begin(), game.begin()
        assert game.play(once) == game.play(again), game
        assert once.recommendation == again.recommendation, game


def check_asking_n_at_once_is_asking_one_n_times(make: MakePolicy) -> None:
    """ask(n) is n times ask(1)."""
    for game in games(make):
        at_once, one_by_one = game.begin(), game.begin()
        while pulls := at_once.ask(5):
            assert pulls == [pull for _ in range(5) for pull in one_by_one.ask(1)], game
            for pull in pulls:
                at_once.tell(game.answer(pull))
                one_by_one.tell(game.answer(pull))
        assert one_by_one.ask(1) == [], game


def check_an_ask_that_gives_nothing_changes_nothing(make: MakePolicy) -> None:
    """Asking too early is harmless."""
    for game in games(make):
        patient, impatient = game.begin(), game.begin()

        def pick(_: int, impatient: Policy = impatient, game: Game = game) -> int:
            assert impatient.ask(0) == [], game
            for _ in range(2):  # everything was asked for already
                assert impatient.ask(1) == [], game
            return 0

        wide = game.arms + 1
        history = game.play(impatient, width=wide, pick=pick)
        assert history == game.play(patient, width=wide), game
        assert impatient.ask(wide) == [], game
        assert impatient.finished, game
        assert impatient.recommendation == patient.recommendation, game


def check_only_what_was_asked_can_be_told_and_once(make: MakePolicy) -> None:
    """Anything else raises `NotAsked` and changes nothing."""
    for game in games(make):
        policy, undisturbed = game.begin(), game.begin()
        _refuses(policy, Loss(Pull(0, 1), 0.0), game)
        while pulls := policy.ask(1):
            assert pulls == undisturbed.ask(1), game
            (pull,) = pulls
            _refuses(policy, Loss(Pull(pull.arm, pull.upto + 1), 0.0), game)
            _refuses(policy, Loss(Pull(game.arms, pull.upto), 0.0), game)
            policy.tell(game.answer(pull))
            undisturbed.tell(game.answer(pull))
            _refuses(policy, game.answer(pull), game)
        assert policy.recommendation == undisturbed.recommendation, game


def _refuses(policy: Policy, event: Told, game: Game) -> None:
    try:
        policy.tell(event)
    except NotAsked:
        return
    raise AssertionError(f"{event} was not expected, but was accepted: {game}")


def check_replay_at_every_prefix_restores_the_state(make: MakePolicy) -> None:
    """A new policy that is told any beginning of the history continues as the first one did."""
    for game in games(make):
        policy = game.begin()
        history = game.play(policy)
        for length in range(0, len(history), 1 + len(history) // 40):
            resumed = game.begin()
            for event in history[:length]:
                if isinstance(event, Pull):
                    assert resumed.ask(1) == [event], (length, game)
                else:
                    resumed.tell(event)
            assert game.play(resumed, begun=history[:length]) == history, (length, game)
            assert resumed.recommendation == policy.recommendation, (length, game)


def check_an_arm_that_failed_or_diverged_is_never_pulled_again(make: MakePolicy) -> None:
    """Such an arm is out."""
    for game in games(make):
        out: set[int] = set()
        for event in game.play(game.begin()):
            if isinstance(event, Pull):
                assert event.arm not in out, game
            elif isinstance(event, Failure) or not math.isfinite(event.value):
                out.add(event.pull.arm)


def check_a_loss_that_is_not_finite_never_wins(make: MakePolicy) -> None:
    """At every moment the recommendation is an arm with a finite latest loss, if there is one."""
    for game in games(make):
        policy = game.begin()
        finite: set[int] = set()
        assert policy.recommendation is None, game
        while pulls := policy.ask(1):
            answer = game.answer(pulls[0])
            policy.tell(answer)
            if isinstance(answer, Loss) and math.isfinite(answer.value):
                finite.add(answer.pull.arm)
            else:
                finite.discard(answer.pull.arm)
            recommended = policy.recommendation
            assert recommended in finite if finite else recommended is None, game
        assert policy.finished, game


def check_the_recommendation_is_the_lowest_latest_loss_while_running(make: MakePolicy) -> None:
    """The paper's J_t; ties go to the lower arm number."""
    for game in games(make, FINITE):
        policy = game.begin()
        latest: dict[int, float] = {}
        while pulls := policy.ask(1):
            answer = game.answer(pulls[0])
            policy.tell(answer)
            assert isinstance(answer, Loss)
            latest[answer.pull.arm] = answer.value
            if not policy.finished:
                lowest = min(latest, key=lambda arm: (latest[arm], arm))
                assert policy.recommendation == lowest, game


def check_ties_go_to_the_lower_arm_number(make: MakePolicy) -> None:
    """Where all losses tie, the lowest number wins; where all others tie, the next one."""
    for game in games(make, (0.5,)):
        policy = game.begin()
        pulled = {event.arm for event in game.play(policy) if isinstance(event, Pull)}
        assert policy.recommendation == min(pulled), game
        if pulled != {0}:
            worse = Game(make, game.arms, game.budget, [[1.0], *game.outcomes[1:]])
            policy = worse.begin()
            pulled = {event.arm for event in worse.play(policy) if isinstance(event, Pull)}
            assert policy.recommendation == min(pulled - {0}), worse


def check_ties_at_a_level_go_to_the_lower_arm_number(make: MakePolicy) -> None:
    """Of two arms with equal losses at a level, the lower survives if the higher one does.

    For policies that compare all their arms level by level.
    """
    for game in games(make, FINITE):
        policy = game.begin()
        losses: dict[int, dict[int, float]] = {}  # level → arm → loss
        for event in game.play(policy):
            if isinstance(event, Loss):
                losses.setdefault(event.pull.upto, {})[event.pull.arm] = event.value
        levels = sorted(losses)
        assert policy.recommendation is not None, game
        ends = [*(set(losses[level]) for level in levels[1:]), {policy.recommendation}]
        for level, going_on in zip(levels, ends, strict=True):
            for arm in going_on:
                twins = [i for i, loss in losses[level].items() if loss == losses[level][arm]]
                assert all(i in going_on for i in twins if i < arm), (level, arm, game)


def check_losses_told_in_any_order_give_the_same_answer(make: MakePolicy) -> None:
    """The order in which workers finish changes nothing. For synchronous policies."""
    for game in games(make):
        policy = game.begin()
        usual = set(map(repr, game.play(policy)))
        for width in (1, 2, 5, 30):
            shuffled, random = game.begin(), np.random.default_rng(width)
            history = game.play(shuffled, width=width, pick=random.integers)
            assert set(map(repr, history)) == usual, game
            assert shuffled.recommendation == policy.recommendation, game


def check_only_the_ranking_of_losses_matters(make: MakePolicy) -> None:
    """Any increasing function of the losses gives the same answer. For policies that only rank."""

    def stretched(loss: float | None) -> float | None:
        return loss if loss is None or not math.isfinite(loss) else math.exp(8 * loss) - 100

    for game in games(make):
        table = [[stretched(loss) for loss in row] for row in game.outcomes]
        other = Game(make, game.arms, game.budget, table)
        policy, same = game.begin(), other.begin()
        asked = [event for event in game.play(policy) if isinstance(event, Pull)]
        assert asked == [e for e in other.play(same) if isinstance(e, Pull)], game
        assert policy.recommendation == same.recommendation, game


def policy_checks(
    *, synchronous: bool = True, only_ranks: bool = True, level_by_level: bool = False
) -> list[CheckPolicy]:
    """The laws of a policy, each as a function that takes what makes the policy.

    :param synchronous: whether the policy waits for a whole round before it decides.
    :param only_ranks: whether only the ranking of losses matters to it.
    :param level_by_level: whether it compares all its arms level by level, as Successive Halving
        does.
    """
    return [
        check_the_budget_is_never_exceeded,
        check_every_pull_is_news,
        check_the_same_calls_give_the_same_answers,
        check_asking_n_at_once_is_asking_one_n_times,
        check_an_ask_that_gives_nothing_changes_nothing,
        check_only_what_was_asked_can_be_told_and_once,
        check_replay_at_every_prefix_restores_the_state,
        check_an_arm_that_failed_or_diverged_is_never_pulled_again,
        check_a_loss_that_is_not_finite_never_wins,
        check_the_recommendation_is_the_lowest_latest_loss_while_running,
        check_ties_go_to_the_lower_arm_number,
        *([check_losses_told_in_any_order_give_the_same_answer] if synchronous else []),
        *([check_only_the_ranking_of_losses_matters] if only_ranks else []),
        *([check_ties_at_a_level_go_to_the_lower_arm_number] if level_by_level else []),
    ]
