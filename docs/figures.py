"""The figures of docs/ideas.md, drawn with the package's own functions.

python docs/figures.py                  # writes docs/figures/*.svg
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Rectangle

from halation import Gaussian, metrics, similarity
from halation._storage import publish_file
from halation.calibration import AbstentionTrials, JudgedScores, fit_abstention
from halation.data import Object, Scene, draw_scene, true_of
from halation.losses import soft_rank

PAPER, INK, MUTED, FAINT = "#fbfaf6", "#26303b", "#6b7683", "#d6d3cb"
BLUE, ORANGE, GREEN = "#2f6fb0", "#c96f12", "#2a8267"
STYLE: dict[str, Any] = {
    "font.size": 10, "font.family": "DejaVu Sans", "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": MUTED,
    "xtick.color": MUTED, "ytick.color": MUTED, "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": 11, "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.facecolor": PAPER,
    "figure.facecolor": PAPER, "legend.frameon": False, "svg.hashsalt": "halation",
}  # fmt: skip


def main(folder: Path) -> None:
    """All figures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        with matplotlib.rc_context(STYLE):
            figure = draw()
            with publish_file(folder / f"{name}.svg") as temporary:
                figure.savefig(temporary, format="svg", metadata={"Date": None, "Creator": "docs/figures.py"})


def _figure(width: float, height: float, columns: int = 1, **kept: Any) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.13, h_pad=0.13)
    FigureCanvasSVG(figure)
    return figure, figure.subplots(1, columns, **kept)


def _note(axes: Any, text: str, at: tuple[float, float], offset: tuple[float, float], **kept: Any) -> None:
    axes.annotate(text, at, offset, textcoords="offset points", va="center", **kept)


CIRCLE = Object("circle", "red", "large", 1, 0)
STAR = Object("star", "blue", "small", 0, 2)
SCENES = (
    Scene("grey", (CIRCLE, STAR)),
    Scene("white", (Object("circle", "red", "large", 0, 1),)),
    Scene("pink", (Object("star", "blue", "small", 2, 1), Object("square", "purple", "large", 0, 0))),
)
CAPTIONS: tuple[tuple[str, Any, int], ...] = (  # what is said, what that claims, for which picture it was written
    ("a circle to the left of a star", [{"pair": [{"shape": "circle"}, {"shape": "star"}], "where": "left"}], 0),
    ("two shapes", [{"count": 2, "of": {}}], 0),
    ("a big red circle", [{"some": {"shape": "circle", "colour": "red", "size": "large"}}], 1),
    ("a single shape on white", [{"count": 1, "of": {}}, {"background": "white"}], 1),
    ("a small blue star", [{"some": {"shape": "star", "colour": "blue", "size": "small"}}], 2),
    ("something purple", [{"some": {"colour": "purple"}}], 2),
)


def many() -> Figure:
    """One picture fits many captions, one caption many pictures; annotations know a few of the pairs."""
    figure, axes = _figure(7.6, 3.7)
    axes.set(xlim=(0, 10), ylim=(-0.55, 6.1))
    axes.axis("off")
    heights = [5.0, 2.85, 0.7]
    for scene, y in zip(SCENES, heights, strict=True):
        axes.imshow(np.asarray(draw_scene(scene, 128)), extent=(0.38, 1.68, y - 0.92, y + 0.92), zorder=2)
        axes.add_patch(Rectangle((0.38, y - 0.92), 1.3, 1.84, fill=False, edgecolor=FAINT, lw=0.8, zorder=3))
    axes.set_aspect("auto")
    axes.set(xlim=(0, 10), ylim=(-0.55, 6.1))
    for row, (text, claim, own) in enumerate(CAPTIONS):
        y = 5.6 - row * 1.06
        axes.text(5.4, y, f"“{text}”", va="center", fontsize=10.5)
        for place, scene in enumerate(SCENES):
            if true_of(claim, scene):
                written = place == own
                axes.plot(
                    [1.8, 5.25], [heights[place], y], zorder=1, lw=2.0 if written else 1.6,
                    color=BLUE if written else ORANGE, ls="-" if written else (0, (4, 2.5)),
                )  # fmt: skip
    axes.plot([], [], color=BLUE, lw=2.0, label="true, and annotated")
    axes.plot([], [], color=ORANGE, lw=1.6, ls=(0, (4, 2.5)), label="just as true, and counted as wrong")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, -0.06), fontsize=9)
    return figure


