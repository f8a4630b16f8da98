"""Tune LightGBM: boosters go on from their own trees, so that no tree is grown twice.

A pull is five trees. XGBClassifier, or scikit-learn's GradientBoostingClassifier, can stand in
place of LGBMClassifier. One tenth of the data is TEST, touched once, for the winner.
"""

from lightgbm import LGBMClassifier

from lastarm import Integer, LogUniform, SuccessiveHalving, Uniform, search
from lastarm.data import digits
from lastarm.trainers.estimators import Estimator

images, labels = digits()
trainer = Estimator(LGBMClassifier(verbose=-1), images, labels, pulls_per_step=5)

if __name__ == "__main__":
    result = search(
        trainer,
        {
            "learning_rate": LogUniform(0.01, 1),
            "num_leaves": Integer(4, 64, log=True),
            "min_child_samples": Integer(2, 50, log=True),
            "colsample_bytree": Uniform(0.3, 1),
        },
        policy=SuccessiveHalving(arms=16, budget=96),
    )
    print(result)
    print(f"{result.state.model.n_estimators} trees, {result.test_loss:.1%} of TEST misread")
