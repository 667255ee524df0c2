"""AdamP against the paper's algorithm written one number at a time, and against AdamW where they must agree."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from halation._errors import InputError
from halation.training import AdamP


def slow_step(w, g, m, v, t, lr, betas, eps, decay, delta, ratio):  # type: ignore[no-untyped-def]
    """Algorithm 1 of Heo et al. on lists; projection row by row, else for the layer, else none."""
    rows, columns = len(w), len(w[0])
    m = [[betas[0] * m[i][j] + (1 - betas[0]) * g[i][j] for j in range(columns)] for i in range(rows)]
    v = [[betas[1] * v[i][j] + (1 - betas[1]) * g[i][j] ** 2 for j in range(columns)] for i in range(rows)]
    p = [
        [
            (m[i][j] / (1 - betas[0] ** t)) / (math.sqrt(v[i][j] / (1 - betas[1] ** t)) + eps)
            for j in range(columns)
        ]
        for i in range(rows)
    ]  # fmt: skip

    def dot(a, b):  # type: ignore[no-untyped-def]
        return sum(x * y for x, y in zip(a, b, strict=True))

    def cosine(a, b):  # type: ignore[no-untyped-def]
        return abs(dot(a, b)) / (math.sqrt(dot(a, a)) * math.sqrt(dot(b, b)))

    shrink = 1.0
    if max(cosine(g[i], w[i]) for i in range(rows)) < delta / math.sqrt(columns):
        shrink = ratio
        for i in range(rows):
            along = dot(p[i], w[i]) / dot(w[i], w[i])
            p[i] = [p[i][j] - along * w[i][j] for j in range(columns)]
    else:
        flat = [[number for row in x for number in row] for x in (g, w, p)]
        if cosine(flat[0], flat[1]) < delta / math.sqrt(rows * columns):
            shrink = ratio
            along = dot(flat[2], flat[1]) / dot(flat[1], flat[1])
            p = [[p[i][j] - along * w[i][j] for j in range(columns)] for i in range(rows)]
    w = [[w[i][j] * (1 - lr * decay * shrink) - lr * p[i][j] for j in range(columns)] for i in range(rows)]
    return w, m, v


@pytest.mark.parametrize("invariant", [False, True])
def test_steps_equal_the_algorithm(invariant: bool) -> None:
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(3, 5, dtype=torch.float64))
    target = torch.randn(3, 5, dtype=torch.float64)
    optimizer = AdamP([weight], lr=0.05, weight_decay=0.1)
    w, m, v = weight.tolist(), [[0.0] * 5 for _ in range(3)], [[0.0] * 5 for _ in range(3)]
    for t in range(1, 6):
        optimizer.zero_grad()
        used = nn.functional.normalize(weight, dim=1) if invariant else weight
        ((used - target) ** 2).sum().backward()
        assert weight.grad is not None
        w, m, v = slow_step(w, weight.grad.tolist(), m, v, t, 0.05, (0.9, 0.999), 1e-8, 0.1, 0.1, 0.1)
        optimizer.step()
        assert torch.allclose(weight, torch.tensor(w, dtype=torch.float64), atol=1e-9)


def test_vectors_move_as_in_adamw() -> None:
    torch.manual_seed(1)
    start = torch.randn(7)
    parameters = [nn.Parameter(start.clone()) for _ in range(2)]
    optimizers = [
        AdamP([parameters[0]], lr=0.1, weight_decay=0.2),
        torch.optim.AdamW([parameters[1]], 0.1, weight_decay=0.2),
    ]
    for _ in range(5):
        for parameter, optimizer in zip(parameters, optimizers, strict=True):
            optimizer.zero_grad()
            (parameter**3).sum().backward()
            optimizer.step()
    assert torch.allclose(*parameters, atol=1e-6)


def test_a_scale_invariant_weight_does_not_grow_as_it_does_under_adamw() -> None:
    growth = []
    for kind in (AdamP, torch.optim.AdamW):
        torch.manual_seed(2)
        weight = nn.Parameter(torch.randn(4, 16))
        optimizer = kind([weight], lr=0.1, weight_decay=0.0)
        before = weight.norm().item()
        for _ in range(50):
            optimizer.zero_grad()
            (nn.functional.normalize(weight, dim=1) @ torch.randn(16)).sum().backward()
            optimizer.step()
        growth.append(weight.norm().item() / before)
    assert growth[0] < growth[1]


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match="AdamP: lr -1"):
        AdamP([nn.Parameter(torch.zeros(1))], lr=-1)
