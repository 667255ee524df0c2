"""Export a run for others: a folder as on Hugging Face, ONNX for programs without torch, TREC files for evaluators.

export_run("runs/pcme", "pcme-flickr8k", licence="mit")     # safetensors, config, vocabulary, model card
model = halation.load("pcme-flickr8k")                      # the same scores, bit for bit
export_onnx("runs/pcme", "pcme-onnx")                       # image.onnx, text.onnx: mean and log σ²
export_trec("runs/pcme", "trec", data="flickr8k")           # run and qrels files
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.export._folder import export_run
    from halation.export._onnx import export_onnx
    from halation.export._trec import export_trec

__all__ = [
    "export_onnx",
    "export_run",
    "export_trec",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "export_onnx": "halation.export._onnx",
            "export_run": "halation.export._folder",
            "export_trec": "halation.export._trec",
        },
    )
