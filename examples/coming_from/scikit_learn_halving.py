"""Halving with scikit-learn: candidates are fitted anew in every iteration."""

from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 (it is still one)
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import HalvingRandomSearchCV

search = HalvingRandomSearchCV(
    SGDClassifier(tol=None),
    {"alpha": loguniform(1e-7, 1), "loss": ["hinge", "log_loss"]},
    n_candidates=8,
    factor=2,
    resource="max_iter",
    min_resources=4,
    max_resources=32,
    cv=3,
    random_state=0,
)
search.fit(*load_digits(return_X_y=True))
print(search.best_params_, search.best_score_)
