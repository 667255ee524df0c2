"""Export a run as ONNX graphs; each is compared with the run's own model before it is kept."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from halation._errors import HalationError, InputError, MissingExtra
from halation._files import write_text
from halation._storage import publish_folder
from halation.data import Features, Tokens
from halation.encoders import HubImage, HubText, Model, WordsAndSentence, load
from halation.export._onnx_graphs import CELLS, Backbone, ImageSide, TextSide, mean_and_log_var
from halation.export._onnx_notes import describe, how_to_prepare, left_out_of, why_no_backbone
from halation.similarity import IndexedSimilarity

__all__ = ["OPSET", "TOLERANCE", "export_onnx"]

OPSET = 17
TOLERANCE = 1e-4
"""How much any number of a graph's outputs may differ from the model's."""

_BATCH, _LENGTH = 2, 5  # of the inputs a graph is traced with; it takes any afterwards


class Graph(NamedTuple):
    """A module to trace, with example inputs and the names of its tensors.

    model   computes the same outputs from the same inputs with the run's own modules; the graph is compared with it
    long    inputs whose axis 1 may have any length; axis 0, the batch, always may
    """

    module: nn.Module
    model: Callable[..., tuple[Tensor, ...]]
    inputs: dict[str, Tensor]
    outputs: tuple[str, ...]
    long: tuple[str, ...] = ()


def export_onnx(
    run: Model | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    backbone: str | None = None,
    data: str | os.PathLike[str] | None = None,
) -> Path:
    """Write image.onnx, text.onnx, preprocess.json and vocabulary.json into the folder `out` (extra `onnx`).

    Each graph gives `mean` and `log_var` (log σ²; −inf if the model gives points), for any batch and any length of
    text. image.onnx takes pixels. For a run trained on features it takes features; backbone.onnx beside it computes
    them from pixels, if it is known which network did (`backbone` and `data` as in `halation.load`).
    preprocess.json lists under "left_out" what is missing, and why. If you name a `backbone` and it cannot be exported,
    that is an error.

    The folder is published only if every graph agrees with the run's own model within `TOLERANCE`. Returns `out`.
    """
    model = run if isinstance(run, Model) else load(run, backbone=backbone, data=data)
    runtime = _onnxruntime()
    similarity = _check(model)
    left_out = left_out_of(model)
    graphs = {"image": _image(model), "text": _text(model)}
    try:
        graphs |= _backbone(model)
    except HalationError as error:
        if backbone is not None:
            raise
        left_out["backbone.onnx"] = why_no_backbone(model, error)
    with publish_folder(out) as folder:
        files: dict[str, Any] = {}
        for name, graph in graphs.items():
            path = folder / f"{name}.onnx"
            _write(graph, path)
            _compare(runtime, graph, path)
            files[name] = {"file": path.name, "inputs": list(graph.inputs), "outputs": list(graph.outputs)}
        text, dim = model.network.text.backbone, model.config.model.dim or _width(graphs["image"])
        notes = describe(model, files, text, similarity, OPSET, dim)
        notes["left_out"] = left_out
        write_text(folder / "preprocess.json", json.dumps(notes, indent=2, ensure_ascii=False) + "\n")
        shutil.copyfile(model.folder / "vocabulary.json", folder / "vocabulary.json")
    return Path(out)


def _onnxruntime() -> Any:
    try:
        importlib.import_module("onnx")
        return importlib.import_module("onnxruntime")
    except ImportError:
        raise MissingExtra("exporting to ONNX", "onnx") from None


def _check(model: Model) -> str:
    """The name of the model's similarity; an InputError if the model cannot be exported."""
    network, head = model.network, model.config.model.head
    if not isinstance(network.compare, IndexedSimilarity):
        by = "several vectors per item" if head == "pvse" else "a network that looks at both items at once"
        raise InputError(
            f"is a {head} model: it compares by {by}, so there is no mean and no variance to export; ONNX takes heads "
            "of one vector or one Gaussian per item (point, pcme, pcmepp)",
            path=model.folder,
        )
    for side, kind in ((network.image, HubImage), (network.text, HubText)):
        if isinstance(side.backbone, kind):
            raise InputError(
                "is built on a model of transformers, which has its own tools for ONNX (optimum)",
                path=model.folder,
                remedy="export that model with them; train a head on its features, and export the head here",
            )
    return network.compare.name


