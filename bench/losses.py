"""Losses and similarities against simpler implementations: a (B, B, B) tensor, a band, an (N², J², D) broadcast."""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

import halation
from bench.captions import coco_like
from bench.measuring import peak_mb, seconds, side_by_side
from bench.results import Row
from halation import Gaussian, losses, similarity

B = 512
SPREADS: dict[str, Callable[[int], Tensor]] = {
    "uniform on (0, 1)": lambda n: torch.rand(n, n, generator=_seeded()),
    "normal, sd 0.05": lambda n: 0.05 * torch.randn(n, n, generator=_seeded()),
    "normal, sd 0.1": lambda n: 0.1 * torch.randn(n, n, generator=_seeded()),
    "normal, sd 0.2": lambda n: 0.2 * torch.randn(n, n, generator=_seeded()),
}
# By default glibc returns large blocks to the system at once and pays page faults for each new one; not with these.
KEEPING = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 33),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 36),
    "MALLOC_TOP_PAD_": str(1 << 26),
}


def run() -> Iterator[Row]:
    yield from _daa_against_direct()
    yield from _daa_large()
    yield from _released()
    yield from _soft_contrastive()
    yield from _match_probability()
    yield from _csd()


# --- DAA ---


def direct_daa(scores: Tensor, relevance: Tensor, temperature: float) -> Tensor:
    """The equation of the paper written directly, both directions: two (B, B, B) tensors."""

    def rank(x: Tensor) -> Tensor:
        return 0.5 + torch.sigmoid((x[:, None, :] - x[:, :, None]) / temperature).sum(dim=2)  # σ(0) = ½ for j = i

    def rows(s: Tensor, c: Tensor) -> Tensor:
        by_score = rank(s)
        with torch.no_grad():
            by_meaning = rank(c)
        return 1 - (torch.minimum(by_score, by_meaning) / torch.maximum(by_score, by_meaning)).mean()

    return rows(scores, relevance) + rows(scores.T, relevance.T)


def banded_daa(scores: Tensor, relevance: Tensor, temperature: float) -> Tensor:
    """Both directions by the band, offset by offset: in a sorted float32 row only neighbours within 17 τ matter."""

    def rows(s: Tensor, c: Tensor) -> Tensor:
        by_score: Tensor = _BandedRank.apply(s, temperature)
        by_meaning = _BandedRank.apply(c, temperature).detach()
        return 1 - (torch.minimum(by_score, by_meaning) / torch.maximum(by_score, by_meaning)).mean()

    return rows(scores, relevance) + rows(scores.T, relevance.T)


class _BandedRank(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, temperature: float) -> Tensor:
        falling, order = scores.sort(dim=1, descending=True)
        ranks = torch.arange(1, falling.shape[1] + 1).to(falling).expand_as(falling).clone()
        for k, e in _band(falling, temperature):
            ranks[:, :-k].add_(e)
            ranks[:, k:].sub_(e)
        ctx.save_for_backward(falling, order)
        ctx.temperature = temperature
        return torch.empty_like(ranks).scatter_(1, order, ranks)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        falling, order = ctx.saved_tensors
        grad = grad.gather(1, order)
        result = torch.zeros_like(grad)
        for k, e in _band(falling, ctx.temperature):
            flow = e.mul_(1 - e).mul_(grad[:, k:] - grad[:, :-k])
            result[:, :-k].add_(flow)
            result[:, k:].sub_(flow)
        return torch.empty_like(result).scatter_(1, order, result.div_(ctx.temperature)), None


def _band(falling: Tensor, temperature: float) -> Iterator[tuple[int, Tensor]]:
    for k in range(1, falling.shape[1]):
        gap = falling[:, k:] - falling[:, :-k]
        if gap.amax() < -17 * temperature:
            return
        yield k, gap.div_(temperature).sigmoid_()


def _ours(scores: Tensor, relevance: Tensor, temperature: float) -> Tensor:
    return losses.DAA(temperature)(scores, relevance)


def _daa_step(form: Callable[..., Tensor], scores: Tensor, temperature: float) -> Callable[[], None]:
    scores = scores.clone().requires_grad_()
    relevance = torch.rand(scores.shape, generator=_seeded(1))

    def step() -> None:
        scores.grad = None
        form(scores, relevance, temperature).backward()

    return step


