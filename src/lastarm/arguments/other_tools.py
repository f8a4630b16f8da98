"""What other tools call the arguments of lastarm: people write them out of habit.

A name that a function, a class or a command does not know is refused with lastarm's name for it.
Where it is known elsewhere in lastarm, the error says where.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, Self

from lastarm.arguments.checks import did_you_mean
from lastarm.errors import UnknownArgument

# lastarm's names, the first that is known where it is used; and what others call it.
_CALLED = {
    "trainer estimator": "objective func fn trainable estimator model target_function train_fn "
    "evaluate_pipeline",
    "space param_distributions": "param_distributions param_grid param_space search_space "
    "search_spaces config_space configspace pipeline_space parameters params hyperparameters "
    "dimensions distributions space config",
    "arms n_arms": "n_trials num_samples n_candidates n_iter max_evals n_initial_parameters "
    "num_trials max_trials n_configs n_calls evaluations_to_spend n_arms arms",
    "budget": "total_budget fidelities_to_spend",
    "max_pulls": "max_t max_resource max_resources max_iter max_epochs max_budget max_steps "
    "max_iterations epochs n_epochs",
    "metric scoring": "metric",
    "eta": "factor reduction_factor aggressiveness",
    "policy": "scheduler pruner optimizer tuner strategy",
    "sampler": "search_alg searcher algo acq_func",
    "runner": "client executor backend trial_backend",
    "workers n_jobs": "n_jobs n_workers num_workers max_concurrent_trials max_concurrent "
    "parallelism workers",
    "journal": "storage study study_name load_if_exists storage_path root_directory local_dir "
    "trials resume output_directory",
    "checkpoints": "checkpoint_dir checkpoint_config checkpoint",
    "seed random_state": "random_state random_seed rstate rng seed",
    "seconds": "timeout time_budget_s time_budget time_limit max_time walltime_limit "
    "max_wallclock_time max_runtime_secs",
    "pull_seconds": "trial_timeout trial_walltime_limit pre_dispatch_timeout",
    "retries": "max_failures max_retries",
    "include": "points_to_evaluate initial_params initial_configs enqueue_trial init x0",
    "maximize": "direction directions mode greater_is_better minimize",
    "on_event": "callback callbacks loggers",
    "progress verbose": "verbose show_progress_bar progress_bar progress",
    "pulls_per_step": "steps_per_pull",
    "low": "lower min minimum lo start a",
    "high": "upper max maximum hi stop b",
    "step": "q quantization increment",
    "log": "logarithmic log_scale",
    "options": "categories choices options values items",
    "mean": "mu loc",
    "sd": "sigma std scale stddev",
}
# Where names of lastarm belong, for those who give them in another place.
_HOMES = {
    "It is an argument of search": "trainer space policy sampler runner workers journal "
    "checkpoints seed seconds pull_seconds retries include on_event progress switch_seconds "
    "recommend",
    "It is an argument of search, and of policies such as SuccessiveHalving": "arms budget",
    "It is an argument of search, and of policies such as HorizonHalving": "max_pulls",
    "Give it to a policy: policy=SuccessiveHalving(arms=64, budget=4096, eta=3)": "eta",
    "Use search(…, maximize=True) if higher is better, else leave it out": "maximize",
    'Use search(…, metric="accuracy") to name the figure that the trainer yields': "metric",
    "Use LogUniform(low, high), or Integer(low, high, log=True)": "log",
    "It is an argument of Integer and Uniform": "step",
    "It is an argument of Choice": "ordered",
    'List the options one after another, as in Choice("relu", "tanh")': "options",
    "Give it to Estimator(model, X, y, …) or to HalvingSearch": "cv scoring validation split "
    "pulls_per_step",
    'What a pull is, is decided by the trainer. If it is to be rows, use resource="rows" in '
    "Estimator(model, X, y, …) or in HalvingSearch": "resource",
}
# What to do about words that lastarm has no name for.
_WITHOUT = {
    "The first level follows from the arms and the budget: leave it out": "min_resource "
    "min_resources grace_period min_t min_budget min_iter r min_early_stopping_rate "
    "n_warmup_steps bootstrap_count",
    "What a pull is, such as an epoch, is decided by the trainer: leave it out": "resource_attr "
    "time_attr fidelity",
    "Hyperband computes its brackets from max_pulls and eta: leave it out": "brackets",
    "The winner is trained already, as result.state: leave it out": "refit",
    "An arm that raises is out, and the search continues: leave it out": "error_score catch",
    "The policy stops arms by comparing them: leave it out": "patience tol",
    "The budget ends a search, and so do seconds: leave it out": "stop",
    "A sampler says how many arms are random, by its random_share: leave it out": ""
    "n_startup_trials",
    "Give resources to a runner: runner=lambda arms: Ray(arms, resources={…})": ""
    "resources_per_trial resources",
    "The base of a logarithm changes nothing here: leave it out": "base",
    "All options are equally likely: leave it out": "weights probabilities p",
    'A space has the names: {"lr": LogUniform(1e-5, 1e-1)}': "name",
    "Configs to try first are given as search(…, include=[{…}])": "default default_value",
    "Give it to Estimator(model, X, y, …), or to HalvingSearch or its fit": "X y sample_weight "
    "groups fit_params",
}


def _by_word(texts: Mapping[str, str]) -> dict[str, str]:
    return {word: text for text, words in texts.items() for word in words.split()}


_called, _homes, _without = map(_by_word, (_CALLED, _HOMES, _WITHOUT))


def refuse_unknown(
    place: str,
    known: Iterable[str],
    given: Mapping[str, Any],
    spelled: Callable[[str], str] = "{}=".format,
) -> None:
    """Refuse names that are not known in this place, with what to write instead.

    - `place`: what was called.
    - `known`: the names of its arguments.
    - `given`: the names that were given, and their values.
    - `spelled`: how the user writes the name of an argument.

    >>> refuse_unknown("search", ["trainer", "space", "arms"], {"n_trials": 100})
    Traceback (most recent call last):
    lastarm.errors.UnknownArgument: n_trials=100 is not valid: search does not take it. Use arms=
    in its place.
    """
    known = list(known)
    for word, value in given.items():
        if word not in known:
            listed = f"{did_you_mean(word, known)}It takes {', '.join(known)}"
            instead, way_out = explained(word, known, spelled) or (None, listed)
            raise UnknownArgument(place, word, value, way_out, instead)


def explained(
    word: str, known: Collection[str], spelled: Callable[[str], str]
) -> tuple[str | None, str] | None:
    """lastarm's name for a word, if there is one, and what to do; None for an unfamiliar word."""
    ours = _called.get(word, word).split()
    if instead := next((name for name in ours if name in known), None):
        if instead == "maximize":
            return instead, f"Use {spelled('maximize')} if higher is better, else leave it out"
        return instead, f"Use {spelled(instead)} in its place"
    if word in _without:
        return None, _without[word]
    if instead := next((name for name in ours if name in _homes), None):
        called = "" if instead == word else f"lastarm calls it {instead}. "
        return instead, f"{called}{_homes[instead]}"
    return None


class OnlyKnown:
    """A class whose arguments have lastarm's names, and which explains those of other tools."""

    __slots__ = ()

    def __new__(cls, *_: Any, **named: Any) -> Self:
        """An object that is not initialised yet, if `__init__` takes all the names."""
        kind: type = cls
        known, others_too = _parameters(kind)
        if not others_too:
            refuse_unknown(cls.__name__, known, named)
        return super().__new__(cls)


@lru_cache(maxsize=256)
def _parameters(kind: type) -> tuple[list[str], bool]:
    """The names that a class takes by keyword, and whether it takes any others."""
    parameters = inspect.signature(kind).parameters.values()  # of `__init__`, without self
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return named, any(p.kind is p.VAR_KEYWORD for p in parameters)
