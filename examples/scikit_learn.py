"""Tune a Pipeline as with scikit-learn's own searches: fit, predict, score."""

from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lastarm.sklearn import HalvingSearch

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

model = make_pipeline(StandardScaler(), SGDClassifier())
settings = {
    "sgdclassifier__loss": ["hinge", "log_loss", "modified_huber"],
    "sgdclassifier__alpha": loguniform(1e-6, 1e2),
    "sgdclassifier__average": [False, True],
}
search = HalvingSearch(model, settings, n_arms=32, budget=640, random_state=0)
search.fit(X_train, y_train)

print(f"best settings: {search.best_params_}")
print(f"the first test row shows a {search.predict(X_test[:1])[0]}")
print(f"accuracy on rows kept apart: {search.score(X_test, y_test):.3f}")
print(f"spent: {search.spent_.pulls} passes over the data, {search.spent_.train_seconds:.1f} s")