def _daa_against_direct() -> Iterator[Row]:
    for temperature, bar in ((1e-3, 50), (1e-2, 10)):
        scores = SPREADS["uniform on (0, 1)"](B)
        agreement = _gradient_difference(scores[:128, :128], temperature)
        steps = {form: _daa_step(form, scores, temperature) for form in (_ours, direct_daa, banded_daa)}
        ours, theirs = side_by_side(steps[_ours], steps[direct_daa])
        yield _time_row(f"DAA forward + backward, B = {B}, τ = {temperature:g}, uniform on (0, 1)", ours, theirs, bar)
        yield _time_row("— the same against the band", *side_by_side(steps[_ours], steps[banded_daa]))
        yield _on_one_thread(steps[_ours], steps[direct_daa])
        yield Row("losses", "— gradient against the direct form in float64, B = 128", f"{agreement:.1e} of its maximum")
        for name in list(SPREADS)[1:]:
            other = SPREADS[name](B)
            ours, band = side_by_side(_daa_step(_ours, other, temperature), _daa_step(banded_daa, other, temperature))
            yield _time_row(f"— {name} (the direct form costs the same for all scores)", ours, theirs)
            yield _time_row(f"— {name}, against the band", ours, band)
    mine, direct = peak_mb(_daa_peak, "ours", B), peak_mb(_daa_peak, "direct", B)
    yield Row("losses", f"— peak memory, B = {B}", f"{mine:,.0f} MB", f"{direct:,.0f} MB", direct / mine, 50)
    kept, kept_theirs = _with_environment(KEEPING)
    yield _time_row(f"— B = {B}, τ = 0.001, uniform, an allocator that keeps freed memory", kept, kept_theirs, 50)


def _on_one_thread(ours: Callable[[], None], theirs: Callable[[], None]) -> Row:
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # the compiled loops of the losses use at most torch's threads
    try:
        return _time_row("— the same on one thread", *side_by_side(ours, theirs))
    finally:
        torch.set_num_threads(before)


def _gradient_difference(scores: Tensor, temperature: float) -> float:
    relevance = torch.rand(scores.shape, generator=_seeded(1))
    single, double = scores.clone().requires_grad_(), scores.double().requires_grad_()
    (ours,) = torch.autograd.grad(_ours(single, relevance, temperature), single)
    (exact,) = torch.autograd.grad(direct_daa(double, relevance.double(), temperature), double)
    return float((ours - exact).abs().max() / exact.abs().max())


def _daa_large() -> Iterator[Row]:
    sizes = [128, 256, 512, 1024, 2048, 4096]
    for name, form, largest in (("ours", _ours, 4096), ("the band", banded_daa, 1024)):
        times = []
        for n in sizes:
            if n <= largest:
                step = _daa_step(form, SPREADS["uniform on (0, 1)"](n), 1e-2)
                times.append(seconds(step, 5 if n <= 512 else 2 if n <= 2048 else 1))
        last = math.log2(times[-1] / times[-2])
        fit = np.polyfit(np.log(sizes[: len(times)]), np.log(times), 1)[0]
        what = f"growth of DAA's cost with B, τ = 0.01, uniform, {name}: exponent {fit:.2f} (last doubling {last:.2f})"
        yield Row("losses", what, ", ".join(f"{n}: {t:.3g} s" for n, t in zip(sizes, times, strict=False)))
    peak = peak_mb(_daa_peak, "ours", 4096)
    what = "DAA forward + backward, B = 4,096: peak memory"
    yield Row("losses", what, f"{peak:,.0f} MB", "bar: 2 GB", 2048 / peak, 1)


def _released() -> Iterator[Row]:
    """The effect of the missing transpose in the released code, on tf-idf relevance; weight 25 as published."""
    captions, image_of, kind = coco_like()
    images, first = 128, np.flatnonzero(np.diff(image_of[: 5 * 128], prepend=-1))
    matrix = halation.caption_relevance(captions[: 5 * images], image_of[: 5 * images])
    relevance = torch.from_numpy(matrix[:, first])  # (128, 128)
    noise, rates = torch.randn(relevance.shape, generator=_seeded()), torch.linspace(0.5, 2, images)[:, None]
    cases = {
        "scores rise with the relevance, at a different rate in every row": rates * relevance,
        "scores = relevance + noise of the same spread": relevance + relevance.std() * noise,
        "scores of noise alone": noise,
    }
    for name, scores in cases.items():
        (paper, grad), (released, other) = (_value_and_gradient(scores, relevance, v) for v in ("paper", "released"))
        cosine = torch.cosine_similarity(grad, other, dim=0)
        what = f"DAA as released ({kind}, B = 128, τ = 0.001, × 25): {name}; cosine of the gradients {cosine:.2f}"
        yield Row("losses", what, f"paper {paper:.2f}", f"released {released:.2f}")


def _value_and_gradient(scores: Tensor, relevance: Tensor, variant: Any) -> tuple[float, Tensor]:
    leaf = scores.clone().requires_grad_()
    loss = 25 * losses.daa(leaf, relevance, 1e-3, variant)
    return loss.item(), torch.autograd.grad(loss, leaf)[0].flatten()


