"""Loss modules are ordinary modules: shown, copied, pickled, compiled, checked when they are made."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from halation import losses, similarity

MODULES: dict[str, tuple[nn.Module, str]] = {
    "DAA": (
        losses.DAA(1, relevance_temperature=0),
        "temperature=1, relevance_temperature=0, variant='paper', symmetric=True",
    ),
    "SmoothAP": (losses.SmoothAP(1), "temperature=1, symmetric=True"),
    "Triplet": (losses.Triplet(1, hardest=False), "margin=1, hardest=False, symmetric=True"),
    "InfoNCE": (losses.InfoNCE(1), "temperature=1, learn=True, symmetric=True"),
    "SigmoidPairwise": (losses.SigmoidPairwise(1, 2), "scale=1, shift=2"),
    "SoftContrastive": (losses.SoftContrastive(5, 5), "scale=5, shift=5, samples=7, variant='paper'"),
    "CSDContrastive": (
        losses.CSDContrastive(5, 5, similarity=similarity.wasserstein2),
        "scale=5, shift=5, pseudo_positives=0.1, similarity=halation.similarity.wasserstein2",
    ),
    "MIL": (losses.MIL(1), "margin=1, hardest=True"),
    "KL": (losses.KL("sum"), "reduction='sum'"),
    "Uniformity": (losses.Uniformity(3), "scale=3"),
    "Diversity": (losses.Diversity(), ""),
    "MMD": (losses.MMD(1), "gamma=1"),
    "Spread": (losses.Spread(2), "scale=2"),
}


def test_no_module_is_forgotten() -> None:
    assert set(MODULES) == {name for name in losses.__all__ if not name.islower()} - {"Others"}


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_shows_its_settings_and_takes_whole_numbers(name: str) -> None:
    module, shown = MODULES[name]
    assert repr(module) == f"{name}({shown})"
    assert all(parameter.is_floating_point() for parameter in module.parameters())


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_survives_copying_and_pickling(name: str) -> None:
    module = MODULES[name][0]
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert repr(other) == repr(module)


class Ranker(nn.Module):
    """A model that computes its loss itself, as many do."""

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.layer, self.loss = nn.Linear(6, 6), loss

    def forward(self, x: Tensor, y: Tensor, target: Tensor) -> Any:
        return self.loss(self.layer(x) @ self.layer(y).T, target)


@pytest.mark.parametrize(
    ("loss", "target"),
    [
        (losses.DAA(0.1), torch.rand(5, 5, generator=torch.Generator().manual_seed(1))),
        (losses.DAA(0.1, relevance_temperature=0), torch.rand(5, 5, generator=torch.Generator().manual_seed(1))),
        (losses.DAA(0.1, "released"), torch.rand(5, 5, generator=torch.Generator().manual_seed(1))),
        (losses.SmoothAP(0.1), torch.eye(5, dtype=torch.bool)),
        (losses.InfoNCE(), torch.eye(5, dtype=torch.bool)),
    ],
    ids=["daa", "daa with hard ranks", "daa as released", "smooth_ap", "info_nce"],
)
@pytest.mark.filterwarnings("ignore")  # what the compiler says of its own insides
def test_a_model_with_a_loss_inside_can_be_compiled(loss: nn.Module, target: Tensor) -> None:
    torch._dynamo.reset()
    model = Ranker(loss)
    x, y = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0))
    expected = model(x, y, target)
    wanted = torch.autograd.grad(expected, model.layer.weight)[0]
    compiled = torch.compile(model, backend="aot_eager")(x, y, target)
    torch.testing.assert_close(compiled, expected)
    torch.testing.assert_close(torch.autograd.grad(compiled, model.layer.weight)[0], wanted)