def _image(model: Model) -> Graph:
    side: Any = model.network.image
    on_features = model.images.on_features
    module = ImageSide(side, on_features)

    def expected(pixels: Tensor, cells: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return mean_and_log_var(model.network.images(Features(pixels, cells) if on_features else pixels))

    if not on_features:
        size = _picture_size(side.backbone)
        return Graph(module, expected, {"pixels": torch.rand(_BATCH, 3, size, size)}, ("mean", "log_var"))
    inputs = {"pooled": torch.rand(_BATCH, side.backbone.pooled_dim)}
    if side.backbone.local_dim:
        inputs["cells"] = torch.rand(_BATCH, CELLS, side.backbone.local_dim)
    fixed = bool(side.backbone.grid)  # cells are averaged from a square of known size
    return Graph(module, expected, inputs, ("mean", "log_var"), () if fixed else ("cells",))


def _text(model: Model) -> Graph:
    side: Any = model.network.text
    ids = torch.randint(0, len(side.backbone.vocabulary), (_BATCH, _LENGTH))
    mask = torch.arange(_LENGTH) < torch.tensor([[_LENGTH], [_LENGTH - 2]])
    inputs = {"ids": ids, "mask": mask}
    if isinstance(side.backbone, WordsAndSentence):
        inputs["sentence"] = torch.nn.functional.normalize(torch.rand(_BATCH, 384), dim=1)

    def expected(*tokens: Tensor) -> tuple[Tensor, Tensor]:
        return mean_and_log_var(model.network.captions(Tokens(*tokens)))

    return Graph(TextSide(side), expected, inputs, ("mean", "log_var"), ("ids", "mask"))


def _backbone(model: Model) -> dict[str, Graph]:
    """The graph from pixels to features; none if the run takes pixels, an error if the network is not known."""
    if not model.images.on_features:
        return {}
    network = model.images.network
    size = _picture_size(network)
    backbone: Any = model.network.image.backbone
    cells = bool(backbone.local_dim)
    module = Backbone(network, model.images.projection, cells)

    def expected(pixels: Tensor) -> tuple[Tensor, ...]:
        return module.outputs(network(pixels))

    outputs = ("pooled", "cells") if cells else ("pooled",)
    return {"backbone": Graph(module, expected, {"pixels": torch.rand(_BATCH, 3, size, size)}, outputs)}


def _picture_size(network: Any) -> int:
    """The height and width of a prepared picture, in pixels."""
    steps = how_to_prepare(network)
    return int(steps["crop"] or steps["resize"][0])


def _width(graph: Graph) -> int:
    with torch.no_grad():
        return int(graph.module(*graph.inputs.values())[0].shape[1])


def _write(graph: Graph, path: Path) -> None:
    axes = {name: {0: "batch", **({1: "length"} if name in graph.long else {})} for name in graph.inputs}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tracing warns about problems that `_compare` would find
        # traced: torch's newer exporter needs another package, takes 30 × as long and fixes the length of texts
        torch.onnx.export(
            graph.module,
            tuple(graph.inputs.values()),
            path,
            input_names=list(graph.inputs),
            output_names=list(graph.outputs),
            dynamic_axes={**axes, **{name: {0: "batch"} for name in graph.outputs}},
            opset_version=OPSET,
            dynamo=False,
        )


def _compare(runtime: Any, graph: Graph, path: Path) -> None:
    """Run the graph on batches and lengths it was not traced with; an error if it differs from the model."""
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for batch, length in ((1, 1), (3, 9)):
        inputs = {name: _random_input(name, x, batch, length, graph) for name, x in graph.inputs.items()}
        with torch.no_grad():
            expected = graph.model(*inputs.values())
        outputs = session.run(None, {name: x.numpy() for name, x in inputs.items()})
        for name, ours, theirs in zip(graph.outputs, expected, outputs, strict=True):
            if not torch.allclose(ours, torch.from_numpy(theirs), atol=TOLERANCE, rtol=TOLERANCE):
                raise HalationError(
                    f"{path.name}: {name} of the graph differs from the model's; nothing was written. Please report it"
                )


def _random_input(name: str, traced: Tensor, batch: int, length: int, graph: Graph) -> Tensor:
    """A random input of the same kind as the traced one, for another batch and length."""
    shape = (
        (batch, length if name in graph.long else traced.shape[1], *traced.shape[2:]) if traced.ndim > 1 else (batch,)
    )
    draw = torch.Generator().manual_seed(batch)
    if name == "mask":
        return torch.arange(shape[1]) < torch.randint(1, shape[1] + 1, (batch, 1), generator=draw)
    if traced.dtype == torch.int64:
        return torch.randint(0, int(traced.max()) + 1, shape, generator=draw)
    return torch.rand(shape, generator=draw)