def _daa_peak(ready: Callable[[], None], form: str, n: int) -> None:
    forms = {"ours": _ours, "direct": direct_daa}
    _daa_step(_ours, SPREADS["uniform on (0, 1)"](32), 1e-2)()
    step = _daa_step(forms[form], SPREADS["uniform on (0, 1)"](n), 1e-2)
    ready()
    step()


def _with_environment(environment: dict[str, str]) -> tuple[float, float]:
    """Seconds of ours and of the direct form, in a new process with these settings of the allocator."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        context = multiprocessing.get_context("spawn")
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=_time_both, args=(sender,))
        child.start()
    finally:
        os.environ.clear()
        os.environ.update(before)
    result: tuple[float, float] = receiver.recv()
    child.join()
    return result


def _time_both(sender: Any) -> None:
    scores = SPREADS["uniform on (0, 1)"](B)
    sender.send(side_by_side(_daa_step(_ours, scores, 1e-3), _daa_step(direct_daa, scores, 1e-3)))


# --- samples ---


def broadcast_log_likelihood(z: Tensor, w: Tensor, matches: Tensor) -> Tensor:
    """The loss of PCME with all differences in one tensor, (N², J², D)."""
    n, m, j = len(z), len(w), z.shape[1] * w.shape[1]
    differences = z[:, None, :, None, :] - w[None, :, None, :, :]  # (N, M, J, J, D)
    logits = (15 - 15 * (differences.square().sum(dim=-1) + 1e-6).sqrt()).reshape(n, m, j)
    sign = torch.where(matches, 1.0, -1.0)[..., None]
    return torch.nn.functional.logsigmoid(sign * logits).logsumexp(dim=2) - math.log(j)


def _sample_step(form: str, n: int) -> Callable[[], None]:
    z, w = (torch.randn(n, 7, 1024, generator=_seeded(s)).div_(32).requires_grad_() for s in (1, 2))
    matches = torch.eye(n, dtype=torch.bool)

    def step() -> None:
        z.grad = w.grad = None
        if form == "ours":
            losses.soft_contrastive(z, w, matches).backward()
        else:
            (-broadcast_log_likelihood(z, w, matches).mean()).backward()

    return step


def _soft_contrastive() -> Iterator[Row]:
    ours, theirs = side_by_side(_sample_step("ours", 128), _sample_step("broadcast", 128), repeats=2)
    yield _time_row(
        "soft_contrastive forward + backward, B = 128, J = 7, D = 1024, against the broadcast", ours, theirs, 50
    )
    mine, broadcast = peak_mb(_sample_peak, "ours", 128), peak_mb(_sample_peak, "broadcast", 128)
    yield Row("losses", "— peak memory", f"{mine:,.0f} MB", f"{broadcast:,.0f} MB", broadcast / mine, 100)


def _sample_peak(ready: Callable[[], None], form: str, n: int) -> None:
    _sample_step("ours", 4)()
    step = _sample_step(form, n)
    ready()
    step()


def _match_probability() -> Iterator[Row]:
    z, w = torch.randn(1000, 7, 1024, generator=_seeded(1)) / 32, torch.randn(5000, 7, 1024, generator=_seeded(2)) / 32
    with torch.no_grad():

        def broadcast() -> None:
            for i in range(0, 64, 8):
                differences = z[i : i + 8, None, :, None, :] - w[None, :64, None, :, :]
                torch.sigmoid(15 - 15 * (differences.square().sum(dim=-1) + 1e-6).sqrt()).mean(dim=(2, 3))

        ours, theirs = side_by_side(lambda: similarity.match_probability(z, w, scale=15.0, shift=15.0), broadcast)
        ours, theirs = ours / 5e6, theirs / 64**2
    what = "match_probability of 1,000 × 5,000, J = 7, D = 1024, per pair, against the broadcast"
    yield Row("losses", what, f"{ours * 1e6:.2f} µs", f"{theirs * 1e6:.1f} µs", theirs / ours, 50)


def _csd() -> Iterator[Row]:
    draw = lambda n, seed: torch.randn(n, 1024, generator=_seeded(seed))  # noqa: E731
    a, b = Gaussian(draw(5000, 1), draw(5000, 2)), Gaussian(draw(25000, 3), draw(25000, 4))
    ours, theirs = side_by_side(lambda: similarity.csd(a, b), lambda: a.mean @ b.mean.T)
    what = "csd of 5,000 × 25,000, D = 1024, against a bare float32 matrix product (bar: at most 1.5 × its time)"
    yield Row("losses", what, f"{ours:.2f} s", f"{theirs:.2f} s", theirs / ours, 1 / 1.5)


def _time_row(what: str, ours: float, theirs: float, bar: float | None = None) -> Row:
    return Row("losses", what, f"{ours * 1e3:,.0f} ms", f"{theirs * 1e3:,.0f} ms", theirs / ours, bar)


def _seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
