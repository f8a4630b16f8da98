"""Tune a model that Hugging Face's `Trainer` trains: one callback more, and where to continue.

The model is tiny and begins from random weights, so that nothing has to be downloaded. Kill this
script and run it again: the search goes on where it was, from the checkpoints of the `Trainer`.
"""

import tempfile
from typing import Any

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from lastarm import LogUniform, SuccessiveHalving, Uniform, search
from lastarm.trainers.callbacks.transformers import TransformersReport

torch.set_num_threads(1)


class Sentences(Dataset[Any]):
    """Eight words of twenty; what counts is whether most of them come late in the dictionary."""

    def __init__(self, many: int, seed: int) -> None:
        words = torch.randint(20, (many, 8), generator=torch.Generator().manual_seed(seed))
        self.rows = [
            {"input_ids": sentence, "labels": int(sentence.sum() > 76)} for sentence in words
        ]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        return self.rows[index]


def training(config: dict[str, Any], report: Any, seed: int) -> None:
    """An ordinary `Trainer`, with the callback."""
    reporting = TransformersReport(report)
    torch.manual_seed(seed)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=20,
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=8,
            hidden_dropout_prob=config["dropout"],
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            learning_rate=config["rate"],
            seed=seed,
            num_train_epochs=50,
            per_device_train_batch_size=32,
            eval_strategy="epoch",
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = Trainer(
            model,
            arguments,
            train_dataset=Sentences(192, seed=0),
            eval_dataset=Sentences(64, seed=1),
            callbacks=[reporting],
        )
        trainer.train(resume_from_checkpoint=reporting.checkpoint)


SPACE = {"rate": LogUniform(1e-4, 1e-1), "dropout": Uniform(0, 0.5)}
POLICY = SuccessiveHalving(arms=8, budget=72)

if __name__ == "__main__":
    print(search(training, SPACE, policy=POLICY, journal="transformers.jsonl"))
