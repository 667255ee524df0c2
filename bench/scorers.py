"""SGR and SAF against a loop over captions that follows the equations, and against the rate of a matrix product."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu, linear

from bench.measuring import peak_mb, seconds
from bench.results import Row
from halation.encoders import SAF, SGR, PartEmbedding
from halation.losses import triplet

N, REGIONS, DIM, SIM, SHORT, LONG = 100, 36, 1024, 256, 8, 16  # captions of 8 to 16 words, 12 on average
REDUCED = {"regions": 49, "dim": 128, "sim": 64}


def run() -> Iterator[Row]:
    yield from _against_the_loop()
    yield from _reduced()


def unit(x: Tensor) -> Tensor:
    """x / (‖x‖ + ε) over the last dimension, as in the released code of SGRAF."""
    return x / (torch.linalg.vector_norm(x, dim=-1, keepdim=True) + 1e-8)


def loop(scorer: SGR | SAF, images: PartEmbedding, captions: PartEmbedding) -> Tensor:
    """Scores by a loop over captions, written as in the paper."""
    regions, columns = images.local, []
    whole_images = scorer.image_pool(regions)
    assert captions.mask is not None
    for caption, real in zip(captions.local, captions.mask, strict=True):
        words = caption[real][None].repeat(len(regions), 1, 1)  # (n, L, D)
        seen = leaky_relu(regions @ words.transpose(1, 2), 0.1)  # (n, r, L)
        attention = (9 * unit(seen)).transpose(1, 2).softmax(dim=2)
        local = unit(scorer.local_fc((unit(attention @ regions) - words) ** 2))
        whole = unit(scorer.whole_fc((whole_images - scorer.caption_pool(caption[real][None])) ** 2))
        nodes = torch.cat([whole[:, None], local], dim=1)
        columns.append(torch.sigmoid(scorer.score_fc(_read(scorer, nodes))))
    return torch.cat(columns, dim=1)


def _read(scorer: SGR | SAF, nodes: Tensor) -> Tensor:
    if isinstance(scorer, SGR):
        steps: Any = scorer.steps
        for step in steps:
            edges = (step.query(nodes) @ step.key(nodes).transpose(1, 2)).softmax(dim=2)
            nodes = torch.relu(step.out(edges @ nodes))
        return nodes[:, 0]
    logits = scorer.filter_fc(nodes).transpose(1, 2)
    gates = torch.sigmoid(logits if scorer.filter_norm is None else scorer.filter_norm(logits))
    return unit((gates / (gates.sum(dim=2, keepdim=True) + 1e-8) @ nodes)[:, 0])


def batch(n: int, regions: int, dim: int) -> tuple[PartEmbedding, PartEmbedding]:
    """n images and n captions of random parts that require a gradient."""
    generator = torch.Generator().manual_seed(0)
    draw = lambda cells: unit(torch.randn(n, cells, dim, generator=generator)).requires_grad_()  # noqa: E731
    lengths = torch.randint(SHORT, LONG + 1, (n,), generator=generator)
    return PartEmbedding(draw(regions)), PartEmbedding(draw(LONG), torch.arange(LONG) < lengths[:, None])


def flops(scorer: SGR | SAF, n: int, captions: PartEmbedding, regions: int) -> float:
    """Floating-point operations of the matrix products in our forward pass over all pairs."""
    assert captions.mask is not None
    lengths = captions.mask.sum(dim=1).double()
    words, sim, dim = float(lengths.sum()), scorer.score_fc.in_features, scorer.dim
    total = 2 * n * words * dim * (2 * regions + sim) + 2 * n * len(lengths) * dim * sim
    if isinstance(scorer, SGR):
        nodes, edges = words + len(lengths), float((lengths + 1).square().sum())
        total += (len(scorer.steps) - 1) * 4 * n * (nodes * sim**2 + edges * sim)
        total += 4 * n * (len(lengths) * sim**2 + nodes * sim)
    return total


def rate() -> float:
    """Floating-point operations per second of a large float32 matrix product, by the fastest library at hand."""
    a = torch.randn(2048, 2048)
    return 2 * 2048**3 / min(seconds(partial(product, a, a), 5) for product in (torch.mm, _onednn))


def _onednn(a: Tensor, b: Tensor) -> Tensor:
    return linear(a.to_mkldnn(), b.to_mkldnn()).to_dense()


def _step(
    score: Callable[[PartEmbedding, PartEmbedding], Tensor],
    images: PartEmbedding,
    captions: PartEmbedding,
    hinge: bool = False,
) -> None:
    scores = score(images, captions)
    matches = torch.eye(len(scores), dtype=torch.bool)
    (triplet(scores, matches) if hinge else scores.square().sum()).backward()


def _looped(scorer: SGR | SAF) -> Callable[[PartEmbedding, PartEmbedding], Tensor]:
    return partial(loop, scorer)


def _against_the_loop() -> Iterator[Row]:
    images, captions = batch(N, REGIONS, DIM)
    size = f"{N} images × {N} captions, {REGIONS} regions, D = {DIM}"
    for name, scorer in (("SGR", SGR(DIM, SIM)), ("SAF", SAF(DIM, SIM))):
        scorer.eval()
        with torch.no_grad():
            difference = (scorer(images, captions) - loop(scorer, images, captions)).abs().max()
            ours, theirs = _turns(partial(scorer, images, captions), partial(loop, scorer, images, captions))
        yield _time_row(f"{name} forward, {size}, against a loop over captions", ours, theirs, 2)
        yield Row("scorers", "— largest difference of a score", f"{difference:.1e}")
        fastest = rate()
        share = flops(scorer, N, captions, REGIONS) / ours / fastest
        yield Row("scorers", f"— share of the rate of a matrix product ({fastest / 1e9:.0f} GFLOP/s)", f"{share:.0%}")
        with torch.no_grad(), torch.backends.mkldnn.flags(enabled=False):
            bare = _turns(partial(scorer, images, captions), partial(loop, scorer, images, captions))
        yield _time_row("— with torch's own products alone (MKL; what an Intel processor takes anyway)", *bare)
        ours, theirs = _step_turns(scorer, images, captions)
        yield _time_row(f"{name} forward + backward, {size}", ours, theirs, 2)
    lean = SGR(DIM, SIM, memory=0)
    what = f"SGR training step as published (hinge on the hardest negatives), memory = 0, {size}"
    yield _time_row(what, *_step_turns(lean, images, captions, hinge=True), 2)
    kept, looped = (peak_mb(_peak, form, N, REGIONS, DIM, SIM) for form in ("ours", "loop"))
    yield Row(
        "scorers", "— peak memory of SGR, forward + backward", f"{kept:,.0f} MB", f"{looped:,.0f} MB", looped / kept
    )


def _reduced() -> Iterator[Row]:
    regions, dim, sim = REDUCED.values()
    for n in (64, 128):
        images, captions = batch(n, regions, dim)
        for name, scorer in (("SGR", SGR(dim, sim, regions=regions)), ("SAF", SAF(dim, sim, regions=regions))):
            what = f"{name} forward + backward in training, B = {n}, {regions} cells, D = {dim}, {sim} similarities"
            yield _time_row(what, *_step_turns(scorer, images, captions))
        lean = SGR(dim, sim, regions=regions, memory=0)
        what = f"SGR with a hinge on the hardest negatives, memory = 0, B = {n}"
        yield _time_row(what, *_step_turns(lean, images, captions, hinge=True))
        mine, looped = (peak_mb(_peak, form, n, regions, dim, sim) for form in ("ours", "loop"))
        yield Row("scorers", f"— peak memory, B = {n}", f"{mine:,.0f} MB", f"{looped:,.0f} MB", looped / mine)


def _step_turns(
    scorer: SGR | SAF, images: PartEmbedding, captions: PartEmbedding, hinge: bool = False
) -> tuple[float, float]:
    return _turns(
        partial(_step, scorer, images, captions, hinge), partial(_step, _looped(scorer), images, captions, hinge)
    )


def _peak(ready: Callable[[], None], form: str, n: int, regions: int, dim: int, sim: int) -> None:
    scorer = SGR(dim, sim, regions=regions)
    images, captions = batch(n, regions, dim)
    _step(scorer, *batch(4, regions, dim))
    ready()
    _step(scorer if form == "ours" else _looped(scorer), images, captions)


def _turns(ours: Callable[[], object], theirs: Callable[[], object], repeats: int = 3) -> tuple[float, float]:
    """The least seconds of each, measured in turns so that a busy machine slows both."""
    pairs = [(seconds(ours, 1), seconds(theirs, 1)) for _ in range(repeats)]
    return min(p[0] for p in pairs), min(p[1] for p in pairs)


def _time_row(what: str, ours: float, theirs: float, bar: float | None = None) -> Row:
    return Row("scorers", what, f"{ours * 1e3:,.0f} ms", f"{theirs * 1e3:,.0f} ms", theirs / ours, bar)
