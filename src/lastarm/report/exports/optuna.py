"""A search as an Optuna study, for its dashboard and its visualisations."""

from __future__ import annotations

import importlib
from math import isfinite, nan
from typing import Any

from lastarm.arguments import as_float
from lastarm.errors import InvalidArgument
from lastarm.plain import readable
from lastarm.report.hyperparameters import Interval, Options, as_option, domains_of
from lastarm.report.seen import Seen


def study_of(
    seen: Seen, storage: Any = None, name: str | None = None, level: int | None = None
) -> Any:
    """A new study with a trial an arm, in the order of the arms: see `Result.to_optuna`."""
    try:
        optuna = importlib.import_module("optuna")
    except ImportError:
        raise InvalidArgument(
            "an Optuna study needs Optuna, which is not installed: pip install 'lastarm[optuna]'."
        ) from None
    levels = sorted({upto for curve in seen.curves.values() for upto, _ in curve})
    if level is not None and level not in levels:
        raise InvalidArgument(
            f"level={level!r} will not do: no arm was looked at there. Give one of "
            f"{', '.join(f'{upto}' for upto in levels[:20])}, or leave it out."
        )
    arms = sorted(seen.curves.keys() | seen.failures.keys())
    configs = [{_text(n): value for n, value in seen.configs[arm].items()} for arm in arms]
    domains = domains_of({_text(n): d for n, d in seen.space.items()}, configs)
    distributions = {name: _distribution(optuna, domain) for name, domain in domains.items()}
    trials = [
        optuna.trial.create_trial(
            params={n: _param(domains[n], value) for n, value in config.items()},
            distributions={n: distributions[n] for n in config},
            **_outcome(seen, arm, levels, level, optuna.trial.TrialState),
        )
        for arm, config in zip(arms, configs, strict=True)
    ]
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # it would log the name as it is
    try:
        study = optuna.create_study(
            storage=storage,
            study_name=name,
            direction="maximize" if seen.maximized else "minimize",
        )
        about = {"policy": seen.policy, "digest": seen.digest, "complete": seen.complete}
        study.set_user_attr("lastarm", readable(about))
        study.add_trials(trials)
    except optuna.exceptions.DuplicatedStudyError:
        raise InvalidArgument(
            f"a study named {name!r} is in that storage already, and is left as it is. Give "
            "another name (--name), or another storage."
        ) from None
    except Exception as error:  # whatever a storage does, a study could not be written there
        reason = " ".join(str(error).split())
        raise InvalidArgument(
            f"the study could not be written: {type(error).__name__}: {reason[:300]} Give a "
            "storage that can be written to, such as sqlite:///study.db."
        ) from error
    finally:
        optuna.logging.set_verbosity(verbosity)
    return study


def _outcome(seen: Seen, arm: int, levels: list[int], level: int | None, state: Any) -> Any:
    """What became of an arm, in the arguments of a trial."""
    sign = -1 if seen.maximized else 1
    curve = {upto: sign * loss for upto, loss in seen.curves.get(arm, [])}
    pulls, latest = seen.curves[arm][-1] if curve else (seen.failures[arm].pull.upto, nan)
    attributes: dict[str, Any] = {"arm": arm, "pulls": pulls}
    if metrics := seen.metrics.get(arm, {}).get(pulls):
        attributes["metrics"] = readable(metrics)
    if arm == seen.arm:
        attributes |= {"recommended": True, "test_loss": readable(seen.test_loss)}
    outcome = {"intermediate_values": curve, "user_attrs": attributes}
    if arm in seen.failures:
        attributes["error"] = seen.failures[arm].error
        return {"state": state.FAIL, **outcome}
    if level is not None:
        upto = min((upto for upto in curve if upto >= level), default=pulls)
        ended, value = upto >= level, curve[upto]
        if upto > level:  # it went past that level without a look
            attributes["compared_at"] = upto
    elif arm == seen.arm and seen.loss is not None:
        ended, value = True, sign * seen.loss
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
    return name.encode("utf-8", "backslashreplace").decode()  # no storage takes half a sign
