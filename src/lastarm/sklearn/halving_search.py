"""The search as one of scikit-learn's estimators: fit, then predict."""

from __future__ import annotations

import os
import signal
import warnings
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from functools import partial
from math import isinf, nan
from numbers import Integral, Real
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, column_or_1d, get_tags
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lastarm.arguments import Number, overflows, whole_number
from lastarm.arguments.other_tools import OnlyKnown
from lastarm.batched import BatchedTrainer, Single, is_batched
from lastarm.errors import (
    AllArmsFailed,
    InvalidArgument,
    JournalLocked,
    LastarmWarning,
    OtherSearch,
)
from lastarm.events import Event, Failure, Loss, Opened, Pull
from lastarm.journal import read
from lastarm.plain import readable
from lastarm.policies import TimedHalving
from lastarm.policies.named import Picked, choose
from lastarm.policies.parts.as_many import grows
from lastarm.policies.parts.integers import ceil_log
from lastarm.policy import Policy
from lastarm.policy import fresh as unasked
from lastarm.result import Result
from lastarm.samplers import Sampler
from lastarm.searching import search
from lastarm.searching.performing import choose_as_begun, usual_sampler
from lastarm.sklearn.batched_sgd_support import batched_sgd_or_reason
from lastarm.sklearn.cv_results import FoldByFold, cv_results
from lastarm.space import Configs, Space, draw, drawn, examples, is_listed, recalled, size
from lastarm.space.spaces import read_space
from lastarm.trainers import Config, Trainer, arm_seed
from lastarm.trainers.estimators import Estimator
from lastarm.trainers.estimators.boosting import STOPPING_ROUNDS
from lastarm.trainers.estimators.compat import like_grid_search
from lastarm.trainers.estimators.scoring import ONLY

if TYPE_CHECKING:

    class BaseEstimator:
        """scikit-learn has no types; this is what is used of it."""

        def __sklearn_tags__(self) -> Any: ...

    class MetaEstimatorMixin:
        """Says that there is an estimator inside."""

    class FitFailedWarning(RuntimeWarning):
        """Says that a model could not be fitted."""

else:
    from sklearn.base import BaseEstimator, MetaEstimatorMixin
    from sklearn.exceptions import FitFailedWarning

ARMS = 32  # if their number is not given
EXAMPLES = 256  # configs that say what a kernel has to know, where arms are chosen later
# Where no budget is given:
PULLS_AT_FIRST = 4  # of every arm
PART_OF_ALL = 5  # of training every arm fully, where it is known how far that is
# Where a pull is 1 % of the rows:
FULL_FITS = 4  # that the budget is worth
ARMS_BY_ROWS = 24  # with more, the levels of a budget that small are too low
ETA_BY_ROWS = 4  # with less, the last configs are compared by models of too few rows


class AllFitsFailed(AllArmsFailed, ValueError, TypeError):
    """No arm could be fitted. For bad data, scikit-learn's users expect one of these errors."""


class SomeFitsFailed(LastarmWarning, FitFailedWarning):
    """Some of the `configs` could not be fitted; `causes` says why, arm by arm."""

    def __init__(self, causes: Mapping[int, str], configs: int, error_score: object) -> None:
        self.causes, self.configs = dict(causes), configs
        counts = Counter(self.causes.values()).most_common(5)
        shown = "; ".join(f"{error} ({count})" for error, count in counts)
        super().__init__(
            f"{len(causes)} of {configs} configs failed, and get the score {error_score}: "
            f'{shown}. Use error_score="raise" to see the first error.'
        )


class FewConfigs(LastarmWarning):
    """The space has only `there` configs, fewer than the arms that were `asked` for."""

    def __init__(self, there: int, asked: int) -> None:
        self.there, self.asked = there, asked
        super().__init__(
            f"there are only {there} configs, fewer than n_arms={asked}: all of them are tried"
        )


