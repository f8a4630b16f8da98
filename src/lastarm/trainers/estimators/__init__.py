"""Estimators of scikit-learn, LightGBM, XGBoost and CatBoost as trainers.

`estimator.py` is the trainer: rows, folds, transformers and losses. How a model is trained a few
pulls further depends on its family; each family has a file of its own and a line in `FAMILIES`.
`family.py` says what a family is. Private names of another package belong in a `compat` file, and
models that advance many arms at once in `lastarm.batched`.
"""

try:
    from lastarm.trainers.estimators.estimator import Estimator, Fold, Trained, final_step
except ImportError as error:
    raise ImportError(
        "scikit-learn is needed to train its estimators. Install it with "
        "pip install 'lastarm[sklearn]'."
    ) from error

__all__ = ["Estimator", "Fold", "Trained", "final_step"]
