"""The model card: what a stranger must know before using a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import halation
from halation.evaluation import Report
from halation.training import Recipe

__all__ = ["model_card"]

_HEADS = {
    "point": "one point an item (VSE++, InfoNCE), compared by their cosine",
    "pvse": "PVSE: several points an item; the best pair counts",
    "pcme": "PCME: every image and caption a Gaussian",
    "pcmepp": "PCME++: every image and caption a Gaussian, compared by CSD",
    "sgr": "SGR: a network that looks from each word to each region",
    "saf": "SAF: a network that looks from each word to each region",
    "sgraf": "SGRAF: the mean of SGR and SAF",
}
_SIGMA = (
    "Every image and every caption is a Gaussian N(μ, diag σ²). A large σ says that many different items fit: a vague "
    "caption, a picture of common things. It is no probability of being wrong, and its scale is the model's own: "
    "compare σ within one model only."
)
_POINT = "This model gives points: it says nothing of its own uncertainty (`log_var` is None)."
_PRETRAINED = 'the extra `pretrained` (MiniLM reads the captions): `pip install "halation[pretrained]"`'
_NEEDS = {
    "words_and_sentence": _PRETRAINED,
    "minilm": _PRETRAINED,
    "hub": 'the extra `hub` (transformers), and the model named in config.toml: `pip install "halation[hub]"`',
}


def model_card(folder: Path, recipe: Recipe, about: Mapping[str, Any], licence: str, cut: Sequence[str] = ()) -> str:
    """README.md of an exported run: front matter for the hub, then what people read.

    cut   settings of which only the last name is left, because they named places outside of the folder
    """
    spread = _SIGMA if recipe.model.head in ("pcme", "pcmepp") else _POINT
    sections = [
        ("Use", _use(folder, recipe)),
        ("Figures", _figures(folder)),
        ("Training", _training(recipe, about, cut)),
        ("Uncertainty", spread),
        ("Probabilities", _probabilities(folder)),
        ("Intended use", _INTENDED),
        ("Limits", _LIMITS),
        ("Licence", _licence(licence)),
    ]
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections)
    name = recipe.name or "a run"
    return f"{_front(recipe, licence)}\n# {name}\n\n{_HEADS.get(recipe.model.head, recipe.model.head)}.\n\n{body}\n"


def _front(recipe: Recipe, licence: str) -> str:
    tags = ["image-text-retrieval", "halation", recipe.model.head, *(["daa"] if recipe.loss.daa.weight else [])]
    return "\n".join(
        ["---", "library_name: halation", f"license: {licence}", "tags:", *(f"- {tag}" for tag in tags), "---", ""]
    )


def _use(folder: Path, recipe: Recipe) -> str:
    needs = [_NEEDS[kind] for kind in (recipe.text.backbone, recipe.image.backbone) if kind in _NEEDS]
    also = "".join(f"\n\nNeeds {need}." for need in dict.fromkeys(needs))
    pixels = ""
    if recipe.image.backbone == "precomputed":
        pixels = (
            f"\n\nImages come as features ({recipe.data.features or 'see config.toml'}), not as pixels; the extra "
            "`pretrained` computes those of EfficientNet-Lite0 from pictures."
        )
    return (
        "```python\nimport halation\n\n"
        'model = halation.load("this folder")     # nothing is downloaded, nothing is executed\n```\n\n'
        'or `halation explain FOLDER --image photo.jpg --text "…"`, `halation embed FOLDER PICTURES -o EMBEDDINGS`.'
        f"{also}{pixels}"
    )


def _figures(folder: Path) -> str:
    path = folder / "report.json"
    if not path.is_file():
        return "This run was not evaluated."
    chosen = "On the split it was validated on, by which its best epoch was chosen too: a little kind."
    return f"{chosen}\n\n{Report.from_json(path).to_markdown().strip()}"


def _training(recipe: Recipe, about: Mapping[str, Any], cut: Sequence[str]) -> str:
    weights = {name: term.weight for name, term in vars(recipe.loss).items() if term.weight}
    versions = about.get("versions", {})
    epochs, best = about.get("epochs", recipe.train.epochs), about.get("best_epoch", "?")
    lines = [
        f"data: {about.get('data', 'not recorded')}",
        f"images: {recipe.image.backbone}; captions: {recipe.text.backbone}",
        str(recipe.model),
        f"loss: {', '.join(f'{name} × {weight:g}' for name, weight in weights.items()) or 'none'}",
        *([f"linear maps fitted by CCA, ridge {recipe.cca.ridge:g}"] if recipe.cca.fit else []),
        f"{epochs} epochs (best: {best}), batch {recipe.train.batch_size}, seed {recipe.train.seed}"
        if epochs
        else f"no epochs, seed {recipe.train.seed}",
        f"halation {versions.get('halation', halation.__version__)}, torch {versions.get('torch', '?')}",
        "all settings: config.toml",
        *(f"{key} in config.toml named a place on the machine of training; its last name is left" for key in cut),
    ]
    return "\n".join(f"- {line}" for line in lines)


def _probabilities(folder: Path) -> str:
    if not (folder / "calibration.json").is_file():
        return "Scores are no probabilities: this run was not calibrated (`halation calibrate FOLDER --data DATA`)."
    return (
        "calibration.json turns scores into match probabilities and says when nothing matches. They hold for data like "
        "those they were fitted on; elsewhere calibrate again."
    )


_INTENDED = (
    "Ranking pictures for words and captions for pictures, in collections like those it was trained on; research on "
    "retrieval where many answers are right."
)
_LIMITS = (
    "It knows the words and the kinds of pictures of its training captions and nothing else; what people wrote there, "
    "with their habits and prejudices, it has learnt. It was not made to recognise persons or to decide about them. "
    "Scores of two models cannot be compared."
)


def _licence(licence: str) -> str:
    if licence == "unknown":
        return (
            "Not stated. Whoever publishes these weights should say so here, and mind the licence of the training data."
        )
    return f"{licence}, for the weights. The training data have a licence of their own."