class SearchStopped(LastarmWarning):
    """A search was stopped after some `pulls`, of its `budget` if it has one."""

    def __init__(self, pulls: int, budget: int | None) -> None:
        self.pulls, self.budget = pulls, budget
        of_all = f" of {budget}" if budget else ""
        super().__init__(
            f"the search was stopped after {pulls} {'pull' if pulls == 1 else 'pulls'}{of_all}; "
            "the best config so far is used"
        )


def _of_the_model(name: str, meaning: str) -> Callable[[HalvingSearch, Any], Any]:
    """A method that exists if the model has it: the best one, or before `fit` the one given."""

    def check(search: HalvingSearch) -> bool:
        _require_refit(search, name)
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    def method(self: HalvingSearch, X: Any) -> Any:
        return getattr(self._best(name), name)(X)

    method.__name__, method.__qualname__ = name, f"HalvingSearch.{name}"
    method.__doc__ = meaning
    checked: Callable[[HalvingSearch, Any], Any] = available_if(check)(method)
    return checked


def _require_refit(search: HalvingSearch, name: str) -> None:
    if not search.refit:
        raise AttributeError(
            f"`{name}` needs a model, but with refit=False there is none. Train one with "
            '`best_params_`, or use refit=True or "keep", or the name of a metric.'
        )


