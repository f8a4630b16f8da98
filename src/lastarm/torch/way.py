"""Whether arms are trained together or one by one: a few batches of both ways are timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter, process_time

import torch

from lastarm.errors import CannotBeStacked
from lastarm.torch.arm import Arm
from lastarm.torch.course import Course
from lastarm.torch.kinds import kind_of
from lastarm.torch.stack import Stack
from lastarm.torch.together import FEWEST
from lastarm.trainers import Config

ONE_BY_ONE, TOGETHER = "one by one", "together"
ARMS = 16  # that are made: the first ones
STACKED = 8  # that are trained: about as many as are left in the middle of a search by halving
LARGE = 0.01  # seconds of a step, from which on a network fills the machine by itself
TIMES = 3
GAIN = 1.15  # by which it must be faster


def faster_way(
    start: Callable[[Config, int], Arm], configs: Sequence[Config], course: Course
) -> str:
    """The way that is faster for arms with these configs. What is trained here is thrown away.

    - `start`: makes an arm.
    - `configs`: the first ones of a search.
    - `course`: how arms are trained.

    An arm whose kind is as frequent as in the middle stands for all. An error decides nothing: it
    comes again where it belongs to an arm.
    """
    with suppress(Exception):
        return TOGETHER if _is_faster(start, configs[:ARMS], course) else ONE_BY_ONE
    return ONE_BY_ONE


def _is_faster(
    start: Callable[[Config, int], Arm], configs: Sequence[Config], course: Course
) -> bool:
    first = start(configs[0], 0)
    first.to(course.device)
    inputs, targets = next(course.epoch(1, course.size(first.config)))
    with course.own(0):
        for limit in (None, 2 * LARGE, LARGE):  # the first time, much is done once
            took = _seconds(lambda: course.step(first, inputs, targets), course.device)
            if limit and took > limit:
                return False
    arms = [start(config, seed) for seed, config in enumerate(configs)]
    kinds = [kind_of(arm, course.size(arm.config)) for arm in arms]
    counts = Counter(kinds)
    middle = sorted(kinds, key=lambda kind: counts[kind])[len(kinds) // 2]
    some = [arm for arm, kind in zip(arms, kinds, strict=True) if kind == middle][:STACKED]
    if middle is None or len(some) < FEWEST:
        return False
    try:
        stack = Stack(some, course)
        for arm in some:
            arm.to(course.device)
        inputs, targets = next(course.epoch(1, course.size(some[0].config)))

        def one_by_one() -> None:
            for arm in some:
                course.step(arm, inputs, targets)

        with course.own(0):
            times = [
                (
                    _seconds(one_by_one, course.device),
                    _seconds(lambda: stack.step(inputs, targets), course.device),
                )
                for _ in range(TIMES)
            ]
    except CannotBeStacked:
        return False
    apart, together = (min(column) for column in zip(*times, strict=True))
    return bool(apart > GAIN * together)


def _seconds(work: Callable[[], None], device: torch.device) -> float:
    """How long it takes; on a processor, without the time that other processes had there."""
    clock = process_time if device.type == "cpu" else perf_counter
    began = clock()
    work()
    if device.type != "cpu":
        getattr(torch, device.type).synchronize()
    return clock() - began
