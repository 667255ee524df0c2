"""The heads: what each paper's equation gives, padding that plays no part, starts and refusals."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from halation._errors import InputError
from halation.data import Features
from halation.encoders import PartsHead, PCMEHead, PCMEPPHead, PointHead, PVSEHead, convert_pcme
from halation.encoders._pooling import AttentionPool, GeneralisedPool, masked_mean

HEADS = {
    "point": lambda: PointHead(8, 4),
    "point of local": lambda: PointHead(6, 4, source="local"),
    "point of both": lambda: PointHead(14, 4, source="both"),
    "point by attention": lambda: PointHead(8, 4, source="attended", local_dim=6, heads=3),
    "pcme": lambda: PCMEHead(8, 6, 4),
    "pcme of words": lambda: PCMEHead(8, 6, 4, "gru", "gru"),
    "pcme++": lambda: PCMEPPHead(8, 6, 4),
    "pcme++ mean": lambda: PCMEPPHead(8, 6, 4, "mean"),
    "pcme++ max": lambda: PCMEPPHead(8, 6, 4, "max", scale=0.01),
    "pvse": lambda: PVSEHead(8, 6, 4, 3),
    "pvse of words": lambda: PVSEHead(8, 6, 4, 2, "gru"),
    "parts": lambda: PartsHead(6, 4),
}


def features(cells: int = 5, seed: int = 0) -> Features:
    draw = torch.Generator().manual_seed(seed)
    return Features(torch.randn(3, 8, generator=draw), torch.randn(3, cells, 6, generator=draw))


def numbers(out: Any) -> list[Tensor]:
    """The tensors of whatever a head gives, padding left out."""
    if hasattr(out, "log_var"):
        return [out.mean] if out.log_var is None else [out.mean, out.log_var]
    if hasattr(out, "points"):
        return [out.points, out.residuals]
    return [out.local if out.mask is None else out.local[out.mask]]


def test_the_image_head_of_pcme_equals_the_published_one(shared_golden: Path) -> None:
    golden = np.load(shared_golden / "pcme_heads.npz")
    published = {k[7:]: torch.from_numpy(golden[k]) for k in golden.files if k.startswith("img/sd/")}
    head = PCMEHead(64, 64, 32)
    converted = convert_pcme({f"img_enc.{k}": v for k, v in published.items()}, parts=("image",))
    head.load_state_dict(converted["image_head"])
    x = torch.from_numpy(golden["img/in_7x7"]).flatten(2).transpose(1, 2)  # (3, 49, 64)
    out = head(Features(x.mean(dim=1), x))
    assert out.log_var is not None
    np.testing.assert_allclose(out.mean.detach(), golden["img/mu"], atol=2e-7)
    np.testing.assert_allclose(out.log_var.detach() / 2, golden["img/out_logsigma"], atol=1e-6)
    _, attention = head.mean_attention(x)
    np.testing.assert_allclose(attention[:, 0].detach(), golden["img/out_attention"][..., 0], atol=1e-7)
    samples = out.sample_from(torch.from_numpy(golden["img/eps"]))
    np.testing.assert_allclose(samples.detach(), golden["img/out_embedding"], atol=1e-5)
    loss = (out.mean * torch.linspace(-1, 1, 32)).sum() + (out.log_var / 2).square().mean()
    assert loss.item() == pytest.approx(float(golden["img/test_loss"]), rel=1e-6)
    loss.backward()
    gradients = {f"img_enc.{k[9:]}": torch.from_numpy(golden[k]) for k in golden.files if k.startswith("img/grad/")}
    expected = convert_pcme(gradients, parts=("image",))["image_head"]
    for name, parameter in head.named_parameters():
        assert parameter.grad is not None
        error = (parameter.grad - expected[name]).abs().max() / expected[name].abs().max()
        assert error < 5e-6, name


@pytest.mark.parametrize("name", HEADS)
def test_padding_changes_nothing_and_every_parameter_learns(name: str) -> None:
    torch.manual_seed(0)
    head = HEADS[name]()
    plain = features()
    local = plain.local
    assert local is not None
    padded = torch.cat([local, torch.full((3, 4, 6), 77.0)], dim=1)
    mask = torch.arange(9).expand(3, 9) < 5
    for a, b in zip(numbers(head(plain)), numbers(head(Features(plain.pooled, padded, mask))), strict=True):
        torch.testing.assert_close(a.reshape(b.shape), b, atol=1e-5, rtol=1e-5)
    sum((x * torch.randn(x.shape)).sum() for x in numbers(head(Features(plain.pooled, padded, mask)))).backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in head.parameters())


@pytest.mark.parametrize("name", ["point", "pcme", "pcme++", "pvse", "parts"])
def test_what_a_head_calls_a_place_has_length_one(name: str) -> None:
    points = numbers(HEADS[name]()(features()))[0]
    torch.testing.assert_close(points.norm(dim=-1), torch.ones(points.shape[:-1]))


def test_a_point_is_a_linear_map_of_length_one_and_dropout_acts_in_training_alone() -> None:
    head, seen = PointHead(8, 4, dropout=0.5), features()
    expected = normalize(seen.pooled @ head.fc.weight.T + head.fc.bias, dim=1)
    torch.testing.assert_close(head.eval()(seen).mean, expected)
    assert head(seen).is_point
    assert not torch.equal(head.train()(seen).mean, expected)
    both = PointHead(14, 4, source="both")
    wide = Features(torch.cat([seen.pooled, masked_mean(seen.local, None)], dim=1))  # type: ignore[arg-type]
    torch.testing.assert_close(both(seen).mean, normalize(both.fc(wide.pooled), dim=1))


def test_the_point_heads_attention_is_its_formula() -> None:
    head, seen = PointHead(8, 4, source="attended", local_dim=6, heads=2), features()
    assert seen.local is not None
    for item in range(len(seen.pooled)):
        x = [seen.pooled[item]]
        for query in head.queries.weight:
            weights = torch.stack([(query @ cell).exp() for cell in seen.local[item]])
            x.append(sum(w * cell for w, cell in zip(weights / weights.sum(), seen.local[item], strict=True)))
        expected = normalize(head.fc(torch.cat(x))[None], dim=1)[0]
        torch.testing.assert_close(head(seen).mean[item], expected)


def test_pcme_without_local_features_keeps_the_norm_and_the_linear_spread() -> None:
    head, seen = PCMEHead(8, 0, 4), features()
    out = head(Features(seen.pooled))
    assert out.log_var is not None
    summary, spread = head.summary(seen), head.spread(seen)
    torch.testing.assert_close(out.mean, normalize(head.mean_norm(summary), dim=1))
    torch.testing.assert_close(out.log_var, 2 * spread)


def test_a_given_summary_is_the_pooled_vector_and_any_module_may_stand_in() -> None:
    class Ones(nn.Module):
        def forward(self, features: Features) -> Tensor:
            return torch.ones(len(features.pooled), 4)

    seen = Features(features().pooled[:, :4])
    out = PCMEHead(4, 0, 4, "given", Ones())(seen)
    torch.testing.assert_close(out.mean, normalize(nn.LayerNorm(4)(seen.pooled), dim=1))
    assert out.log_var is not None and (out.log_var == 2).all()


@pytest.mark.parametrize("kind", ["pooled", "gru"])
def test_log_sigma_sets_where_the_spread_starts(kind: Any) -> None:
    torch.manual_seed(0)
    head = PCMEHead(8, 6, 64, kind, kind, log_sigma=-3.0)
    assert math.log(head(features()).uncertainty().mean().item()) == pytest.approx(-3, abs=0.2)
    start = PCMEPPHead(8, 6, 64, log_var=-math.log(64))
    assert start(features()).var.sum(dim=1).mean().item() == pytest.approx(1, rel=1.5)


def test_pvse_with_one_embedding_is_the_mean_of_pcme() -> None:
    torch.manual_seed(0)
    pcme, pvse, seen = PCMEHead(8, 6, 4), PVSEHead(8, 6, 4, 1), features()
    weights = pcme.state_dict()
    names = {"summary": "summary", "attention": "mean_attention", "fc": "mean_fc", "norm": "mean_norm"}
    pvse.load_state_dict({k: weights[k.replace(k.split(".")[0], names[k.split(".")[0]], 1)] for k in pvse.state_dict()})
    torch.testing.assert_close(pvse(seen).points[:, 0], pcme(seen).mean)
    several = PVSEHead(8, 6, 4, 3)(seen)
    assert (several.residuals > 0).all() and (several.residuals < 1).all()
    assert not torch.allclose(several.points[:, 0], several.points[:, 1])


def test_attention_is_a_softmax_over_the_real_cells() -> None:
    pool, x = AttentionPool(6, hidden=3, heads=2), features().local
    assert x is not None
    mask = torch.tensor([[True] * 5, [True, False, True, False, False], [False, False, False, False, True]])
    means, weights = pool(x, mask)
    for i in range(3):
        cells = x[i][mask[i]]
        expected = torch.softmax(torch.tanh(cells @ pool.w1.weight.T) @ pool.w2.weight.T, dim=0)  # (cells, 2)
        torch.testing.assert_close(weights[i][:, mask[i]].T, expected)
        torch.testing.assert_close(means[i], expected.T @ cells)
    assert (weights[~mask.unsqueeze(1).expand(-1, 2, -1)] == 0).all()


def test_generalised_pooling_equals_a_loop_over_its_definition() -> None:
    torch.manual_seed(1)
    pool, x = GeneralisedPool(8, 4), torch.randn(3, 5, 2)
    mask = torch.tensor([[True] * 5, [True, False, True, False, True], [False, True, False, False, False]])
    got = pool(x, mask)
    for i in range(3):
        n = int(mask[i].sum())
        angles = [[p / 10000 ** (2 * j / 8) for j in range(4)] for p in range(n)]
        places = torch.tensor([[f(a) for a in row for f in (math.sin, math.cos)] for row in angles])
        states = pool.gru(places[None])[0][0]
        logits = pool.linear((states[:, :4] + states[:, 4:]) / 2)[:, 0]
        falling = x[i][mask[i]].sort(dim=0, descending=True).values
        torch.testing.assert_close(got[i], (logits / 0.1).softmax(0) @ falling)


def test_parts_keep_their_mask_and_may_keep_their_vectors() -> None:
    seen = features()
    mask = torch.rand(3, 5, generator=torch.Generator().manual_seed(0)) < 0.5
    parts = PartsHead(6)(seen._replace(mask=mask))
    assert parts.mask is mask
    torch.testing.assert_close(parts.local, normalize(seen.local, dim=2))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PointHead(8, 4, source="pool"), "did you mean 'pooled'"),
        (lambda: PointHead(8, 4, source="attended"), "attention needs local features"),
        (lambda: PCMEHead(8, 0, 4, "gru"), "local_dim is 0"),
        (lambda: PCMEHead(8, 6, 4, "given"), "pooled_dim = dim"),
        (lambda: PCMEHead(8, 6, 4)(Features(torch.ones(1, 8))), "only the pooled vector"),
        (lambda: PCMEPPHead(8, 6, 4, "gpa"), "unknown pool"),
        (lambda: PVSEHead(8, 0, 4), "local_dim"),
        (lambda: PCMEHead(4, 0, 4, "given", "given", log_sigma=-1.0), "spread has no linear map"),
    ],
)
def test_what_cannot_be_built_is_refused_by_name(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_pcme_drops_a_channel_of_all_cells_together_and_keeps_the_others_whole() -> None:
    head, seen = PCMEHead(8, 6, 4, dropout=0.5), Features(torch.ones(40, 8), torch.ones(40, 5, 6))
    torch.manual_seed(0)
    dropped = head._drop_channels(seen).local
    assert dropped is not None
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert set(dropped.flatten().tolist()) == {0.0, 2.0}
    assert len({tuple(row.tolist()) for row in dropped[:, 0]}) > 10  # another for each item
    assert torch.equal(head.eval()._drop_channels(seen).local, seen.local)
