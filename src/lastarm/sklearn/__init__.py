"""The search as one of scikit-learn's estimators: fit, then predict."""

try:
    from lastarm.sklearn.halving_search import AllFitsFailed, HalvingSearch
except ModuleNotFoundError as error:
    if error.name != "sklearn":
        raise
    raise ImportError(
        "scikit-learn is needed to search as its estimators do. Install it with "
        "pip install 'lastarm[sklearn]'."
    ) from error

__all__ = ["AllFitsFailed", "HalvingSearch"]
