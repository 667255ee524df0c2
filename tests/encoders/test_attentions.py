"""Attention as heads and scorers give it: what forward used, which adds up, and never of padding."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from halation.data import Features
from halation.encoders import SAF, SGR, SGRAF, PartEmbedding, PartsHead, PCMEHead, PCMEPPHead, PointHead, PVSEHead
from halation.encoders._pooling import GeneralisedPool, unit

HEADS = {
    "pcme": (lambda: PCMEHead(8, 6, 4), {"mean": 1, "spread": 1}),
    "pvse": (lambda: PVSEHead(8, 6, 4, k=3), {"points": 3}),
    "point": (lambda: PointHead(8, 4, source="attended", local_dim=6, heads=2), {"means": 2}),
    "pcme++": (lambda: PCMEPPHead(8, 6, 4), {"mean": 1, "spread": 1}),
    "pcme++ max": (lambda: PCMEPPHead(8, 6, 4, "max"), {"mean": 1, "spread": 1}),
    "pcme++ mean": (lambda: PCMEPPHead(8, 6, 4, "mean"), {}),
    "pcme pooled": (lambda: PCMEHead(8, 0, 4), {}),
    "point pooled": (lambda: PointHead(8, 4), {}),
    "parts": (lambda: PartsHead(6, 4), {}),
}


@pytest.fixture
def seen() -> Features:
    """Two items of five and three cells."""
    draw = torch.Generator().manual_seed(0)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    return Features(torch.randn(2, 8, generator=draw), torch.randn(2, 5, 6, generator=draw), mask)


def head(name: str) -> tuple[nn.Module, dict[str, int]]:
    torch.manual_seed(1)
    make, heads = HEADS[name]
    return make().eval(), heads


@pytest.mark.parametrize("name", HEADS)
def test_attention_adds_up_to_one_over_the_real_cells(name: str, seen: Features) -> None:
    module, heads = head(name)
    given: dict[str, Tensor] = module.attentions(seen)  # type: ignore[operator]
    assert {kind: weights.shape[1] for kind, weights in given.items()} == heads
    for weights in given.values():
        assert weights.shape == (2, weights.shape[1], 5)
        assert weights.min() >= 0 and not weights[1, :, 3:].any()
        torch.testing.assert_close(weights.sum(2), torch.ones(weights.shape[:2]))


def test_pcme_is_rebuilt_from_its_attentions(seen: Features) -> None:
    module, _ = head("pcme")
    given, local = module.attentions(seen), seen.local  # type: ignore[operator]
    mean = module.summary(seen) + torch.sigmoid(module.mean_fc((given["mean"] @ local)[:, 0]))  # type: ignore[operator]
    log_std = module.spread(seen) + module.spread_fc((given["spread"] @ local)[:, 0])  # type: ignore[operator]
    out = module(seen)
    torch.testing.assert_close(normalize(module.mean_norm(mean), dim=1), out.mean)  # type: ignore[operator]
    torch.testing.assert_close(2 * log_std, out.log_var)


def test_pvse_and_the_attending_point_are_rebuilt_from_their_attentions(seen: Features) -> None:
    module, _ = head("pvse")
    means = module.attentions(seen)["points"] @ seen.local  # type: ignore[operator]
    torch.testing.assert_close(torch.sigmoid(module.fc(means)), module(seen).residuals)  # type: ignore[operator]
    module, _ = head("point")
    means = module.attentions(seen)["means"] @ seen.local  # type: ignore[operator]
    point = module.fc(torch.cat([seen.pooled, means.flatten(1)], dim=1))  # type: ignore[operator]
    torch.testing.assert_close(normalize(point, dim=1), module(seen).mean)


def test_pooling_by_size_is_a_weighted_sum_of_the_cells(seen: Features) -> None:
    torch.manual_seed(2)
    pool = GeneralisedPool()
    for mask in (None, seen.mask):
        shares = pool.cell_weights(seen.local, mask)  # type: ignore[arg-type]
        torch.testing.assert_close(torch.einsum("bdc,bcd->bd", shares, seen.local), pool(seen.local, mask))


@pytest.mark.parametrize("name", ["pcme++", "pcme++ max"])
def test_pcmepp_attends_by_the_mean_of_its_shares(name: str, seen: Features) -> None:
    module, _ = head(name)
    mapped, out = module.mean_fc(seen.local), module.attentions(seen)["mean"]  # type: ignore[operator]
    for item, real in enumerate((5, 3)):  # one item and one dimension at a time
        total = torch.zeros(5)
        for values in mapped[item, :real].T:
            places = torch.argsort(values, descending=True)
            weights = torch.zeros(real)
            if name == "pcme++ max":
                weights[0] = 1
            else:
                weights = module.mean_pool._weights(torch.tensor([real]), real)[0]  # type: ignore[operator, union-attr]
            total[places] += weights
        torch.testing.assert_close(out[item, 0], total / 4)


@pytest.fixture
def pair() -> tuple[PartEmbedding, PartEmbedding]:
    draw = torch.Generator().manual_seed(3)
    mask = torch.tensor([[True] * 4 + [False]])
    return PartEmbedding(unit(torch.randn(1, 6, 8, generator=draw))), PartEmbedding(
        unit(torch.randn(1, 5, 8, generator=draw)), mask
    )


@torch.no_grad()
def test_saf_is_rebuilt_from_where_words_look_and_what_is_let_through(
    pair: tuple[PartEmbedding, PartEmbedding],
) -> None:
    torch.manual_seed(4)
    scorer = SAF(8, sim_dim=4, regions=6).eval()
    image, caption = pair
    regions, words = scorer.attentions(image, caption)
    spoken = caption.local[:, :4]
    context = unit(regions["each word"] @ image.local)
    whole = unit(regions["whole"] @ image.local) - unit(words["whole"] @ spoken)
    local = scorer.local_fc((context - spoken).square())
    rows = unit(torch.cat([scorer.whole_fc(whole.square()), local], dim=1))  # (1, 1 + words, S)
    gates = torch.cat([1 - words["filter"].sum(2, keepdim=True), words["filter"]], dim=2)  # the whole's is the rest
    score = torch.sigmoid(scorer.score_fc(unit(gates @ rows)))[:, 0]
    torch.testing.assert_close(score, scorer(image, caption), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", [SGR, SAF, SGRAF])
def test_scorers_attend_over_regions_and_over_the_words_there_are(
    kind: type, pair: tuple[PartEmbedding, PartEmbedding]
) -> None:
    torch.manual_seed(5)
    regions, words = kind(8, sim_dim=4, regions=None).eval().attentions(*pair)
    assert regions.pop("each word").shape == (1, 4, 6)
    assert all(weights.shape == (1, 1, 6) for weights in regions.values()) and regions
    assert all(weights.shape == (1, 1, 4) for weights in words.values()) and words
    for weights in (*regions.values(), *(w for name, w in words.items() if "filter" not in name)):
        torch.testing.assert_close(weights.sum(2), torch.ones(1, 1))
