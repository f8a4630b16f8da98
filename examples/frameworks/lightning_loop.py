"""Tune a Lightning module: one callback more, and the checkpoint to continue from.

Kill this script and run it again: the search goes on where it was, from Lightning's checkpoints.
"""

import logging
from typing import Any

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from lastarm import LogUniform, SuccessiveHalving, Uniform, search
from lastarm.data import digits
from lastarm.trainers.callbacks.lightning import LightningReport

logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
torch.set_num_threads(1)
images, labels = digits()
rows = TensorDataset(torch.tensor(images / 16.0, dtype=torch.float32), torch.tensor(labels))
train, val = torch.utils.data.random_split(
    rows, [1437, 360], generator=torch.Generator().manual_seed(0)
)


class Digits(lightning.LightningModule):
    """A network with dropout, and a learning rate that falls."""

    def __init__(self, rate: float, dropout: float) -> None:
        super().__init__()
        self.rate = rate
        self.network = nn.Sequential(
            nn.Linear(64, 32), nn.ReLU(), nn.Dropout(dropout), nn.Linear(32, 10)
        )

    def training_step(self, batch: Any, _: int) -> Any:
        """The loss of a batch."""
        return nn.functional.cross_entropy(self.network(batch[0]), batch[1])

    def validation_step(self, batch: Any, _: int) -> None:
        """The loss on rows that are not learnt from."""
        self.log("val_loss", nn.functional.cross_entropy(self.network(batch[0]), batch[1]))

    def configure_optimizers(self) -> Any:
        """Adam, with a tenth of the rate after each five epochs."""
        optimizer = torch.optim.Adam(self.parameters(), lr=self.rate)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 5)]


def training(config: dict[str, Any], report: Any) -> None:
    """An ordinary `fit`, with the callback."""
    reporting = LightningReport(report, "val_loss")
    trainer = lightning.Trainer(
        max_epochs=-1,
        accelerator="cpu",
        callbacks=[reporting],
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
        logger=False,
    )
    trainer.fit(
        Digits(**config),
        DataLoader(train, batch_size=64, shuffle=True),
        DataLoader(val, batch_size=360),
        ckpt_path=reporting.checkpoint,
        weights_only=True,
    )


SPACE = {"rate": LogUniform(1e-4, 1e-1), "dropout": Uniform(0, 0.5)}
POLICY = SuccessiveHalving(arms=8, budget=72)

if __name__ == "__main__":
    print(search(training, SPACE, policy=POLICY, journal="lightning.jsonl"))
