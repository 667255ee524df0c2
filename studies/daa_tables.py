"""The tables and the plot of the DAA study, made from the results of its runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from halation._arrays import FloatArray
from halation._storage import publish_file
from halation._web import signed
from halation.training import read_recipe
from studies.page import Table, without_repeats

__all__ = [
    "LARGE_WEIGHT",
    "caption_tables",
    "certainty_table",
    "change_table",
    "cost_table",
    "difference",
    "front_plot",
    "models_tables",
    "relevance_tables",
    "trials_tables",
    "unconfirmed",
]

Results = Mapping[str, Mapping[str, Any]]
LARGE_WEIGHT = 10  # of DAA beside InfoNCE: run with every seed, as the trade of recall for ASP
_DRAWS = 10_000
_SLASH = "\N{NO-BREAK SPACE}/\N{NO-BREAK SPACE}"  # a pair stays on one line of its cell
_SIDES = ("i2t", "t2i")
_DIRECTIONS = {"i2t": "image → text", "t2i": "text → image"}


def runs_of(results: Results, recipe: str, seeds: Sequence[int], label: str = "") -> list[Mapping[str, Any]]:
    """The finished runs of a recipe, one per seed."""
    names = ("-".join(part for part in (recipe, label, f"seed{seed}") if part) for seed in seeds)
    return [results[name] for name in names if name in results]


def models_tables(results: Results, models: Sequence[str], seeds: Sequence[int]) -> list[Table]:
    """Recall and ASP of every model, one table per direction."""
    tables = []
    for side, direction in _DIRECTIONS.items():
        metrics = ["R@1", "R@5", "R@10", *(["R-P"] if side == "i2t" else []), "ASP(tfidf)", "ASP(cider)"]
        rows = [
            [title, *(_spread([run["test"][side][name] for run in runs]) for name in metrics)]
            for title, runs in _rows_of(results, models, seeds)
        ]
        note = "" if side == "i2t" else "A caption has one annotated image, so R-P is R@1 here."
        tables.append(Table(f"Every model, {direction}", ["model", *metrics], rows, note))
    return tables


def cost_table(results: Results, models: Sequence[str], seeds: Sequence[int]) -> Table:
    """R-sum, agreement with experts, size and training time of every model, and what it was trained with."""
    header = ["model", "R-sum", "Expert τ_c", "D", "weights", "seeds", "minutes"]
    rows, commands = [], []
    for title, runs in _rows_of(results, models, seeds):
        recipe = read_recipe(runs[0]["recipe"], tuple(runs[0]["settings"]))
        rows.append(
            [
                title,
                _spread([run["test"]["rsum"] for run in runs]),
                _spread([run["test"]["expert_tau_c"] for run in runs]),
                str(recipe.model.dim),
                f"{runs[0]['parameters'] / 1e6:.1f} M",
                str(len(runs)),
                f"{min(run['seconds'] for run in runs) / 60:.1f}",
            ]
        )
        if runs[0]["settings"]:
            commands.append(f"“{title}” is `{_command(runs[0])}`.")
        if recipe.image.grid and "DAA" not in title:
            cells = f"{recipe.image.grid**2} cells, similarities of {recipe.model.sim_dim} numbers"
            commands.append(f"{title} is smaller than published: {cells}.")
    note = (
        "R-sum adds R@1, R@5 and R@10 of both directions. Expert τ_c is the agreement with "
        "[people's ratings](studies/humans.md). Minutes are those of the quickest seed, on one thread. The rows were "
        "run on different machines, some of them busy, so trust only large ratios. Train a row with "
        "`halation train flickr8k_NAME`, for example `flickr8k_pcme` or `flickr8k_pcme_daa`."
    )
    return Table("R-sum, people and cost", header, rows, " ".join([note, *commands]))


def _rows_of(
    results: Results, models: Sequence[str], seeds: Sequence[int]
) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Title and runs of every model that has runs: the base, with DAA, and for InfoNCE with much DAA."""
    for model in models:
        kinds = [("", ""), ("_daa", "")] + [("_daa", f"weight{LARGE_WEIGHT}")] * (model == "infonce")
        for kind, label in kinds:
            runs = runs_of(results, f"flickr8k_{model}{kind}", seeds, label)
            if runs:
                yield _title(model, kind, label), runs


def _title(model: str, kind: str, label: str = "") -> str:
    return f"{model}{' + DAA' if kind else ''}{f', weight {LARGE_WEIGHT}' if label else ''}"


def _command(run: Mapping[str, Any]) -> str:
    sets = "".join(f" --set {setting}" for setting in run["settings"])
    return f"halation train {run['recipe']}{sets}"


