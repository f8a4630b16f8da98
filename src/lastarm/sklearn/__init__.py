"""The search as an estimator of scikit-learn: fit, then predict.

`halving_search.py` is the estimator, and the other files are parts of it. Estimators as trainers
for `search` are in `lastarm.trainers.estimators`, which this builds on.
"""

try:
    from lastarm.sklearn.halving_search import AllFitsFailed, HalvingSearch
except ModuleNotFoundError as error:
    if error.name != "sklearn":
        raise
    raise ImportError(
        "scikit-learn is needed for HalvingSearch. Install it with pip install 'lastarm[sklearn]'."
    ) from error

__all__ = ["AllFitsFailed", "HalvingSearch"]
