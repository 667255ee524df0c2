"""Export a model: a folder with a model card to share, TREC files, and ONNX for programs without torch.

    python examples/export_model.py

It trains for a moment on drawn scenes. If you have a run of your own, begin at `export_run`. The ONNX part needs the
extra `onnx`.
"""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import halation
from halation.data import draw_scenes
from halation.export import export_onnx, export_run, export_trec

SMALL = {"train.epochs": 1, "train.batch_size": 16, "image.size": 32, "model.dim": 32, "text.hidden": 32}


def sizes(folder: Path) -> str:
    return ", ".join(f"{path.name} ({path.stat().st_size / 1e3:.0f} kB)" for path in sorted(folder.iterdir()))


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        draw_scenes(root / "scenes", train=64, dev=24, test=24, size=32)
        halation.train("scenes_pcme", root / "scenes", root / "run", overrides=SMALL)

        shared = export_run(root / "run", root / "shared", licence="mit")
        print(f"to share: {sizes(shared)}")
        ours, theirs = halation.load(root / "run"), halation.load(shared)
        test = ours.open_dataset(root / "scenes", "test")
        same = np.array_equal(ours.scores(test), theirs.scores(test))
        print(f"opened again, the scores are {'the same, bit for bit' if same else 'different'}")

        files = export_trec(root / "run", root / "trec", root / "scenes")
        print(f"for TREC tools: {', '.join(path.name for path in files)}")

        if find_spec("onnx") and find_spec("onnxruntime"):
            print(f"without torch: {sizes(export_onnx(root / 'run', root / 'onnx'))}")
        else:
            print('without torch: pip install "halation[onnx]" first')


if __name__ == "__main__":
    main()
