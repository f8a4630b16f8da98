"""The laws of trainers: what an arm becomes depends on its pulls, not on how they are split."""

from __future__ import annotations

import math
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lastarm.trainers.losses import observation
from lastarm.trainers.protocol import Config, Trainer, continues

MakeTrainer = Callable[[], Trainer[Any]]
CheckTrainer = Callable[[MakeTrainer, Config], None]

SPLITS = ((1, 1), (1, 2), (3, 1), (2, 5))
LEVELS = (1, 2, 4, 7)
UNTIL_FINISHED = (1, 2, 3, 5, 9, 17)


def trainer_checks(
    *, seed: int = 0, relative: float = 0.0, saves: bool = True
) -> list[CheckTrainer]:
    """The laws of a trainer, each as a function that takes what makes the trainer, and a config.

    :param seed: the seed of all arms.
    :param relative: how much two losses may differ, as a share of each other.
    :param saves: whether states must outlive their process. Use False for a trainer whose states
        cannot be pickled.

    An arm gets at most 17 pulls. Where the trainer has `finished`, use a config whose arm is
    finished before that, or the law about it sees nothing.

    >>> from lastarm import RecordedCurves
    >>> for check in trainer_checks():
    ...     check(lambda: RecordedCurves([[0.9, 0.5, 0.4]]), {"row": 0})
    """

    def same(one: float, other: float) -> bool:
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=relative)

    def check_a_loss_is_a_number(make: MakeTrainer, config: Config) -> None:
        trainer = make()
        state = trainer.train(trainer.start(config, seed), 1)
        _loss(trainer, state)
        if hasattr(trainer, "test"):
            observation(trainer.test(state))

    def check_training_a_plus_b_is_training_a_then_b(make: MakeTrainer, config: Config) -> None:
        trainer = make()
        for a, b in SPLITS:
            whole = trainer.train(trainer.start(config, seed), a + b)
            parts = trainer.train(trainer.train(trainer.start(config, seed), a), b)
            once, twice = _loss(trainer, whole), _loss(trainer, parts)
            assert same(once, twice), (
                f"the loss after {a + b} pulls is {once}, but after {a}, then {b} it is {twice}"
            )

    def check_looking_changes_nothing(make: MakeTrainer, config: Config) -> None:
        trainer = make()
        for a, b in SPLITS:
            state = trainer.train(trainer.start(config, seed), a)
            looks = [_loss(trainer, state) for _ in range(3)]
            assert all(same(looks[0], look) for look in looks), (
                f"after {a} pulls, computed three times, the loss is {looks}"
            )
            if hasattr(trainer, "test"):
                trainer.test(state)
            looked = _loss(trainer, trainer.train(state, b))
            blind = trainer.train(trainer.start(config, seed), a)
            unseen = _loss(trainer, trainer.train(blind, b))
            assert same(looked, unseen), (
                f"the loss after {a} and then {b} pulls is {unseen}, but if it is also computed "
                f"in between, it is {looked}"
            )

    def check_the_same_seed_gives_the_same_losses(make: MakeTrainer, config: Config) -> None:
        trainer, other = make(), make()
        curves: list[list[float]] = [[], [], []]
        arms = [(by, by.start(config, seed)) for by in (trainer, trainer, other)]
        for _ in range(4):
            for k, (by, state) in enumerate(arms):
                arms[k] = by, by.train(state, 1)
                curves[k].append(_loss(*arms[k]))
        for others in curves[1:]:
            assert all(map(same, curves[0], others)), (
                f"two arms with the same config and seed, trained in turn, have the losses "
                f"{curves[0]} and {others}"
            )

    def check_a_saved_state_goes_on_as_if_it_had_not_been_saved(
        make: MakeTrainer, config: Config
    ) -> None:
        trainer = make()
        for a, b in SPLITS:
            state = trainer.train(trainer.start(config, seed), a)
            goes_on = continues(trainer, state)
            later, copy = _saved_and_loaded(trainer, state, make)
            there, here = _loss(later, copy), _loss(trainer, state)
            assert same(here, there), (
                f"the loss after {a} pulls is {here}, but saved and loaded, it is {there}"
            )
            here = _loss(trainer, trainer.train(state, b))
            arm, pulls, how = copy, b, "if the state is saved and loaded in between"
            if not goes_on:  # what becomes of such an arm when it leaves its process
                arm, pulls, how = later.start(config, seed), a + b, "trained again from zero"
            there = _loss(later, later.train(arm, pulls))
            assert same(here, there), (
                f"the loss after {a} and then {b} pulls is {here}, but {how}, it is {there}"
            )

    def check_a_level_is_that_of_one_go_if_it_restarts(make: MakeTrainer, config: Config) -> None:
        trainer = make()
        if getattr(trainer, "restarts", False):
            for level, (there, once) in _levels_and_one_go(trainer, config, seed).items():
                assert same(once, there), (
                    f"the loss after {level} pulls in one go is {once}, but if the arm was looked "
                    f"at before, at lower levels, it is {there}"
                )

    return [
        check_a_loss_is_a_number,
        check_training_a_plus_b_is_training_a_then_b,
        check_a_level_is_that_of_one_go_if_it_restarts,
        check_looking_changes_nothing,
        check_the_same_seed_gives_the_same_losses,
        law_of_finished(seed, same, saves=saves),
        check_what_it_says_of_a_state_can_be_used,
        *([check_a_saved_state_goes_on_as_if_it_had_not_been_saved] if saves else []),
    ]


