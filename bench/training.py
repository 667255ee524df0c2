"""Where the time of a training step goes, at B = 128 on features; and two processes against one.

The data are made up, so that the benchmark needs no download, but have the shape of Flickr8k: 1,280 numbers per image
and five captions of about eleven words. Shares are of the time of whole steps of the same run.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bench.results import Row
from halation.data import Batches
from halation.encoders import Vocabulary, build_network, loader_for, open_split
from halation.training import (
    Objective,
    Recipe,
    Step,
    build_objective,
    parse_recipe,
)

B, STEPS, IMAGES, WORDS = 128, 40, 2000, 4000
RECIPE = """
name = "bench"
[data]
features = "features"
[text]
dim = 100
min_count = 1
[model]
dim = 512
dropout = 0.5
[loss.infonce]
weight = 1.0
[loss.daa]
weight = 5.0
[train]
epochs = 2
batch_size = 128
"""


def run() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = write_data(Path(name))
        yield from _shares(folder)
        yield from _direct(folder)
        yield from _processes(folder)


def write_data(folder: Path) -> Path:
    """A made-up dataset whose words follow Zipf's law, as real ones do."""
    generator = np.random.default_rng(0)
    chances = 1 / np.arange(1, WORDS + 1)
    chances /= chances.sum()
    names = []
    for split, size in (("train", IMAGES), ("dev", 200)):
        lines = []
        for number in range(size):
            names.append(f"{split}{number}.jpg")
            drawn = generator.choice(WORDS, size=(5, 11), p=chances)
            captions = [" ".join(f"w{word}" for word in row) for row in drawn]
            lines.append(json.dumps({"image": names[-1], "captions": captions}) + "\n")
        (folder / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "features").mkdir()
    np.save(folder / "features" / "pooled.npy", generator.random((len(names), 1280)).astype(np.float16))
    (folder / "features" / "images.txt").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    return folder


class Timed:
    """Seconds by name."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def __call__(self, name: str, work: Callable[[], Tensor]) -> Tensor:
        start = time.perf_counter()
        result = work()
        self.spent[name] = self.spent.get(name, 0.0) + time.perf_counter() - start
        return result


def _prepared(folder: Path, *settings: str) -> tuple[Objective, Iterator, Recipe]:  # type: ignore[type-arg]
    recipe = parse_recipe(RECIPE, settings)
    data = open_split(recipe, folder, "train")
    vocabulary = Vocabulary.build(data.captions, min_count=1)
    model = build_network(recipe, vocabulary, (1280, 0))
    loader = loader_for(model, data)
    return build_objective(recipe, model, data), loader.epoch(Batches(data, B, seed=0), 0), recipe


def _shares(folder: Path) -> Iterator[Row]:
    objective, batches, recipe = _prepared(folder)
    optimizer = torch.optim.AdamW(objective.parameters(), lr=1e-3)
    timed = Timed()
    for number in range(STEPS + 5):
        if number == 5:  # kernels are compiled, memory is warm
            timed.spent.clear()
            started = time.perf_counter()
        start = time.perf_counter()
        batch, items = next(batches)
        loading = time.perf_counter() - start
        timed.spent["data loading"] = timed.spent.get("data loading", 0.0) + loading
        images, captions = objective.model.images(items.images), objective.model.captions(items.tokens)
        relevance = timed("caption relevance", lambda batch=batch: objective.relevance(batch))  # type: ignore[misc]
        matches = torch.as_tensor(batch.matches)
        step = Step(images, captions, objective.model.compare, matches, lambda r=relevance: r, 0, number)  # type: ignore[misc]
        base = objective.terms["infonce"](step)
        scores = step.scores.detach().requires_grad_()
        alone = Step(images, captions, lambda a, b, s=scores: s, matches, lambda r=relevance: r, 0, number)  # type: ignore[misc]
        daa = timed("DAA", lambda alone=alone: _with_gradient(objective, alone))  # type: ignore[misc]
        assert scores.grad is not None
        (base + recipe.loss.daa.weight * (step.scores * scores.grad).sum()).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        assert daa.isfinite()
    whole = time.perf_counter() - started
    for name, bar in (("caption relevance", 5), ("DAA", 25), ("data loading", 10)):
        share = 100 * timed.spent[name] / whole
        each = 1e3 * timed.spent[name] / STEPS
        yield Row(
            "training",
            f"{name}, share of a step (B = {B}, features, InfoNCE + DAA)",
            f"{share:.1f} % ({each:.2f} ms of {1e3 * whole / STEPS:.1f} ms)",
            f"bar: {bar} %",
            bar / share,
            1,
        )


def _with_gradient(objective: Objective, step: Step) -> Tensor:
    loss: Tensor = objective.terms["daa"](step)
    loss.backward()
    return loss


def _direct(folder: Path) -> Iterator[Row]:
    times = {}
    for name in ("ours", "direct"):
        objective, batches, _ = _prepared(folder)
        if name == "direct":
            objective.terms["daa"] = _DirectDAA(0.02)
        optimizer = torch.optim.AdamW(objective.parameters(), lr=1e-3)
        taken = []
        for number in range(18):
            batch, items = next(batches)
            start = time.perf_counter()
            objective(batch, items.images, items.tokens, 0, number)["loss"].backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            taken.append(time.perf_counter() - start)
        times[name] = float(np.median(taken[3:]))
    steps = 30_000 // B
    yield Row(
        "training",
        f"an epoch of 30,000 pairs, B = {B}, InfoNCE + DAA",
        f"{steps * times['ours']:.1f} s",
        f"with the direct (B, B, B) DAA: {steps * times['direct']:.1f} s",
        times["direct"] / times["ours"],
    )


class _DirectDAA(torch.nn.Module):
    """DAA as its equation is written: all pairs of candidates of every query in one tensor."""

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, step: Step) -> Tensor:
        pairs = ((step.scores, step.relevance), (step.scores.T, step.relevance.T))
        return torch.stack([self._rows(scores, relevance) for scores, relevance in pairs]).sum()

    def _rows(self, scores: Tensor, relevance: Tensor) -> Tensor:
        by_score, by_meaning = self._ranks(scores), self._ranks(relevance)
        return 1 - (torch.minimum(by_score, by_meaning) / torch.maximum(by_score, by_meaning)).mean()

    def _ranks(self, x: Tensor) -> Tensor:
        return 0.5 + torch.sigmoid((x[:, None, :] - x[:, :, None]) / self.temperature).sum(dim=2)


def _processes(folder: Path) -> Iterator[Row]:
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    rates = {}
    for world in (1, 2):
        out = folder / f"run{world}"
        train = ["train", str(folder / "recipe.toml"), "--data", str(folder), "--out", str(out)]
        start = ["-m", "halation"] if world == 1 else [
            "-m", "torch.distributed.run", f"--nproc_per_node={world}", "--master_addr=127.0.0.1",
            f"--master_port={_free_port()}", "-m", "halation",
        ]  # fmt: skip
        env = os.environ | {"OMP_NUM_THREADS": "1", "HALATION_THREADS": "1"}
        subprocess.run([sys.executable, *start, *train], check=True, capture_output=True, env=env, timeout=600)
        seconds = json.loads((out / "run.json").read_text())["seconds"]
        rates[world] = 2 * (IMAGES * 5 // B * B) / seconds
    yield Row(
        "training",
        "pairs per second, two processes (gloo) of one thread each, validation included",
        f"{rates[2]:,.0f} pairs/s",
        f"one process of one thread: {rates[1]:,.0f} pairs/s",
        rates[2] / rates[1],
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
