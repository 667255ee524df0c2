"""The content of preprocess.json: how to prepare pictures and texts for the graphs, and what was left out."""

from __future__ import annotations

from typing import Any

import halation
from halation._errors import HalationError, InputError
from halation.encoders import EfficientNetLite0, Model, SmallConvNet, Vocabulary, WordsAndSentence

__all__ = ["describe", "how_to_prepare", "left_out_of", "why_no_backbone"]

FORMAT = "halation onnx 1"
_PATTERNS = {"words": r"\b\w\w+\b", "whitespace": r"\S+"}
_SIMILARITIES = {
    "cosine": "mean_a · mean_b / (|mean_a| |mean_b|)",
    "l2": "−|mean_a − mean_b|²",
    "csd": "−(|mean_a − mean_b|² + Σ exp(log_var_a) + Σ exp(log_var_b))",
    "wasserstein2": "−(|mean_a − mean_b|² + |exp(log_var_a / 2) − exp(log_var_b / 2)|²)",
}
_SENTENCE = {
    "model": "sentence-transformers/all-MiniLM-L6-v2",
    "how": "mean of the last hidden states over at most 256 word pieces, divided by its length, rounded to float16",
    "dim": 384,
}


def describe(model: Model, files: dict[str, Any], text: Any, similarity: str, opset: int, dim: int) -> dict[str, Any]:
    """The content of preprocess.json: the inputs of each graph, and how to make them."""
    network = None if model.images.on_features and "backbone" not in files else model.images.network
    text_notes = _how_to_read(text.vocabulary)
    if isinstance(text, WordsAndSentence):
        text_notes["sentence"] = _SENTENCE
    return {
        "format": FORMAT,
        "halation": halation.__version__,
        "opset": opset,
        "dim": dim,
        "files": files,
        "image": None if network is None else how_to_prepare(network),
        "text": text_notes,
        "outputs": {
            "mean": "(batch, dim) float32",
            "log_var": "(batch, dim) float32, log σ²; −inf where the model gives points, whose variance is 0",
        },
        "similarity": {"name": similarity, "score": _SIMILARITIES[similarity], "bigger": "closer"},
    }


def how_to_prepare(network: Any) -> dict[str, Any]:
    """How a picture becomes pixels (3, H, W): RGB, resize (Pillow's bicubic), centre crop, multiply · value + add."""
    if isinstance(network, SmallConvNet):
        size = network.size
        return {"resize": [size, size], "short_side": None, "crop": None, "multiply": 1 / 127.5, "add": -1.0}
    if isinstance(network, EfficientNetLite0):
        return {"resize": None, "short_side": 256, "crop": 224, "multiply": 1 / 128, "add": -127 / 128}
    raise InputError(
        f"{type(network).__name__} is a model of transformers, with its own image processor",
        remedy="export it with that library's tools (optimum); train a head on its features, and export that here",
    )


def _how_to_read(vocabulary: Vocabulary) -> dict[str, Any]:
    """How a text becomes ids: the pattern finds words; an id is the index in vocabulary.json's "words" plus `first`."""
    if vocabulary.tokenizer not in _PATTERNS:
        raise InputError(
            f"the tokenizer {vocabulary.tokenizer} is not a plain pattern, as ONNX export needs",
            remedy="train with the tokenizer words",
        )
    return {
        "pattern": _PATTERNS[vocabulary.tokenizer],
        "lowercase": vocabulary.tokenizer == "words",
        "vocabulary": "vocabulary.json",
        "padding": vocabulary.PADDING,
        "unknown": vocabulary.UNKNOWN,
        "first": vocabulary.FIRST_WORD,
        "empty": "a text without words is one unknown word",
    }


def left_out_of(model: Model) -> dict[str, str]:
    """The parts of a run that the graphs do not hold, and why."""
    left_out = {}
    if isinstance(model.network.text.backbone, WordsAndSentence):
        left_out["sentence encoder"] = (
            "text.onnx takes its vectors as the input `sentence`; preprocess.json says which model gives them"
        )
    if (model.folder / "calibration.json").is_file():
        left_out["calibration.json"] = (
            "graphs give Gaussians, not probabilities; export the run as a folder to take it along"
        )
    return left_out


def why_no_backbone(model: Model, error: HalationError) -> str:
    """Why there is no backbone.onnx, without naming folders of this machine."""
    if model.images.backbone is None:
        return "the run does not say which network computed its features; name the backbone"
    return error.render(lambda path: "the run" if path == model.folder else path.name)