class HalvingSearch(OnlyKnown, MetaEstimatorMixin, BaseEstimator):
    """Finds a good config of an estimator, and trains only the best of many configs fully.

    >>> from lastarm import LogUniform
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import SGDClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> halving = HalvingSearch(SGDClassifier(), {"alpha": LogUniform(1e-6, 10)}, random_state=0)
    >>> halving.fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.8
    True
    >>> halving.n_candidates_, halving.n_resources_, halving.spent_.pulls
    ([32, 16, 8, 4, 2], [4, 12, 28, 60, 124], 640)

    All configs are trained a little, the best 1/eta of them are kept, and these continue from
    where they are. An estimator that cannot be trained in steps is fitted to a few of the rows,
    and the best to more of them.

    - `estimator`: any estimator with `fit`, or a Pipeline. See
      `lastarm.trainers.estimators.Estimator` for what a pull is.
    - `param_distributions`: maps the names of parameters to lists, or to distributions of lastarm
      or scipy.
    - `n_arms`: the number of configs to try. Left out, it is 32, and 24 by rows. If there are
      fewer, all are tried, with a warning. If it is left out and the `budget` is at least ten
      times `max_pulls`, configs are chosen as the search goes, by what is known of those before
      (`Brackets` and `GaussianProcess`). With `seconds` and no `budget`, as many are tried as
      there is time for if it is left out.
    - `budget`: the total number of pulls over all configs: passes over the data, trees or
      iterations. Left out, it is 4 · n_arms · ⌈log n_arms⌉ to the base eta, so that every config
      has 4 pulls at first; with `max_pulls` it is a fifth of what training all configs takes. By
      rows it is 400, as much as four fits to all rows that models learn from.
    - `max_pulls`: the most pulls that one config is worth, if that is known. With it, the default
      policy is `HorizonHalving`, which then finds better configs; without it, it is the paper's
      `SuccessiveHalving`.
    - `resource`: what pulls are. "rows" fits a model anew at each level, to b % of the rows after
      b pulls. Then `max_pulls` is at most 100, and 100 if it is left out. Left out, pulls are
      passes, trees or iterations; if the estimator has none of these, they are rows, with a
      warning.
    - `policy`: the name of another policy, which gets these numbers (`max_pulls` left out means an
      even share of the budget among the rungs), or a policy with numbers of its own, and then
      none of these numbers may be given.
    - `eta`: the best 1/eta of a rung are kept. Left out, it is 2, or the default of `policy`; by
      rows and without a `policy` it is 4.
    - `validation`: the share of the rows that configs are judged by.
    - `cv`: folds to judge configs by, instead of `validation`: their number, for the folds that
      `GridSearchCV` makes; any splitter of scikit-learn, such as `GroupKFold` or
      `TimeSeriesSplit`; or pairs of rows. A pull then trains the models of all folds.
    - `scoring`: the name of a scorer, or a function of (estimator, X, y). Left out, it is the
      estimator's own `score`. For several metrics it is a list of names, a dict of names and
      scorers, or a function that returns a dict.
    - `refit`: with True the best config is trained on all rows, with as many pulls as it had in
      the search; "keep" keeps the model that the search trained, at no further cost; with False
      there is no model. With several metrics, the name of one of them says that configs are
      compared by it, and the best is trained on all rows; with False or "keep" configs are
      compared by the first.
    - `recommend`: "latest" recommends the config that the policy found, after all its pulls;
      "best" the best state that was seen of any config, with the pulls that it had then. Left
      out, it is "best" for gradient boosting, which overfits, and else "latest".
    - `return_train_score`: whether `cv_results_` has the scores on the training rows.
    - `seconds`: stop after this time, with the best config so far. Without a budget it is the
      budget: the search measures what pulls take, and plans for this time (`TimedHalving`).
    - `journal`: a file that remembers the search. After a crash the same `fit` resumes it. The
      journal of a search with other rows or settings is refused.
    - `fresh`: whether each `fit` starts again with a new journal. One that is there is kept as
      `journal`.old-1 (or -2, and so on).
    - `n_jobs`: the number of worker processes, or of threads in the kernel; −1 means one for each
      core. It does not change the answer.
    - `random_state`: all randomness is derived from it. None takes the seed of the journal, or 0
      for a new one; without a journal, NumPy's global randomness.
    - `error_score`: the score of configs that raise; with "raise" their error ends the search.
    - `verbose`: whether to show progress.
    - `watch`: whether to show the search on a page while it runs, which takes a `journal` outside
      of notebooks. "open" also opens it in a browser.

    No rows are set apart for a final test: keep some of your own.

    All configs of an SGDClassifier or SGDRegressor (or of a Pipeline that ends in one) advance
    together in one kernel, which needs `lastarm[batched]`. It supports every loss of a classifier
    except those for regression, and the squared error of a regressor; the l2 penalty or none;
    constant, inverse-scaling and "optimal" learning rates; and dense rows. It makes the same steps
    as scikit-learn, over rows in an order that all configs share. Other configs are trained one at
    a time, and `verbose` says why. Ctrl-C ends the search with the best config so far, and with a
    warning.

    After `fit` there are `best_params_`, `best_score_` (higher is better), `best_index_`,
    `best_estimator_`, `scorer_`, `n_splits_`, `refit_time_`, `multimetric_` and `cv_results_`, as
    in scikit-learn's own searches; `classes_`, `n_features_in_` and `feature_names_in_` of the
    model; and

    - `n_resources_`: the numbers of pulls at which configs were compared.
    - `n_candidates_`: how many configs were compared at each.
    - `n_iterations_`: how many such numbers there are.
    - `spent_`: what the search cost.
    - `result_`: the whole result.

    Row i of `cv_results_` is arm i as it was observed last: after `n_resources` pulls in all, at
    place `iter` of `n_resources_` (0 and −1 if it was never pulled). The ranks put the recommended
    arm first, then arms with more pulls, and compare scores only among arms with equal pulls. With
    `recommend="best"`, row i is arm i when its score was best, and all scores are compared. The
    times are totals of the arm so far, divided by the number of folds. With several metrics there
    are columns for each, such as `mean_test_roc_auc`.
    """

    def __init__(
        self,
        estimator: Any,
        param_distributions: Space,
        *,
        n_arms: int | None = None,
        budget: int | None = None,
        max_pulls: int | None = None,
        resource: Literal["rows"] | None = None,
        policy: Policy | str | None = None,
        eta: Number | None = None,
        validation: float = 0.2,
        cv: Any = None,
        scoring: Any = None,
        refit: bool | str = True,
        recommend: Literal["latest", "best"] | None = None,
        return_train_score: bool = False,
        seconds: float | None = None,
        journal: str | Path | None = None,
        fresh: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        error_score: float | Literal["raise"] = nan,
        verbose: int = 0,
        watch: bool | Literal["open"] = False,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_arms = n_arms
        self.budget = budget
        self.max_pulls = max_pulls
        self.resource = resource
        self.policy = policy
        self.eta = eta
        self.validation = validation
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.recommend = recommend
        self.return_train_score = return_train_score
        self.seconds = seconds
        self.journal = journal
        self.fresh = fresh
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.error_score = error_score
        self.verbose = verbose
        self.watch = watch

    def fit(self, X: Any, y: Any = None, **params: Any) -> HalvingSearch:
        """Search, and then train the best config on all rows, unless `refit` says otherwise.

        - `X`, `y`: the rows and their targets.
        - `params`: `sample_weight`, a weight for each row; `groups`, a label for each row that
          keeps rows with one label together, or is given to the splitter; and other parameters
          of the estimator's `fit`. They go where scikit-learn's `GridSearchCV` sends them, also
          with metadata routing. Without it, a Pipeline takes `step__sample_weight`.
        """
        self._check_choices()
        seed = self._seed()
        trainer = self._trainer(X, y, params, seed)
        scorers = trainer.metrics.scorers
        self.scorer_ = scorers or check_scoring(self.estimator, scoring=self.scoring)
        workers = 1 if self.n_jobs is None else self.n_jobs
        if workers < 0:
            workers = max(1, (os.cpu_count() or 1) + 1 + workers)
        workers = whole_number("n_jobs", workers, 1, "how many configs are trained at a time")
        trainer.expect(examples(self.param_distributions))
        chosen, configs = self._policy_and_configs(seed, trainer)
        as_it_goes = _begins_as_it_goes(chosen)
        _warn_of_stopping(trainer, configs)
        train_scores = bool(self.return_train_score)
        arms: Trainer[Any] | BatchedTrainer[Any, Any]
        arms = FoldByFold(trainer, train_scores=train_scores)
        batched = batched_sgd_or_reason(
            trainer, configs, threads=workers, train_scores=train_scores
        )
        if not isinstance(batched, str):
            arms, workers = batched, 1  # the threads share the time of one worker
        elif self.verbose:
            print(f"HalvingSearch trains one setting at a time: {batched}")
        if isinstance(self.policy, str | None) and getattr(chosen.policy, "has_no_budget", False):
            chosen = chosen._replace(policy=unasked(chosen.policy, at_once=workers))
        recommend = self.recommend or ("best" if trainer.boosts else "latest")
        self.result_, told = searched(
            arms,
            chosen,
            self.param_distributions if as_it_goes else Configs(configs),
            seed=seed,
            sampler=usual_sampler(chosen),
            workers=workers,
            error_score=self.error_score,
            progress=bool(self.verbose),
            recommend=recommend,
            journal=self.journal,
            fresh=self.fresh,
            watch=self.watch,
        )
        configs = (
            [dict(one) for one in self.result_.configs] if as_it_goes else configs[: len(told)]
        )
        self.multimetric_ = trainer.metrics.metric is not None
        self._note_found(configs, told, trainer.metrics.compared, at_best=recommend == "best")
        if self.refit:
            began, pulls = perf_counter(), int(self.cv_results_["n_resources"][self.best_index_])
            config, own_seed = configs[self.best_index_], arm_seed(seed, self.best_index_)
            if self.refit == "keep":
                # A state that cannot be pickled was lost with its worker: train it again.
                state = self.result_.state or trained_alone(arms, config, own_seed, pulls)
                self.best_estimator_ = state.model
            else:
                trains = trainer if isinstance(batched, str) else batched
                self.best_estimator_ = trains.on_all_rows(config, own_seed, pulls)
            self.refit_time_ = perf_counter() - began
        return self

    def _trainer(self, X: Any, y: Any, params: dict[str, Any], seed: int) -> Estimator:
        """What trains and scores the configs on these rows."""
        y = None if y is None else np.asarray(y)
        if np.shape(y)[1:] == (1,) and not get_tags(self.estimator).target_tags.multi_output:
            y = column_or_1d(y, warn=True)
        beside = {name: params.pop(name, None) for name in ("sample_weight", "groups")}
        cv = self.cv
        if isinstance(cv, Integral):
            cv = whole_number("cv", cv, 2, "the number of folds")
            if beside["groups"] is None:  # the folds of GridSearchCV, which would ignore groups
                cv = check_cv(cv, y, classifier=is_classifier(self.estimator))
        trainer = Estimator(
            self.estimator,
            X,
            y,
            test=0,
            validation=self.validation,
            cv=cv,
            scoring="score" if self.scoring is None else self.scoring,
            metric=self._metric(),
            **beside,
            fit_params=params,
            resource=self.resource,
            seed=seed,
        )
        self.n_splits_ = len(trainer.splits)
        if self.refit == "keep" and self.n_splits_ > 1:
            rule = f"there are {self.n_splits_} folds, each with a model of its own"
            way_out = "Use refit=True, or `validation` instead of `cv`"
            raise InvalidArgument.of("refit", self.refit, rule, way_out)
        return trainer

    def _note_found(
        self,
        configs: list[dict[str, Any]],
        told: list[list[Loss | Failure]],
        metric: str,
        *,
        at_best: bool,
    ) -> None:
        """Set the attributes that say what was found, and what it took."""
        best = self.result_.arm
        assert best is not None
        self.spent_ = self.result_.spent
        self.best_index_ = best
        self.best_params_ = dict(configs[best])
        levels = Counter(event.pull.upto for events in told for event in events)
        self.n_resources_ = sorted(levels)
        self.n_candidates_ = [levels[level] for level in self.n_resources_]
        self.n_iterations_ = len(levels)
        self.cv_results_ = cv_results(
            configs,
            told,
            best=best,
            metric=metric,
            at_best=at_best,
            levels=self.n_resources_,
            n_splits=self.n_splits_,
            error_score=self.error_score,
        )
        self.best_score_ = float(self.cv_results_[f"mean_test_{metric}"][best])

    predict = _of_the_model("predict", "What the best model predicts.")
    predict_proba = _of_the_model(
        "predict_proba", "The probabilities of the classes, by the best model."
    )
    predict_log_proba = _of_the_model(
        "predict_log_proba", "The logarithms of the probabilities of the classes."
    )
    decision_function = _of_the_model("decision_function", "The best model's decision function.")
    score_samples = _of_the_model("score_samples", "The best model's score of each row.")
    transform = _of_the_model("transform", "The rows as the best model transforms them.")
    inverse_transform = _of_the_model(
        "inverse_transform", "The rows that the best model would transform into these."
    )

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """The score of the best model on these rows: higher is better.

        - `X`, `y`: the rows and their targets.
        - `params`: what the scorer gets beside them, such as `sample_weight`, where metadata
          routing is enabled.
        """
        best, rows = self._best("score"), (X,) if y is None else (X, y)
        if params and not get_config()["enable_metadata_routing"]:
            name, value = next(iter(params.items()))
            rule = "without metadata routing, the scorer gets nothing but the rows"
            way_out = "Leave it out, or call sklearn.set_config(enable_metadata_routing=True)"
            raise InvalidArgument.of(name, value, rule, way_out)
        if params:
            params = dict(process_routing(self, "score", **params).scorer["score"])
        metric = self._metric() or ONLY
        scorer = self.scorer_[metric] if isinstance(self.scorer_, dict) else self.scorer_
        found = scorer(best, *rows, **params)
        return float(found[metric] if isinstance(found, dict) else found)

    def get_metadata_routing(self) -> Any:
        """Where metadata go, as in scikit-learn's own searches."""
        return self._like_grid_search().get_metadata_routing()

    def _like_grid_search(self) -> Any:
        splitter = self.cv if hasattr(self.cv, "split") else None
        return like_grid_search(
            self.estimator, scoring=self.scoring, metric=self._metric(), cv=splitter
        )

    @property
    def classes_(self) -> Any:
        """The classes that the best model knows."""
        return self._best("classes_").classes_

    @property
    def n_features_in_(self) -> int:
        """How many features there are."""
        number: int = self._best("n_features_in_").n_features_in_
        return number

    @property
    def feature_names_in_(self) -> Any:
        """Their names, where they have any."""
        return self._best("feature_names_in_").feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), deepcopy(get_tags(self.estimator))
        for kind in ("target", "transformer", "classifier", "regressor", "input"):
            setattr(tags, f"{kind}_tags", getattr(inner, f"{kind}_tags"))
        for name in ("estimator_type", "no_validation", "non_deterministic"):
            setattr(tags, name, getattr(inner, name))
        return tags

    def _best(self, name: str) -> Any:
        _require_refit(self, name)
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def _metric(self) -> str | None:
        """The name of the metric that configs are compared by, if there are several."""
        named = isinstance(self.refit, str) and self.refit != "keep"
        if isinstance(self.scoring, list | tuple | dict):
            return str(self.refit) if named else next(iter(self.scoring), None)
        return str(self.refit) if named and callable(self.scoring) else None

    def _seed(self) -> int:
        """What all randomness is derived from."""
        seed = self.random_state
        if seed is None and self.journal is not None:
            if not isinstance(self.journal, str | Path):
                rule, way_out = "it is a file", "Use the path of a file"
                raise InvalidArgument.of("journal", self.journal, rule, way_out)
            known = os.path.lexists(self.journal) and not self.fresh
            opened = read(self.journal)[0] if known else None
            return opened.seed if isinstance(opened, Opened) else 0
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(2**31 - 1)
        return whole_number("random_state", seed, 0, "what all randomness is derived from")

    def _check_choices(self) -> None:
        scoring, error_score = self.scoring, self.error_score
        several = isinstance(scoring, list | tuple | dict)
        metrics = [repr(name) for name in scoring] if several else []
        if several and (self.refit is True or self.refit not in (False, "keep", *scoring)):
            rule = "with several metrics, it is the name of the one that configs are compared by"
            way_out = f'Use {" or ".join(metrics)}; or False or "keep" for the first of them'
            raise InvalidArgument.of("refit", self.refit, rule, way_out)
        known = (True, False, "keep", *([scoring] if isinstance(scoring, str) else []))
        if not several and not callable(scoring) and self.refit not in known:
            rule = "it says which model there is after the search"
            way_out = 'Use True to train on all rows, "keep" for the model of the search, or False'
            raise InvalidArgument.of("refit", self.refit, rule, way_out)
        if not isinstance(self.refit, bool | str):
            rule, way_out = "it is not a name", 'Use True, "keep", False or the name of a metric'
            raise InvalidArgument.of("refit", self.refit, rule, way_out)
        score = isinstance(error_score, Real) and not overflows(error_score)
        if error_score != "raise" and not score:
            rule, way_out = "it is the score of configs that fail", 'Use a number, or "raise"'
            raise InvalidArgument.of("error_score", error_score, rule, way_out)
        if not (isinstance(scoring, str | None) or callable(scoring) or several):
            way_out = "Use the name of a scorer, a function of (estimator, X, y), or a list or "
            way_out += "dict of scorers"
            rule = "it says how configs are compared"
            raise InvalidArgument.of("scoring", scoring, rule, way_out)
        if self.recommend not in (None, "latest", "best"):
            rule = "it says which state is recommended"
            way_out = 'Use "latest" or "best", or leave it out'
            raise InvalidArgument.of("recommend", self.recommend, rule, way_out)

    def _policy_and_configs(
        self, seed: int, trainer: Estimator
    ) -> tuple[Picked, list[dict[str, Any]]]:
        given, space, eta = self.policy, self.param_distributions, self.eta
        horizon = trainer.max_pulls
        chosen_by = partial(
            choose, given, seconds=self.seconds, restarts=trainer.restarts, horizon=horizon
        )
        numbers = {"budget": self.budget, "max_pulls": self.max_pulls, "eta": eta}
        if not isinstance(given, str | None):
            chosen = chosen_by({"n_arms": self.n_arms, **numbers})
            if _begins_as_it_goes(chosen):
                return chosen, list(drawn(space, EXAMPLES, seed, fewer=True))
            configs = _drawn(space, chosen.policy.arms, seed)
            return chosen._replace(policy=unasked(chosen.policy, arms=len(configs))), configs
        if given in (None, TimedHalving.name) and self.budget is None and self.seconds is not None:
            chosen = chosen_by({"arms": self.n_arms, **numbers}, seed=seed)
            configs = _drawn(space, chosen.policy.arms, seed, few_are_fine=self.n_arms is None)
            return chosen._replace(policy=unasked(chosen.policy, arms=len(configs))), configs
        most = self.max_pulls if horizon is None else horizon
        left_out = given is None and self.n_arms is None and not is_listed(space)
        if left_out and None not in (self.budget, most):
            chosen = choose_as_begun(
                None,
                numbers,
                journal=None if self.fresh else self.journal,
                space=space,
                seed=seed,
                seconds=self.seconds,
                restarts=trainer.restarts,
                horizon=horizon,
            )
            if chosen.chooses_arms:
                return chosen, list(drawn(space, EXAMPLES, seed, fewer=True))
        usual = ARMS if horizon is None else ARMS_BY_ROWS
        configs = _drawn(space, usual if self.n_arms is None else self.n_arms, seed)
        suggested = {"budget": FULL_FITS * (horizon or 0)}
        suggested |= {"eta": ETA_BY_ROWS} if given is None else {}
        if horizon is None:
            etas = 2 if eta is None else eta
            suggested = _suggested(len(configs), self.budget, self.max_pulls, etas)
        chosen = chosen_by({"arms": len(configs), **numbers}, seed=seed, suggested=suggested)
        return chosen, configs