def relevance_tables(results: Results, relevances: Sequence[str], seeds: Sequence[int]) -> list[Table]:
    """ASP under each relevance for each relevance trained by, one table per direction."""
    base = runs_of(results, "flickr8k_infonce", seeds)
    trained = [("nothing (base)", base)] + [
        (name, runs_of(results, "flickr8k_infonce_daa", seeds, "" if name == "tfidf" else name)) for name in relevances
    ]
    trained = [(name, runs) for name, runs in trained if runs]
    if len(trained) < 3:
        return []
    measures = [f"ASP({name})" for name in (*relevances, "mean")]
    tables = []
    for side, direction in _DIRECTIONS.items():
        rows = [
            [
                name,
                _spread([run["test"]["rsum"] for run in runs]),
                *(_spread([run["test"][side][measure] for run in runs]) for measure in measures),
            ]
            for name, runs in trained
        ]
        tables.append(Table(direction.capitalize(), ["trained by", "R-sum", *measures], rows))
    return tables


def caption_tables(results: Results, captions: Sequence[int], seeds: Sequence[int]) -> list[Table]:
    """Recall and ASP by the number of captions an image has in training."""
    header = ["captions", "model", "R@1", "R-sum", "ASP(tfidf)"]
    rows = []
    for count in captions:
        for kind in ("", "_daa"):
            runs = runs_of(results, f"flickr8k_infonce{kind}", seeds, "" if count == 5 else f"captions{count}")
            if runs:
                total = _spread([run["test"]["rsum"] for run in runs])
                row = [str(count), _title("infonce", kind), _pair(runs, "R@1"), total, _pair(runs, "ASP(tfidf)")]
                rows.append(row)
    note = "InfoNCE, trained with one to five captions per image. Pairs are image → text / text → image."
    return [Table("How many captions an image needs", header, without_repeats(rows), note)] if len(rows) > 2 else []


