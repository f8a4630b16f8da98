"""Tune a Keras model: one callback more.

Kill this script and run it again: the search goes on where it was, from what Keras has saved.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

from typing import Any

import keras

from lastarm import LogUniform, SuccessiveHalving, Uniform, search
from lastarm.data import digits
from lastarm.trainers.callbacks.keras import KerasReport

pixels, labels = digits()
images = pixels.astype("float32") / 16


def training(config: dict[str, Any], report: Any) -> None:
    """An ordinary `fit`, with the callback."""
    model = keras.Sequential(
        [
            keras.Input((64,)),
            keras.layers.Dense(32, "relu"),
            keras.layers.Dropout(config["dropout"]),
            keras.layers.Dense(10, "softmax"),
        ]
    )
    model.compile(keras.optimizers.Adam(config["rate"]), "sparse_categorical_crossentropy")
    model.fit(
        images[:1437],
        labels[:1437],
        batch_size=64,
        epochs=1000,
        validation_data=(images[1437:], labels[1437:]),
        verbose=0,
        callbacks=[KerasReport(report)],
    )


SPACE = {"rate": LogUniform(1e-4, 1e-1), "dropout": Uniform(0, 0.5)}
POLICY = SuccessiveHalving(arms=8, budget=72)

if __name__ == "__main__":
    print(search(training, SPACE, policy=POLICY, journal="keras.jsonl"))
