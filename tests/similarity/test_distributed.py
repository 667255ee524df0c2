"""Several processes train as one: the same losses, the same gradients, the same noise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import scipy.stats
import torch
from safetensors.torch import load_file

from halation import Gaussian, InputError
from halation.similarity import gather, keyed_noise

SCRIPT = Path(__file__).with_name("two_processes.py")


def run(sizes: list[int], folder: Path, what: str = "losses") -> list[dict[str, torch.Tensor]]:
    spread = ",".join(map(str, sizes))
    outs = [folder / f"{spread}-{rank}.safetensors" for rank in range(len(sizes))]
    workers = [
        subprocess.Popen(
            [sys.executable, SCRIPT, str(rank), spread, folder / f"meet-{spread}", out, what],
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, out in enumerate(outs)
    ]
    for worker in workers:
        _, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors
    return [load_file(out) for out in outs]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    """One process with the whole batch."""
    return run([8], tmp_path_factory.mktemp("alone"))[0]


def test_two_processes_have_the_gradients_of_one_with_the_whole_batch(
    alone: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    for together in run([5, 3], tmp_path):
        assert len([key for key in alone if key.endswith("/value")]) == 14
        assert set(alone) <= set(together)
        for key, expected in alone.items():
            scale = expected.abs().max().clamp(min=1e-3)
            assert (together[key] - expected).abs().max() <= 1e-5 * scale, key
        # parameters a loss does not reach have no gradient alone and a zero one under DistributedDataParallel
        assert all((together[key] == 0).all() for key in set(together) - set(alone))


def test_the_gradients_of_the_whole_batch_are_not_trivial(alone: dict[str, torch.Tensor]) -> None:
    for name in {key.split("/")[0] for key in alone}:
        assert any(
            (grad != 0).any() for key, grad in alone.items() if key.startswith(f"{name}/") and not key.endswith("value")
        ), name


def test_parts_that_do_not_fit_together_are_named_on_every_process(tmp_path: Path) -> None:
    """In place of a collective that hangs, or of numbers that are read as others."""
    for result in run([1, 1], tmp_path, "misfits"):
        errors = bytes(result["errors"].tolist()).decode()
        assert (
            "process 0: a tensor torch.float32 of shape (2, 3); process 1: a tensor torch.float32 of shape (2, 4)"
            in errors
        )
        assert "of shape (2, 3); process 1: a tensor torch.float32 of shape (6,)" in errors
        assert "of shape ();" in errors
        assert "a single number is gathered as x[None]" in errors
        assert "torch.float32 of shape (2, 3); process 1: a tensor torch.float64 of shape (2, 3)" in errors
        assert "a Gaussian of points torch.float32 of shape (2, 3); process 1: a Gaussian torch.float32" in errors


def test_without_other_processes_gathering_changes_nothing() -> None:
    x = torch.ones(2, 3)
    g = Gaussian.point(x)
    assert gather(x) is x
    assert gather(g) is g


def test_noise_depends_on_the_sample_and_the_seed_alone() -> None:
    whole = keyed_noise(torch.arange(10), k=3, d=4, seed=5)
    assert whole.shape == (10, 3, 4)
    order = torch.tensor([7, 2, 2, 9])
    assert torch.equal(keyed_noise(order, k=3, d=4, seed=5), whole[order])
    assert not torch.equal(keyed_noise(torch.arange(10), k=3, d=4, seed=6), whole)
    assert not torch.equal(keyed_noise(torch.arange(10), k=3, d=4, seed=5, step=1), whole)
    assert keyed_noise(torch.arange(2), 1, 1, dtype=torch.float64).dtype == torch.float64
    assert torch.isfinite(keyed_noise(torch.tensor([-1, 2**62]), 100, 100, seed=-3)).all()


def test_keyed_noise_is_standard_normal_and_independent() -> None:
    z = keyed_noise(torch.arange(100), k=10, d=100, seed=0, dtype=torch.float64)
    assert scipy.stats.kstest(z.flatten().numpy(), "norm").pvalue > 1e-3
    deviation = z.numel() ** -0.5
    for shifted in (z.roll(1, 0), z.roll(1, 1), z.roll(1, 2), keyed_noise(torch.arange(100), 10, 100, seed=1)):
        assert abs((z * shifted).mean().item()) < 4.5 * deviation


def test_one_seed_for_both_sides_would_draw_the_same_noise() -> None:
    keys = torch.arange(5)
    assert torch.equal(keyed_noise(keys, 3, 4, seed=2), keyed_noise(keys, 3, 4, seed=2))
    images, captions = (keyed_noise(keys, 200, 50, 2 * 3 + side) for side in (0, 1))
    assert abs((images * captions).mean().item()) < 0.03


def test_keys_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="whole numbers"):
        keyed_noise(torch.rand(3), 1, 1)