def trials_tables(trials: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Every trial with its figures on the dev split, one table per recipe."""
    header = ["settings that differ from the recipe", "images", "R@1", "R-sum", "ASP(tfidf)", "R-P(people)"]
    by_recipe: dict[str, list[list[str]]] = {}
    for trial in trials:
        dev = trial["dev"]
        note, images = _trial_note(trial)
        row = [
            note,
            images,
            f"{dev['R@1 i2t']:.1f}{_SLASH}{dev['R@1 t2i']:.1f}",
            f"{dev['rsum']:.1f}",
            f"{dev['ASP(tfidf) i2t']:.1f}{_SLASH}{dev['ASP(tfidf) t2i']:.1f}",
            f"{dev['R-P(people) i2t']:.1f}{_SLASH}{dev['R-P(people) t2i']:.1f}" if "R-P(people) i2t" in dev else "",
        ]
        by_recipe.setdefault(str(trial["recipe"]), []).append(row)
    return [Table(recipe, header, rows) for recipe, rows in by_recipe.items()]


def _trial_note(trial: Mapping[str, Any]) -> tuple[str, str]:
    """Settings and remarks of a trial, chosen ones with a mark; and on how many dev images, where that was noted."""
    remarks = [part for part in str(trial.get("note", "")).split("; ") if part]
    images = next((part.split()[0] for part in remarks if re.fullmatch(r"\d+ dev images", part)), "")
    remarks = [part for part in remarks if part != f"{images} dev images"]
    parts = ["**chosen**" if trial.get("chosen") else "", " ".join(trial["settings"])]
    parts.append(f"({'; '.join(remarks)})" if remarks else "")
    return " ".join(part for part in parts if part) or "none", images


def difference(base: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]], seed: int = 0) -> list[float]:
    """R-sum of `other` minus that of `base`, and its 95 % interval: seeds averaged, images resampled in pairs."""
    per_image: FloatArray = 20.0 * (_by_image(other) - _by_image(base))
    draws = np.random.default_rng(seed).integers(len(per_image), size=(_DRAWS // 100, 100, len(per_image)))
    means = np.concatenate([per_image[block].mean(axis=1) for block in draws])
    low, high = np.percentile(means, (2.5, 97.5))
    return [float(per_image.mean()), float(low), float(high)]


def _by_image(runs: Sequence[Mapping[str, Any]]) -> FloatArray:
    return np.asarray(np.mean([run["test"]["rsum_by_image"] for run in runs], axis=0))


def change_table(results: Results, models: Sequence[str], seeds: Sequence[int]) -> Table:
    """What DAA changes: ASP(tfidf), R-sum with its interval, and agreement with experts."""
    header = ["model", "ASP(tfidf) i2t", "ASP(tfidf) t2i", "R-sum [95 %]", "Expert τ_c", "seeds"]
    rows = []
    for model, label in _with_both(results, models, seeds):
        base, other = _base_and_daa(results, model, label, seeds)
        change, low, high = difference(base, other)
        rows.append(
            [
                f"{model}{f', weight {LARGE_WEIGHT}' if label else ''}",
                *(signed(_mean(other, side, "ASP(tfidf)") - _mean(base, side, "ASP(tfidf)")) for side in _SIDES),
                f"{signed(change)} [{signed(low)}, {signed(high)}]",
                signed(_expert(other) - _expert(base)),
                str(len(base)),
            ]
        )
    note = "DAA against the same model without it. A large weight is a trade: read R-sum and Expert τ_c together."
    return Table("What DAA changes", header, rows, note)


def unconfirmed(results: Results, models: Sequence[str], seeds: Sequence[int]) -> str:
    """How far measures that DAA was not trained on confirm its gain; empty without runs to compare."""
    changes = [
        _expert(other) - _expert(base)
        for model, label in _with_both(results, models, seeds)
        if not label
        for base, other in [_base_and_daa(results, model, label, seeds)]
    ]
    if not changes:
        return ""
    fallen = sum(change < 0 for change in changes)
    confirmed = "does not confirm it" if 2 * fallen >= len(changes) else "does not settle it"
    return (
        "**A gain counts only where a truth that was not trained on confirms it.** “+ DAA” gains ASP(tfidf), the very "
        "metric it was trained on. ASP(cider) rises with it, but is made of the same captions in much the same way. "
        f"The experts' judgement {confirmed} (Expert τ_c falls for {fallen} of {len(changes)} models)."
    )


def _with_both(results: Results, models: Sequence[str], seeds: Sequence[int]) -> list[tuple[str, str]]:
    """Models (and the label of their runs) that were trained with and without DAA, with the same number of seeds."""
    pairs = [(model, "") for model in models] + [("infonce", f"weight{LARGE_WEIGHT}")]
    sizes = [tuple(map(len, _base_and_daa(results, model, label, seeds))) for model, label in pairs]
    return [pair for pair, (base, other) in zip(pairs, sizes, strict=True) if base and base == other]


def _base_and_daa(
    results: Results, model: str, label: str, seeds: Sequence[int]
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    return runs_of(results, f"flickr8k_{model}", seeds), runs_of(results, f"flickr8k_{model}_daa", seeds, label)


def _mean(runs: Sequence[Mapping[str, Any]], side: str, name: str) -> float:
    return float(np.mean([run["test"][side][name] for run in runs]))


def _expert(runs: Sequence[Mapping[str, Any]]) -> float:
    return float(np.mean([run["test"]["expert_tau_c"] for run in runs]))


def certainty_table(results: Results, models: Sequence[str], seeds: Sequence[int]) -> Table:
    """R@1 by fifth of uncertainty, of the models that have one."""
    rows = []
    for model in models:
        for kind in ("", "_daa"):
            runs = runs_of(results, f"flickr8k_{model}{kind}", seeds)
            if not runs or runs[0]["test"]["fifths"]["captions"] is None:
                continue
            for side in ("images", "captions"):
                values = np.mean([run["test"]["fifths"][side] for run in runs], axis=0)
                rows.append([_title(model, kind), side, *(f"{value:.1f}" for value in values)])
    header = ["model", "queries", "most certain", "2", "3", "4", "least certain"]
    note = "Queries sorted by σ, in fifths. If σ tells you how hard a query is, R@1 falls from left to right."
    return Table("R@1 by uncertainty", header, without_repeats(rows), note)


def front(results: Results, weights: Sequence[float]) -> list[tuple[float, Mapping[str, Any]]]:
    """(weight of DAA, test results), by weight; empty if there are too few points to plot."""
    points = [(0.0, runs_of(results, "flickr8k_infonce", (0,)))]
    points += [(weight, runs_of(results, "flickr8k_infonce_daa", (0,), f"weight{weight:g}")) for weight in weights]
    known = [(weight, runs[0]["test"]) for weight, runs in points if runs]
    return known if len(known) >= 3 else []


def front_plot(results: Results, weights: Sequence[float], path: Path) -> bool:
    """Plot R-sum against ASP as the weight of DAA grows. Returns False if there are too few points to plot."""
    points = front(results, weights)
    if not points:
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, side, what in zip(panels, _SIDES, ("image → captions", "caption → images"), strict=True):
        asp, recall = [test[side]["ASP(tfidf)"] for _, test in points], [test["rsum"] for _, test in points]
        axes.plot(asp, recall, "o-", color="tab:blue")
        for weight, x, y in zip([weight for weight, _ in points], asp, recall, strict=True):
            axes.annotate(f"{weight:g}", (x, y), xytext=(-9, -11), textcoords="offset points", fontsize=8, ha="center")
        axes.set(xlabel="ASP(tfidf), %", title=what)
        axes.grid(alpha=0.3)
        axes.margins(0.09)
    panels[0].set_ylabel("R-sum")
    figure.suptitle("InfoNCE + weight · DAA on Flickr8k (test, seed 0), by weight")
    with publish_file(path) as temporary:
        figure.savefig(temporary, dpi=150)
    return True


def _pair(runs: Sequence[Mapping[str, Any]], name: str) -> str:
    return " / ".join(_spread([run["test"][side][name] for run in runs]) for side in _SIDES)


def _spread(values: Sequence[float]) -> str:
    mean = f"{np.mean(values):.1f}"
    return mean if len(values) < 2 else f"{mean} ± {np.std(values, ddof=1):.1f}"
