"""The tables and the plot of the DAA study, made from the results of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from halation._arrays import FloatArray
from halation._storage import publish_file
from halation._web import signed
from halation.training import read_recipe

__all__ = ["ablation_table", "difference", "front_plot", "models_table", "ratio_table", "trials_table", "verdicts"]

Results = Mapping[str, Mapping[str, Any]]
Table = tuple[list[str], list[list[str]]]
_DRAWS = 10_000
_SIDES = ("i2t", "t2i")


def runs_of(results: Results, recipe: str, seeds: Sequence[int], label: str = "") -> list[Mapping[str, Any]]:
    """The finished runs of a recipe, one per seed."""
    names = ("-".join(part for part in (recipe, label, f"seed{seed}") if part) for seed in seeds)
    return [results[name] for name in names if name in results]


def models_table(results: Results, models: Sequence[str], seeds: Sequence[int]) -> Table:
    """Recall, R-P, both ASPs, agreement with people; i2t / t2i."""
    metrics = ("R@1", "R@5", "R@10", "R-P", "ASP(tfidf)", "ASP(cider)")
    header = ["model", "size", "seeds", *metrics, "R-sum", "Expert τ_c", "minutes, quickest seed", "command"]
    rows = []
    for model in models:
        kinds = [("", ""), ("_daa", "")] + [("_daa", "plain")] * (model == "infonce")
        for kind, label in kinds:
            runs = runs_of(results, f"flickr8k_{model}{kind}", seeds, label)
            if runs:
                rows.append(
                    [
                        _title(model, kind, label),
                        _size(runs[0]),
                        str(len(runs)),
                        *(_pair(runs, name) for name in metrics),
                        _spread([run["test"]["rsum"] for run in runs]),
                        _spread([run["test"]["expert_tau_c"] for run in runs]),
                        f"{min(run['seconds'] for run in runs) / 60:.1f}",
                        f"`{_command(runs[0])}`",
                    ]
                )
    return header, rows


def _title(model: str, kind: str, label: str = "") -> str:
    return f"{model}{' + DAA' if kind else ''}{' on its own score' if label else ''}"


def _size(run: Mapping[str, Any]) -> str:
    """Dimensions and weights. SGR and SAF are smaller than published, so that the study fits into a day."""
    recipe = read_recipe(run["recipe"], tuple(run["settings"]))
    parts = [f"D = {recipe.model.dim}"]
    if recipe.image.grid:
        parts += [f"{recipe.image.grid**2} cells", f"similarities of {recipe.model.sim_dim}"]
    return ", ".join([*parts, f"{run['parameters'] / 1e6:.1f} M weights"])


def _command(run: Mapping[str, Any]) -> str:
    sets = "".join(f" --set {setting}" for setting in run["settings"])
    return f"halation train {run['recipe']}{sets}"


def ablation_table(results: Results, relevances: Sequence[str], seeds: Sequence[int]) -> Table:
    """ASP under each relevance, for each relevance trained by."""
    measures = (*relevances, "mean")
    header = ["trained by", "seeds", "R-sum", *(f"ASP({name})" for name in measures)]
    rows = []
    base = runs_of(results, "flickr8k_infonce", seeds)
    trained = [("nothing (base)", base)] + [
        (name, runs_of(results, "flickr8k_infonce_daa", seeds, "" if name == "tfidf" else name)) for name in relevances
    ]
    for name, runs in trained:
        if runs:
            asp = [_pair(runs, f"ASP({measure})") for measure in measures]
            rows.append([name, str(len(runs)), _spread([run["test"]["rsum"] for run in runs]), *asp])
    return header, rows if len(rows) > 2 else []


def ratio_table(results: Results, captions: Sequence[int], seeds: Sequence[int]) -> Table:
    """Recall and ASP by the number of captions an image has in training."""
    header = ["captions", "model", "seeds", "R@1", "R-sum", "ASP(tfidf)"]
    rows = []
    for count in captions:
        for kind in ("", "_daa"):
            runs = runs_of(results, f"flickr8k_infonce{kind}", seeds, "" if count == 5 else f"captions{count}")
            if runs:
                total = _spread([run["test"]["rsum"] for run in runs])
                name = _title("infonce", kind)
                rows.append([str(count), name, str(len(runs)), _pair(runs, "R@1"), total, _pair(runs, "ASP(tfidf)")])
    return header, rows if len(rows) > 2 else []


def trials_table(trials: Sequence[Mapping[str, Any]]) -> Table:
    """Every trial, with its figures on the dev split."""
    header = ["recipe", "settings", "dev R@1", "dev R-sum", "dev ASP(tfidf)", "chosen"]
    rows = [
        [
            str(trial["recipe"]),
            _trial_settings(trial),
            f"{trial['dev']['R@1 i2t']:.1f} / {trial['dev']['R@1 t2i']:.1f}",
            f"{trial['dev']['rsum']:.1f}",
            f"{trial['dev']['ASP(tfidf) i2t']:.1f} / {trial['dev']['ASP(tfidf) t2i']:.1f}",
            "yes" if trial.get("chosen") else "",
        ]
        for trial in trials
    ]
    return header, rows


def _trial_settings(trial: Mapping[str, Any]) -> str:
    parts = [" ".join(trial["settings"]), f"({trial['note']})" if trial.get("note") else ""]
    return " ".join(part for part in parts if part) or "–"


def difference(base: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]], seed: int = 0) -> list[float]:
    """R-sum of `other` minus that of `base`, and its 95 % interval: seeds averaged, images resampled in pairs."""
    per_image: FloatArray = 20.0 * (_by_image(other) - _by_image(base))
    draws = np.random.default_rng(seed).integers(len(per_image), size=(_DRAWS // 100, 100, len(per_image)))
    means = np.concatenate([per_image[block].mean(axis=1) for block in draws])
    low, high = np.percentile(means, (2.5, 97.5))
    return [float(per_image.mean()), float(low), float(high)]


def _by_image(runs: Sequence[Mapping[str, Any]]) -> FloatArray:
    return np.asarray(np.mean([run["test"]["rsum_by_image"] for run in runs], axis=0))


def verdicts(results: Results, models: Sequence[str], seeds: Sequence[int]) -> list[str]:
    """One line per model: what DAA gains and costs; and R@1 by uncertainty."""
    lines = []
    for model, label in [(model, "") for model in models] + [("infonce", "plain")]:
        base = runs_of(results, f"flickr8k_{model}", seeds)
        other = runs_of(results, f"flickr8k_{model}_daa", seeds, label)
        if not base or len(base) != len(other):
            continue
        gains = [
            float(np.mean([run["test"][side]["ASP(tfidf)"] for run in other]))
            - float(np.mean([run["test"][side]["ASP(tfidf)"] for run in base]))
            for side in _SIDES
        ]
        change, low, high = difference(base, other)
        lines.append(
            f"- {model}: DAA{' on its own score' if label else ''} changes ASP(tfidf) by {signed(gains[0])} (i2t) and "
            f"{signed(gains[1])} (t2i), "
            f"R-sum by {signed(change)} [{signed(low)}, {signed(high)}] ({len(base)} seeds)."
        )
    lines += [line for model in models for kind in ("", "_daa") for line in _certainty(results, model, kind, seeds)]
    return ["\n".join(lines)] if lines else []


def _certainty(results: Results, model: str, kind: str, seeds: Sequence[int]) -> list[str]:
    """R@1 by fifth of uncertainty; no line for a model without uncertainty."""
    runs = runs_of(results, f"flickr8k_{model}{kind}", seeds)
    if not runs or runs[0]["test"]["fifths"]["captions"] is None:
        return []
    shown = []
    for side in ("images", "captions"):
        values = np.mean([run["test"]["fifths"][side] for run in runs], axis=0)
        shown.append(f"{side} {', '.join(f'{value:.1f}' for value in values)}")
    return [
        f"- {_title(model, kind)}: R@1 from the most to the least certain fifth of the queries: {'; '.join(shown)}."
    ]


def front(results: Results, weights: Sequence[float]) -> list[tuple[float, Mapping[str, Any]]]:
    """(weight of DAA on the score itself, test results), by weight; empty if there are too few points to plot."""
    points = [(0.0, runs_of(results, "flickr8k_infonce", (0,)))]
    points += [(weight, runs_of(results, "flickr8k_infonce_daa", (0,), f"weight{weight:g}")) for weight in weights]
    points += [(10.0, runs_of(results, "flickr8k_infonce_daa", (0,), "plain"))]
    known = sorted(((weight, runs[0]["test"]) for weight, runs in points if runs), key=lambda point: point[0])
    return known if len(known) >= 3 else []


def front_plot(results: Results, weights: Sequence[float], path: Path) -> bool:
    """Plot R-sum against ASP as the weight of DAA on the score itself grows, and DAA by gist beside it.

    Returns False if there are too few points to plot.
    """
    points = front(results, weights)
    if not points:
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    gist = runs_of(results, "flickr8k_infonce_daa", (0,))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, side, what in zip(panels, _SIDES, ("image → captions", "caption → images"), strict=True):
        asp, recall = [test[side]["ASP(tfidf)"] for _, test in points], [test["rsum"] for _, test in points]
        axes.plot(asp, recall, "o-", color="tab:blue", label="weight · DAA on the score itself")
        for weight, x, y in zip([weight for weight, _ in points], asp, recall, strict=True):
            axes.annotate(f"{weight:g}", (x, y), xytext=(-9, -11), textcoords="offset points", fontsize=8, ha="center")
        if gist:
            test = gist[0]["test"]
            axes.plot(test[side]["ASP(tfidf)"], test["rsum"], "*", color="tab:red", markersize=14, label="DAA by gist")
        axes.set(xlabel="ASP(tfidf), %", title=what)
        axes.grid(alpha=0.3)
        axes.margins(0.09)
    panels[0].set_ylabel("R-sum")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)  # never over a point
    figure.suptitle("InfoNCE with DAA on Flickr8k (test, seed 0)")
    with publish_file(path) as temporary:
        figure.savefig(temporary, dpi=150)
    return True


def _pair(runs: Sequence[Mapping[str, Any]], name: str) -> str:
    return " / ".join(_spread([run["test"][side][name] for run in runs]) for side in _SIDES)


def _spread(values: Sequence[float]) -> str:
    mean = f"{np.mean(values):.1f}"
    return mean if len(values) < 2 else f"{mean} ± {np.std(values, ddof=1):.1f}"
