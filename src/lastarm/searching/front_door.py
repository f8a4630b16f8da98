"""The front door: `search`, which loads what a search needs when it is called.

So `from lastarm import search` takes hardly any time, also in worker processes that import a
user's script and never call it. What a call does is in `performing.py`.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Any, Literal, Never

    from lastarm.batched import BatchedTrainer
    from lastarm.checkpoints import Checkpoints
    from lastarm.events import Event
    from lastarm.policy import Policy
    from lastarm.result import Result
    from lastarm.runners import AnyRunner
    from lastarm.samplers import Sampler
    from lastarm.space import Space
    from lastarm.trainers import AnyTrainer, Config


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
    fresh: bool = False,
    checkpoints: Checkpoints | str | Path | bool = True,
    seed: int = 0,
    sampler: Sampler | None = None,
    seconds: float | None = None,
    pull_seconds: float | None = None,
    retries: int = 0,
    switch_seconds: float | None = None,
    include: Sequence[Config] | None = None,
    maximize: bool = False,
    metric: str | None = None,
    recommend: Literal["latest", "best"] = "latest",
    on_event: Callable[[Event], None] | None = None,
    progress: bool | None = None,
    watch: bool | Literal["open"] = False,
    **others: Never,
) -> Result:
    """Find the best of many configs, training each only as far as the policy asks for.

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

    The config of arm i is drawn by (seed, i), whatever happened before. Ctrl-C and SIGTERM end the
    search with the recommendation so far; a second Ctrl-C ends it at once.

    :param trainer: what trains and judges an arm: an object with `start(config, seed)`,
        `train(state, pulls)` and `loss(state)`; a generator function that yields a loss after each
        pull; two or three functions; or a batched trainer.
    :param space: what may vary: hyperparameters and their domains.
    :param policy: what decides: a policy such as Hyperband(arms=64, budget=4096, max_pulls=81), or
        the name of one. Left out, it is `HorizonHalving` if `max_pulls` is given, else the paper's
        `SuccessiveHalving`; with `seconds` and no budget, it is `TimedHalving`. If `arms` is left
        out, too, and the budget is at least ten times `max_pulls`, it is `Brackets`.
    :param arms: how many configs to draw, of which the best is to be found. It may be left out if
        there are `max_pulls` and a budget: then configs are chosen as the search goes, by what is
        known of those before, or as many are drawn as a budget of less than ten full trainings is
        worth. With `seconds` and no budget as many are drawn as there is time for.
    :param budget: the total of pulls over all arms. It is never exceeded.
    :param max_pulls: the most pulls that one arm is worth, if that is known.
    :param runner: what performs pulls: "serial", "processes", "batched", "ray", a Dask client, or
        a function that makes a runner.
    :param workers: how many processes train at the same time.
    :param journal: the file that remembers the search. The same call resumes a search that was
        stopped or killed. With a larger budget it extends one, also one that had ended. A call
        with other arguments is refused. If your code has changed since, a `TrainerChanged` warning
        names what differs, and the search continues.
    :param fresh: whether to start again with a new journal. One that is there is kept, with its
        states, as `journal`.old-1 (or -2, and so on).
    :param checkpoints: where trained states are kept: a folder, or `Checkpoints`. True is a folder
        beside the journal, False keeps them in memory only.
    :param seed: what all randomness is derived from.
    :param sampler: what chooses later configs by the losses of earlier ones, such as
        `GaussianProcess()`, which is the default where `arms` and `policy` are left out and the
        budget is at least ten times `max_pulls`. Else, if it is left out, all are drawn at random.
    :param seconds: stop after this time. Without a budget it is the budget: the search measures
        what pulls and looks take, and plans to use this time well.
    :param pull_seconds: a pull that takes longer has failed (for worker processes).
    :param retries: how many times a failed pull is tried again before its arm is out.
    :param switch_seconds: how long it takes to move a state to another worker; left out, it is
        measured. An arm stays with the worker that has its state in memory, unless waiting for
        that worker takes longer than this.
    :param include: configs to try first, as the first arms.
    :param maximize: whether the trainer's figure is better when it is higher. The loss is then its
        negative; what is printed, shown and drawn is the figure. An `Estimator` with a `scoring`
        has losses that are negatives already.
    :param metric: what the figure that the trainer gives as its loss is called, such as
        "accuracy". It is for people: the answer does not depend on it.
    :param recommend: "latest" recommends the arm that the policy found, as it is now. "best"
        recommends the best state that was observed of any arm, for arms that overfit.
    :param on_event: called with every event as it counts; on resuming, also with earlier events.
        If it has a `close`, as a logger has, that is called when the search ends.
    :param progress: whether to show progress on standard error, or below a notebook's cell. Left
        out, it is shown on a terminal and in a notebook.
    :param watch: whether to show the search on a page while it runs. Its address is printed, and
        "open" also opens it in a browser. It follows the journal, so there has to be one. In a
        notebook the page is below the cell, and needs no journal.
    :param others: there are none. What other tools have, such as `n_trials`, is refused with
        lastarm's name for it.
    :returns: the recommended arm, its config and state, and what finding it took.
    :raises AllArmsFailed: if no arm has a finite loss when the policy has ended.
    """
    given = locals()
    result: Result = importlib.import_module("lastarm.searching.performing").perform(**given)
    return result