def _begins_as_it_goes(chosen: Picked) -> bool:
    """Whether settings are drawn or chosen as long as there is budget, in no fixed number."""
    return grows(chosen.policy) and chosen.policy.open_ended


def _suggested(
    arms: int, budget: int | None, max_pulls: int | None, eta: Number
) -> dict[str, int]:
    """The budget and the horizon, if they are left out: the horizon is a rung's share."""
    if max_pulls is not None:
        most = whole_number("max_pulls", max_pulls, 1, "the most pulls that one setting may get")
        return {"budget": max(1, arms * most // PART_OF_ALL)}
    eta = whole_number("eta", eta, 2, "the part of a rung that is kept, as 1/eta")
    rungs = max(1, ceil_log(arms, eta))
    budget = PULLS_AT_FIRST * arms * rungs if budget is None else budget
    budget = whole_number("budget", budget, 1, "the total of pulls over all settings")
    return {"budget": budget, "max_pulls": max(1, budget // rungs)}


def _drawn(
    space: Space, n_arms: int, seed: int, *, few_are_fine: bool = False
) -> list[dict[str, Any]]:
    """`n_arms` configs, or all configs if there are fewer."""
    n_arms = whole_number("n_arms", n_arms, 1, "how many configs are tried")
    most = size(space)
    arms = n_arms if most is None else min(n_arms, most)

    def too_many(arms: int) -> bool:
        try:
            draw(space, arms, seed)
        except InvalidArgument:
            return True
        return False

    if arms > 1 and isinstance(space, list | tuple):  # its parts may share configs
        arms = bisect_left(range(2, arms + 1), True, key=too_many) + 1
    configs = draw(space, arms, seed)
    if arms < n_arms and not few_are_fine:
        warnings.warn(FewConfigs(arms, n_arms), stacklevel=4)
    return configs


def _warn_of_stopping(trainer: Estimator, configs: list[dict[str, Any]]) -> None:
    """If a config asks for early stopping, have it said once here, not by each worker."""
    for config in configs:
        numbers = [name for name, value in config.items() if isinstance(value, Real) and value]
        given = {name.rpartition("__")[2] for name in numbers}
        if given & {*STOPPING_ROUNDS}:
            with suppress(Exception):  # an arm that cannot be started fails on its own
                trainer.start(config, seed=0)
            return


def searched(
    trainer: Trainer[Any] | BatchedTrainer[Any, Any],
    chosen: Picked,
    space: Space,
    *,
    seed: int,
    sampler: Sampler | None = None,
    workers: int,
    error_score: float | Literal["raise"],
    progress: bool,
    recommend: Literal["latest", "best"],
    journal: str | Path | None,
    fresh: bool,
    watch: bool | Literal["open"],
) -> tuple[Result, list[list[Loss | Failure]]]:
    """The result, and all losses and failures of each arm that was asked for or tried."""
    told: list[list[Loss | Failure]] = [
        [] for _ in range(0 if grows(chosen.policy) else chosen.policy.arms)
    ]
    configs: dict[int, Config] = {}
    read = read_space(space)  # once, not for each arm

    def note(event: Event) -> None:
        match event:
            case Pull(arm, config=config) if config is not None:
                configs[arm] = recalled(read, readable(dict(config))) or config
                told.extend([] for _ in range(len(told), arm + 1))
            case Failure(retried=False) if error_score == "raise":
                _raise_again(trainer, configs[event.pull.arm], seed, event)
            case Loss() | Failure(retried=False):
                told[event.pull.arm].append(event)

    try:
        result = search(
            trainer,
            space,
            policy=chosen.policy,
            sampler=sampler,
            workers=workers,
            seed=seed,
            seconds=None if isinf(chosen.seconds) else chosen.seconds,
            journal=journal,
            fresh=fresh,
            recommend=recommend,
            on_event=note,
            progress=progress,
            watch=watch,
        )
    except AllArmsFailed as error:
        raise AllFitsFailed(error.causes) from error
    except (JournalLocked, OtherSearch) as error:
        error.add_note(
            "Clones of a HalvingSearch, such as cross-validation makes, share its journal. Only "
            "the one that began it can use it: give each a journal of its own."
        )
        raise
    if result.stopped_by == signal.SIGTERM:
        signal.raise_signal(signal.SIGTERM)  # it is for the whole program, not for the search
    if result.arm is None and result.stopped_by == "seconds":
        rule = "no config had a score within that time"
        raise InvalidArgument.of("seconds", chosen.seconds, rule, "Use more, or smaller pulls")
    if result.arm is None:
        raise KeyboardInterrupt
    if not result.complete:
        warnings.warn(SearchStopped(result.spent.pulls, result.budget), stacklevel=3)
    if result.failures:
        causes = {arm: failure.error for arm, failure in result.failures.items()}
        warnings.warn(SomeFitsFailed(causes, len(told), error_score), stacklevel=3)
    if getattr(chosen.policy, "open_ended", False):  # the rest were not asked for
        told = told[: 1 + max(arm for arm, events in enumerate(told) if events)]
    return result, told


def trained_alone(
    trainer: Trainer[Any] | BatchedTrainer[Any, Any], config: Config, seed: int, pulls: int
) -> Any:
    """The state of an arm after `pulls` pulls, trained in this process, with its loss computed."""
    alone: Any = Single(cast(Any, trainer)) if is_batched(trainer) else trainer
    state = alone.train(alone.start(config, seed), pulls)
    alone.loss(state)
    return state


def _raise_again(trainer: Any, config: Config, seed: int, failure: Failure) -> None:
    """Raise the error of an arm again, by training it here: a failure holds only its text."""
    arm, upto = failure.pull.arm, failure.pull.upto
    if failure.traceback:  # else its worker died, and this process might die too
        try:
            trained_alone(trainer, config, arm_seed(seed, arm), upto)
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as end:  # which would end more than this call
            raise RuntimeError(f"{dict(config)} failed: {failure.error}") from end
    raise RuntimeError(f"{dict(config)} failed: {failure.error}\n{failure.traceback}".rstrip())
