"""Train on your own folder: pictures beside a JSONL, a recipe of ten lines, a model that knows how sure it is.

    python examples/train_on_your_folder.py [FOLDER]

FOLDER holds images/ and train.jsonl, dev.jsonl, test.jsonl with lines {"image": "a.jpg", "captions": ["…"]}. Without
one, this draws flags of two colours and describes them.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import halation
from halation.data import check
from halation.training import parse_recipe, train

RECIPE = """
name = "flags"
image = { backbone = "small_conv", dim = 32, size = 32 }
text = { backbone = "words_gru", dim = 16, hidden = 32, min_count = 1, dropout = 0.0 }
model = { head = "pcme", dim = 32, dropout = 0.0 }
loss.infonce = { weight = 4.0 }
loss.soft_contrastive = { weight = 1.0, scale = 10.0, shift = 10.0 }
loss.kl = { weight = 0.1 }
train = { epochs = 10, batch_size = 32, unit = "images", captions_per_image = 3, lr = 5e-3, warmup = 10 }
"""
COLOURS = {
    "red": (205, 45, 45), "green": (40, 150, 70), "blue": (40, 70, 190), "white": (240, 240, 235),
    "black": (25, 25, 30), "yellow": (240, 205, 50), "purple": (130, 60, 160), "orange": (240, 130, 35),
}  # fmt: skip


def draw_flags(folder: Path) -> Path:
    """Draw 336 pictures of two colours above or beside each other, with three captions each."""
    draw = np.random.default_rng(0)
    (folder / "images").mkdir(parents=True)
    flags = [(*pair, upright) for pair in itertools.permutations(COLOURS, 2) for upright in (True, False)] * 3
    lines: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    for number, flag in enumerate(draw.permutation(np.array(flags, dtype=object))):
        one, other, upright = flag
        shades = [tuple(int(draw.uniform(0.8, 1.0) * value) for value in COLOURS[name]) for name in (one, other)]
        picture = Image.new("RGB", (32, 32), shades[0])
        picture.paste(shades[1], (0, 16, 32, 32) if upright else (16, 0, 32, 32))
        picture.save(folder / "images" / f"{number}.png")
        relation = "above" if upright else "left of"
        captions = [f"{one} {relation} {other}", f"a flag of {one} and {other}", f"something {one}"]
        split = "train" if number < 240 else "dev" if number < 288 else "test"
        lines[split].append(json.dumps({"image": f"{number}.png", "captions": captions}) + "\n")
    for split, rows in lines.items():
        (folder / f"{split}.jsonl").write_text("".join(rows), encoding="utf-8")
    return folder


def main(given: str | None = None) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(given) if given else draw_flags(Path(name) / "flags")
        print(check(folder), end="\n\n")
        train(parse_recipe(RECIPE), folder, f"{name}/run", log=print)
        model = halation.load(f"{name}/run")
        test = model.open_dataset(folder, "test")
        print(f"\n{halation.evaluate(model.scores(test), test.truth, ['R@1', 'R@5', 'R@10'])}\n")
        _, captions = model.encode_dataset(test)
        sigma = captions.uncertainty().numpy()
        for which, row in (("most", sigma.argmin()), ("least", sigma.argmax())):
            print(f"the {which} certain caption: “{test.captions[row]}” (σ = {sigma[row]:.4f})")


if __name__ == "__main__":
    main(*sys.argv[1:])