def cloud() -> Figure:
    """A point becomes a cloud: what is vague is broad."""
    figure, both = _figure(7.6, 3.3, 2, sharex=True, sharey=True)
    names = ["“something red”", "“a big red circle”", "“a red circle on the left,\na blue star on the right”"]
    mean = torch.tensor([[0.1, -0.25], [1.35, 0.75], [2.5, -0.35]])
    log_var = torch.log(torch.tensor([[0.86, 0.62], [0.42, 0.36], [0.13, 0.15]]) ** 2)
    clouds = Gaussian(mean, log_var)
    pictures = np.array([[-0.75, -0.65], [0.55, -0.8], [0.95, 0.3], [1.85, 0.5], [2.62, -0.2]])
    for axes, title in zip(both, ("every item a point", "every item a Gaussian"), strict=True):
        axes.set(title=title, xlim=(-1.7, 3.7), ylim=(-1.75, 1.9), xticks=[], yticks=[])
        axes.plot(*pictures.T, "s", color=GREEN, ms=6, label="pictures", zorder=3)
    for row, colour in enumerate((ORANGE, BLUE, INK)):
        (x, y), spread = mean[row].tolist(), clouds.log_var[row].mul(0.5).exp().tolist()
        for axes in both:
            axes.plot(x, y, "o", color=colour, ms=6, zorder=4)
        for times, alpha in ((1, 0.28), (2, 0.14)):
            wide, high = (2 * times * side for side in spread)
            both[1].add_patch(Ellipse((x, y), wide, high, color=colour, alpha=alpha, lw=0))
        above = (0, 14) if row < 2 else (0, -20)
        _note(both[0], names[row], (x, y), above, ha="center", fontsize=8.5, color=colour)
        sigma = float(clouds.uncertainty()[row])
        _note(both[1], f"σ = {sigma:.2f}", (x, y), (0, 13), ha="center", fontsize=9, color=colour)
    both[0].legend(loc="lower left", fontsize=9)
    return figure


def csd() -> Figure:
    """CSD in one dimension: the squared distance to expect between two draws."""
    figure, both = _figure(7.6, 3.0, 2, sharey=True)
    x = np.linspace(-3, 6, 150)
    cases = (("two sure items", 0.35, 0.45), ("two vague items", 0.9, 1.1))
    for axes, (title, one, other) in zip(both, cases, strict=True):
        clouds = Gaussian(torch.tensor([[0.0], [2.4]]), torch.log(torch.tensor([[one], [other]]) ** 2))
        for mean, spread, colour in ((0.0, one, BLUE), (2.4, other, ORANGE)):
            density = np.exp(-0.5 * ((x - mean) / spread) ** 2) / spread / np.sqrt(2 * np.pi)
            axes.fill_between(x, density, color=colour, alpha=0.35, lw=0)
            axes.plot(x, density, color=colour)
        value = -float(similarity.csd(clouds[:1], clouds[1:]))
        draws = clouds.sample(200_000, torch.Generator().manual_seed(0))
        seen = float((draws[0] - draws[1]).square().mean())
        axes.annotate("", (2.4, -0.07), (0.0, -0.07), arrowprops={"arrowstyle": "<->", "color": INK})
        axes.text(1.2, -0.17, "2.4", ha="center", fontsize=9)
        parts = f"CSD = 2.4² + {one:g}² + {other:g}² = {value:.2f}"
        axes.set(title=title, ylim=(-0.22, 1.62), yticks=[], xticks=[], xlim=(-3, 6))
        axes.text(-2.9, 1.47, parts, fontsize=10)
        axes.text(-2.9, 1.31, f"mean of (z − z′)² over 200,000 draws: {seen:.2f}", fontsize=8.5, color=MUTED)
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)
    return figure


