"""What is not public in scikit-learn: where its own search sends weights and other metadata.

Whether the scorers get the weights, too, depends on the version of scikit-learn, on the scorers
and on metadata routing. So the installed `GridSearchCV` is asked. No other file uses a name from
`PRIVATE`; they are in scikit-learn 1.6 to 1.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import _check_method_params

PRIVATE = ("_check_method_params", "_get_routed_params_for_fit")


class Metadata(NamedTuple):
    """What goes with the rows: to `fit`, to the splitter and to the scorers."""

    fit: dict[str, Any]
    split: dict[str, Any]
    score: dict[str, Any]


def like_grid_search(estimator: Any, *, scoring: Any, metric: str | None, cv: Any) -> Any:
    """A search of scikit-learn with these choices. Its messages call it by our name.

    - `estimator`: the estimator or Pipeline.
    - `scoring`: as `GridSearchCV` takes it.
    - `metric`: the one that arms are compared by, if there are several.
    - `cv`: a splitter, or None.
    """
    kind = type("HalvingSearch", (GridSearchCV,), {})
    return kind(estimator, {}, scoring=scoring, refit=metric or True, cv=cv)


def routed(search: Any, X: Any, params: Mapping[str, Any]) -> Metadata:
    """Where a search of scikit-learn would send what its `fit` is given beside the rows."""
    sent = search._get_routed_params_for_fit(_check_method_params(X, params=params))
    return Metadata(dict(sent.estimator.fit), dict(sent.splitter.split), dict(sent.scorer.score))


def of_rows(X: Any, params: Mapping[str, Any], rows: Any) -> dict[str, Any]:
    """The same parameters for some of the rows of X; what has no entry per row stays as it is."""
    cut: dict[str, Any] = _check_method_params(X, params=params, indices=rows) if params else {}
    return cut
