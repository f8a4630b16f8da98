"""Hyperband with Dask-ML: models that know `partial_fit`, on a Dask cluster."""

from dask_ml.model_selection import HyperbandSearchCV
from distributed import Client
from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

if __name__ == "__main__":
    with Client(n_workers=1, threads_per_worker=2, dashboard_address=None):
        search = HyperbandSearchCV(
            SGDClassifier(),
            {"alpha": loguniform(1e-7, 1), "loss": ["hinge", "log_loss"]},
            max_iter=9,
            aggressiveness=3,
            random_state=0,
        )
        search.fit(*load_digits(return_X_y=True), classes=range(10))
    print(search.best_params_, search.best_score_)
