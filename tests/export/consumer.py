"""Somebody without halation: `python consumer.py FOLDER PICTURE… -- CAPTION…` prints the score of every pair as JSON.

Nothing but onnxruntime, NumPy and Pillow; docs/exporting.md shows this file.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image


class Model:
    """The graphs of an exported run."""

    def __init__(self, folder: Path) -> None:
        self.notes = json.loads((folder / "preprocess.json").read_text(encoding="utf-8"))
        words = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))["words"]
        self.numbers = {word: n for n, word in enumerate(words, start=self.notes["text"]["first"])}
        self.graphs = {
            name: onnxruntime.InferenceSession(str(folder / graph["file"]))
            for name, graph in self.notes["files"].items()
        }

    def pictures(self, paths: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """mean and log σ² (n, dim)."""
        given = {"pixels": np.stack([self.pixels(Image.open(path)) for path in paths])}
        if "backbone" in self.graphs:
            outputs = self.notes["files"]["backbone"]["outputs"]
            given = dict(zip(outputs, self.graphs["backbone"].run(None, given), strict=True))
        return tuple(self.graphs["image"].run(["mean", "log_var"], given))

    def captions(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """mean and log σ² (n, dim)."""
        rows = [self.ids(text) for text in texts]
        ids = np.full((len(rows), max(map(len, rows))), self.notes["text"]["padding"], dtype=np.int64)
        mask = np.arange(ids.shape[1]) < np.array([len(row) for row in rows])[:, None]
        ids[mask] = [number for row in rows for number in row]
        return tuple(self.graphs["text"].run(["mean", "log_var"], {"ids": ids, "mask": mask}))

    def pixels(self, picture: Image.Image) -> np.ndarray:
        """(3, H, W) float32."""
        steps, picture = self.notes["image"], picture.convert("RGB")
        if steps["resize"] and list(picture.size) != steps["resize"]:
            picture = picture.resize(steps["resize"], Image.Resampling.BICUBIC)
        if steps["short_side"]:
            scale, side = steps["short_side"] / min(picture.size), steps["crop"]
            wide, high = (max(steps["short_side"], round(length * scale)) for length in picture.size)
            left, top = (wide - side) // 2, (high - side) // 2
            picture = picture.resize((wide, high), Image.Resampling.BICUBIC)
            picture = picture.crop((left, top, left + side, top + side))
        values = np.asarray(picture, dtype=np.float32).transpose(2, 0, 1)
        return values * np.float32(steps["multiply"]) + np.float32(steps["add"])

    def ids(self, text: str) -> list[int]:
        """The numbers of the words."""
        how = self.notes["text"]
        words = re.findall(how["pattern"], text.lower() if how["lowercase"] else text)
        return [self.numbers.get(word, how["unknown"]) for word in words] or [how["unknown"]]

    def scores(self, images: tuple[np.ndarray, np.ndarray], texts: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """(n_images, n_texts), bigger = closer."""
        (a, log_a), (b, log_b) = images, texts
        apart = ((a[:, None] - b[None]) ** 2).sum(2)
        kind = self.notes["similarity"]["name"]
        if kind == "cosine":
            return (a @ b.T) / np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
        if kind == "l2":
            return -apart
        assert kind == "csd", kind
        return -(apart + np.exp(log_a).sum(1)[:, None] + np.exp(log_b).sum(1)[None])


if __name__ == "__main__":
    split = sys.argv.index("--")
    model = Model(Path(sys.argv[1]))
    scores = model.scores(model.pictures(sys.argv[2:split]), model.captions(sys.argv[split + 1 :]))
    assert not {"torch", "halation"} & set(sys.modules)
    sys.stdout.write(json.dumps(scores.tolist()))
