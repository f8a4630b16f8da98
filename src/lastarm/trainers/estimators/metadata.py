"""Weights, groups and other parameters of `fit`: for which rows and which step they are."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing

from lastarm.errors import InvalidArgument
from lastarm.trainers.estimators.family import Family


def one_per_row(name: str, values: Any, n: int) -> Any:
    """`values` as an array of one entry per row; None stays None."""
    if values is None:
        return None
    array = np.asarray(values)
    if array.shape != (n,):
        rule = f"it has the shape {array.shape}, and there are {n} rows"
        raise InvalidArgument.of(name, values, rule, "Use one entry for each row")
    return array


def for_steps(
    estimator: Any, params: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The parameters that `fit` sends to the transformers of a Pipeline, and to its last step.

    With metadata routing, the steps say what they request. Without it, the name of a parameter
    begins with that of its step. The transformers' have the names that they have in a Pipeline.
    """
    if not params or not isinstance(estimator, Pipeline):
        return {}, params
    *others, (last, _) = estimator.steps
    if get_config()["enable_metadata_routing"]:
        of_last = dict(process_routing(estimator, "fit", **params)[last]["fit"])
        if not others:
            return {}, of_last
        routing = estimator[:-1].get_metadata_routing()
        taken = routing.consumes(method="fit_transform", params=params.keys())
        return {name: params[name] for name in taken}, of_last
    for name, value in params.items():
        if name.partition("__")[0] not in dict(estimator.steps) or "__" not in name:
            rule = "without metadata routing, a Pipeline takes parameters of its steps only"
            way_out = f"Use {last}__{name.rpartition('__')[2]}, which Estimator takes among its "
            way_out += "`fit_params`; or call sklearn.set_config(enable_metadata_routing=True) "
            way_out += "and let the steps request it"
            raise InvalidArgument.of(name, value, rule, way_out)
    start = f"{last}__"
    return (
        {name: value for name, value in params.items() if not name.startswith(start)},
        {name[len(start) :]: value for name, value in params.items() if name.startswith(start)},
    )


def require_taken(model: Any, family: Family, params: Mapping[str, Any]) -> None:
    """Refuse parameters that cannot be given to the method that trains the model."""
    known = inspect.signature(getattr(model, family.method)).parameters
    anything = any(one.kind is one.VAR_KEYWORD for one in known.values())
    for name, value in params.items():
        method = f"{type(model).__name__}.{family.method}"
        if name in family.own_params:
            rule = f"it is set where a model is trained further by {method}"
            raise InvalidArgument.of(name, value, rule, "Leave it out")
        if not anything and name not in known:
            rule = f"{method}, which trains a model further, does not take it"
            taken = [one for one in known if one not in ("X", "y", *family.own_params)]
            way_out = (
                f"Leave it out, or use one of {', '.join(taken)}" if taken else "Leave it out"
            )
            raise InvalidArgument.of(name, value, rule, way_out)
