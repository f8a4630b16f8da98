"""A search as an Optuna study, for its dashboard and its visualisations."""

from __future__ import annotations

import importlib
from math import isfinite, nan
from typing import Any

from lastarm.arguments import as_float
from lastarm.errors import InvalidArgument
from lastarm.plain import readable
from lastarm.report.hyperparameters import Interval, Options, as_option, domains_of
from lastarm.result import Result


def study_of(
    result: Result, storage: Any = None, name: str | None = None, level: int | None = None
) -> Any:
    """A new study with a trial for each arm, in their order: see `Result.to_optuna`."""
    try:
        optuna = importlib.import_module("optuna")
    except ImportError:
        raise InvalidArgument(
            "an Optuna study needs Optuna, which is not installed: pip install 'lastarm[optuna]'."
        ) from None
    levels = sorted({upto for curve in result.curves.values() for upto, _ in curve})
    if level is not None and level not in levels:
        some = ", ".join(f"{upto}" for upto in levels[:20])
        way_out = f"Use one of {some}, or leave it out"
        raise InvalidArgument.of("level", level, "no arm was looked at there", way_out)
    arms = sorted(result.curves.keys() | result.failures.keys())
    configs = [{_text(n): value for n, value in result.configs[arm].items()} for arm in arms]
    domains = domains_of({_text(n): d for n, d in result.space.items()}, configs)
    distributions = {name: _distribution(optuna, domain) for name, domain in domains.items()}
    trials = [
        optuna.trial.create_trial(
            params={n: _param(domains[n], value) for n, value in config.items()},
            distributions={n: distributions[n] for n in config},
            **_outcome(result, arm, levels, level, optuna.trial.TrialState),
        )
        for arm, config in zip(arms, configs, strict=True)
    ]
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # it would log the name as it is
    try:
        study = optuna.create_study(
            storage=storage,
            study_name=name,
            direction="maximize" if result.maximized else "minimize",
        )
        about = {"policy": result.policy, "digest": result.digest, "complete": result.complete}
        study.set_user_attr("lastarm", readable(about))
        study.add_trials(trials)
    except optuna.exceptions.DuplicatedStudyError:
        rule = "a study of that name is in that storage already, and is left as it is"
        way_out = "Use another name (--name), or another storage"
        raise InvalidArgument.of("name", name, rule, way_out) from None
    except Exception as error:  # whatever a storage does, a study could not be written there
        reason = " ".join(str(error).split())
        raise InvalidArgument(
            f"the study could not be written: {type(error).__name__}: {reason[:300]} Use a "
            "storage that can be written to, such as sqlite:///study.db.",
            argument="storage",
            given=storage,
        ) from error
    finally:
        optuna.logging.set_verbosity(verbosity)
    return study


def _outcome(result: Result, arm: int, levels: list[int], level: int | None, state: Any) -> Any:
    """What became of an arm, in the arguments of a trial."""
    sign = -1 if result.maximized else 1
    curve = {upto: sign * loss for upto, loss in result.curves.get(arm, [])}
    pulls, latest = result.curves[arm][-1] if curve else (result.failures[arm].pull.upto, nan)
    attributes: dict[str, Any] = {"arm": arm, "pulls": pulls}
    if metrics := result.metrics.get(arm, {}).get(pulls):
        attributes["metrics"] = readable(metrics)
    if arm == result.arm:
        attributes |= {"recommended": True, "test_loss": readable(result.test_loss)}
    outcome = {"intermediate_values": curve, "user_attrs": attributes}
    if arm in result.failures:
        attributes["error"] = result.failures[arm].error
        return {"state": state.FAIL, **outcome}
    if level is not None:
        upto = min((upto for upto in curve if upto >= level), default=pulls)
        ended, value = upto >= level, curve[upto]
        if upto > level:  # it went past that level without a look
            attributes["compared_at"] = upto
    elif arm == result.arm and result.loss is not None:
        ended, value = True, sign * result.loss
    else:
        ended, value = pulls == levels[-1], curve[pulls]
    for loss in (latest, sign * value):
        if not isfinite(loss):  # now, or at that level
            attributes["error"] = f"its loss became {loss}"
            return {"state": state.FAIL, **outcome}
    return {**outcome, "state": state.COMPLETE if ended else state.PRUNED, "value": value}


def _distribution(optuna: Any, domain: Interval | Options) -> Any:
    if isinstance(domain, Options):
        return optuna.distributions.CategoricalDistribution(domain.choices)
    low, high, log, whole = domain
    if whole:
        return optuna.distributions.IntDistribution(int(low), int(high), log=log)
    return optuna.distributions.FloatDistribution(low, high, log=log)


def _param(domain: Interval | Options, value: Any) -> Any:
    if isinstance(domain, Options):
        return as_option(value)
    return readable(value) if domain.whole else as_float(value)


def _text(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()  # no storage takes half a character