def asp() -> Figure:
    """ASP compares two rankings of the whole gallery, item by item."""
    by_meaning, by_score = np.array([1, 3, 2, 5, 4]), np.array([3, 1, 4, 5, 2])
    value = float(metrics.asp(-by_score[None].astype(float), -by_meaning[None].astype(float))[0])
    ratios = np.minimum(by_meaning, by_score) / np.maximum(by_meaning, by_score)
    figure, axes = _figure(7.6, 3.3)
    axes.set(xlim=(-0.75, 2.35), ylim=(5.6, 0.2))
    axes.axis("off")
    colours = matplotlib.colormaps["viridis"](0.12 + 0.72 * ratios)
    for item, (c, s) in enumerate(zip(by_meaning, by_score, strict=True)):
        axes.plot([0, 1], [c, s], color=colours[item], lw=2.4, marker="o", ms=17, mfc=PAPER, mew=2.0)
        for x, rank in ((0, c), (1, s)):
            axes.text(x, rank, "ABCDE"[item], ha="center", va="center", fontsize=10, weight="bold")
        share = f"{'ABCDE'[item]}:  min({c}, {s}) / max({c}, {s}) = {ratios[item]:.2f}"
        axes.text(1.3, item + 1, share, va="center", fontsize=10, color=INK)
    for rank in range(1, 6):
        axes.text(-0.3, rank, f"{rank}", color=MUTED, va="center", ha="center")
    axes.text(0, 0.35, "by meaning", ha="center", weight="bold")
    axes.text(1, 0.35, "by the model", ha="center", weight="bold")
    axes.text(1.3, 0.35, f"mean of the ratios: ASP = {100 * value:.1f} %", weight="bold")
    axes.text(-0.3, 0.35, "rank", ha="center", color=MUTED)
    return figure


def rank() -> Figure:
    """The soft rank of one item as its score rises past four others."""
    figure, axes = _figure(7.6, 3.2)
    others, x = np.array([0.2, 0.4, 0.6, 0.8]), np.linspace(0, 1, 401)
    rows = torch.from_numpy(np.column_stack([x, np.broadcast_to(others, (len(x), 4))]))
    for tau, colour in ((0.1, ORANGE), (0.03, GREEN), (0.005, BLUE)):
        axes.plot(x, soft_rank(rows, tau)[:, 0], color=colour, lw=2, label=f"τ = {tau:g}")
    axes.plot(x, 1 + (others > x[:, None]).sum(1), color=INK, lw=1, ls=":", label="the true rank")
    axes.plot(others, np.full(4, 5.35), "v", color=MUTED, ms=6, clip_on=False)
    axes.text(0.885, 5.34, "the others", color=MUTED, fontsize=9, va="center")
    axes.set(xlabel="score of the item", ylabel="rank", xlim=(0, 1), ylim=(5.5, 0.8), yticks=[1, 2, 3, 4, 5])
    axes.legend(loc="upper left", fontsize=9)
    return figure


def abstention() -> Figure:
    """Evidence that anything matches, of queries that have a match and of the same with it taken away."""
    generator = np.random.default_rng(0)
    image_of = np.repeat(np.arange(300), 3)
    places = generator.normal(size=(300, 8))
    sigma = 0.38 * np.exp(0.35 * generator.normal(size=(len(image_of), 1)))
    queries = places[image_of] + sigma * generator.normal(size=(len(image_of), 8))
    scores = -((queries[:, None] - places[None]) ** 2).sum(axis=2)
    judged = JudgedScores(scores, image_of[:, None] == np.arange(300), image_of, np.arange(300))
    rule, trials = fit_abstention(judged), AbstentionTrials.of(judged)
    evidence = rule.evidence(trials.scores, trials.gallery, trials.uncertainty)
    assert rule.matches_from is not None and rule.nothing_below is not None
    figure, axes = _figure(7.6, 3.1)
    bins = np.linspace(*np.quantile(evidence, (0.02, 1.0)), 50)
    for has, colour, label in ((True, BLUE, "a match is there"), (False, ORANGE, "nothing matches")):
        rows = ~trials.single & (trials.has_match == has)
        weights = np.full(rows.sum(), 1 if has else 0.5)  # two galleries without a match
        axes.hist(evidence[rows], bins, weights=weights, color=colour, alpha=0.55, label=label)
    top = 1.25 * axes.get_ylim()[1]
    axes.set_ylim(0, top)
    for threshold in (rule.nothing_below, rule.matches_from):
        axes.axvline(threshold, color=INK, lw=1.5)
    middle = (rule.nothing_below + rule.matches_from) / 2
    _note(axes, "“matches” →", (rule.matches_from, 0.94 * top), (6, 0), fontsize=9.5)
    _note(axes, "not sure", (middle, 0.94 * top), (0, 0), ha="center", fontsize=9.5)
    _note(axes, "← “nothing”", (rule.nothing_below, 0.94 * top), (-6, 0), ha="right", fontsize=9.5)
    axes.set(xlabel="evidence that something matches (log-odds)", ylabel="queries")
    axes.legend(loc="upper left", bbox_to_anchor=(0.0, 0.8), fontsize=9)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "many": many, "cloud": cloud, "csd": csd, "asp": asp, "rank": rank, "abstention": abstention,
}  # fmt: skip

if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "figures")
