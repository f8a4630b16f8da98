"""Train one network by two processes, which share each batch: a program for `lastarm tune`.

It continues from what it left in the folder STATE until it has made UPTO epochs in all, and prints
its loss as the last line. The processes find each other by a file, and talk by gloo, so that this
runs on any machine; with graphics cards, use nccl and one card for each.
"""

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import distributed, multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from lastarm.data import digits

PROCESSES = 2


def train(rank: int, meet: str, options: Any) -> None:
    """What each of the processes does."""
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{meet}/here", rank=rank, world_size=PROCESSES
    )
    torch.manual_seed(options.seed)
    images, labels = digits()
    rows = TensorDataset(torch.tensor(images / 16.0, dtype=torch.float32), torch.tensor(labels))
    learnt, held_out = TensorDataset(*rows[:1437]), rows[1437:]
    network = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=options.momentum)

    epoch, file = 0, Path(options.state, "checkpoint.pt")
    if file.exists():
        saved = torch.load(file, weights_only=True)
        epoch = saved["epoch"]
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])

    sampler = DistributedSampler(learnt, seed=options.seed)  # each process has its half
    while epoch < options.upto:
        sampler.set_epoch(epoch)
        for inputs, targets in DataLoader(learnt, batch_size=32, sampler=sampler):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        epoch += 1

    if rank == 0:
        saved = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({"epoch": epoch, **saved}, file)
        with torch.no_grad():
            loss = nn.functional.cross_entropy(network(held_out[0]), held_out[1])
        print(float(loss), flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--momentum", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--upto", type=int, default=2)
    parser.add_argument("--state", default=".")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # on one machine
    with tempfile.TemporaryDirectory() as meet:
        multiprocessing.spawn(train, (meet, parser.parse_args()), nprocs=PROCESSES)