def law_of_finished(
    seed: int, same: Callable[[float, float], bool], *, saves: bool
) -> CheckTrainer:
    """The law that an arm stays as it is from where its trainer says that it is finished.

    - `seed`: that of the arm.
    - `same`: whether two losses are the same.
    - `saves`: whether states must outlive their process.
    """

    def check_what_is_finished_does_not_change(make: MakeTrainer, config: Config) -> None:
        trainer: Any = make()
        if not hasattr(trainer, "finished"):
            return
        state, before, end = trainer.start(config, seed), 0, None
        for level in UNTIL_FINISHED:
            state, before = trainer.train(state, level - before), level
            says, found = trainer.finished(state), _loss(trainer, state)
            if saves and continues(trainer, state):
                later, copy = _saved_and_loaded(trainer, state, make)
                assert later.finished(copy) == says, (
                    f"after {level} pulls `finished` is {says}, but if the state is saved and "
                    f"loaded, it is {not says}"
                )
            if end:
                at, loss = end
                assert says, f"it says that the arm is finished after {at}, but not after {level}"
                assert same(loss, found), (
                    f"it says that the arm is finished after {at} pulls, where the loss is "
                    f"{loss}, but after {level} pulls it is {found}"
                )
            elif says:
                end = level, found
        unasked = _loss(trainer, trainer.train(trainer.start(config, seed), before))
        assert same(unasked, found), (
            f"the loss after {before} pulls is {unasked}, but {found} if it was asked before "
            "whether the arm is finished"
        )

    return check_what_is_finished_does_not_change


def check_what_it_says_of_a_state_can_be_used(make: MakeTrainer, config: Config) -> None:
    """Where it has `continues`, `finished` and `size`, they give a bool or a number of bytes."""
    trainer: Any = make()
    state = trainer.train(trainer.start(config, 0), 1)
    goes_on = trainer.continues(state) if hasattr(trainer, "continues") else True
    assert isinstance(goes_on, bool), f"`continues` is True or False, and it is {goes_on!r}"
    ended = trainer.finished(state) if hasattr(trainer, "finished") else False
    assert isinstance(ended, bool), f"`finished` is True or False, and it is {ended!r}"
    size = trainer.size(state) if hasattr(trainer, "size") else 1
    assert isinstance(size, int), f"`size` is a whole number of bytes, and it is {size!r}"
    assert size > 0, f"a state takes some bytes, and its `size` is {size}"


def _loss(trainer: Trainer[Any], state: Any) -> float:
    return observation(trainer.loss(state))[0]


def _levels_and_one_go(
    trainer: Trainer[Any], config: Config, seed: int
) -> dict[int, tuple[float, float]]:
    """Level → the loss of an arm that came there level by level, and that of a new one."""
    losses, state, before = {}, trainer.start(config, seed), 0
    for level in LEVELS:
        state, before = trainer.train(state, level - before), level
        whole = trainer.train(trainer.start(config, seed), level)
        losses[level] = _loss(trainer, state), _loss(trainer, whole)
    return losses


def _saved_and_loaded(trainer: Any, state: Any, make: MakeTrainer) -> tuple[Any, Any]:
    """Another trainer, as in another process, and the state as it is there."""
    other: Any = make()
    if hasattr(trainer, "save"):
        with tempfile.TemporaryDirectory(prefix="lastarm-") as folder:
            trainer.save(state, Path(folder, "state"))
            return other, other.load(Path(folder, "state"))
    try:
        return other, pickle.loads(pickle.dumps(state))
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise AssertionError(
            f"a state cannot be pickled: {error}. Add `save` and `load` to the trainer, or leave "
            "this law out with saves=False."
        ) from error
