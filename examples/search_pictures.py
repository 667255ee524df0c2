"""Search pictures by words and by a picture: embed a folder, index it, ask it.

    python examples/search_pictures.py

It trains a small model on two-coloured pictures first, so that it runs anywhere. If you have a run of your own, begin
at `embed`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from halation.search import Answer, embed, make_index, open_search
from halation.training import parse_recipe, train

RECIPE = """
name = "squares"
image = { backbone = "small_conv", dim = 32, size = 32 }
text = { backbone = "words_gru", dim = 16, hidden = 32, min_count = 1, dropout = 0.0 }
model = { head = "pcme", dim = 32, dropout = 0.0 }
loss.infonce = { weight = 4.0 }
loss.soft_contrastive = { weight = 1.0, scale = 10.0, shift = 10.0 }
loss.kl = { weight = 0.1 }
train = { epochs = 8, batch_size = 32, unit = "images", captions_per_image = 2, lr = 5e-3, warmup = 10 }
"""
COLOURS = {"red": (205, 45, 45), "green": (40, 150, 70), "blue": (40, 70, 190), "white": (240, 240, 235)}


def draw_squares(folder: Path, count: int, seed: int) -> list[str]:
    """Draw squares on a ground of another colour; returns a caption for each."""
    draw, captions = np.random.default_rng(seed), []
    folder.mkdir(parents=True)
    for number in range(count):
        one, other = draw.choice(list(COLOURS), 2, replace=False)
        shades = [tuple(int(draw.uniform(0.8, 1.0) * value) for value in COLOURS[name]) for name in (one, other)]
        picture = Image.new("RGB", (32, 32), shades[1])
        picture.paste(shades[0], (8, 8, 24, 24))
        picture.save(folder / f"{number:03d}_{one}_on_{other}.png")
        captions.append(f"a {one} square on {other}")
    return captions


def train_model(root: Path) -> Path:
    """Train on 200 pictures, validate on 40; returns the run's folder."""
    data = root / "squares"
    for split, count, seed in (("train", 200, 0), ("dev", 40, 1)):
        texts = draw_squares(data / "images" / split, count, seed)
        names = sorted(path.name for path in (data / "images" / split).iterdir())
        with (data / f"{split}.jsonl").open("w", encoding="utf-8") as file:
            for name, text in zip(names, texts, strict=True):
                captions = [text, text.split(" on ")[0]]  # "a red square on blue", "a red square"
                file.write(json.dumps({"image": f"{split}/{name}", "captions": captions}) + "\n")
    train(parse_recipe(RECIPE), data, root / "run")
    return root / "run"


def show(title: str, answer: Answer) -> None:
    print(title)
    for rank, hit in enumerate(answer.hits, start=1):
        print(f"  {rank}. {hit.score:7.3f}  {hit.id}")
    for note in answer.notes:
        print(f"  note: {note}")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        run = train_model(root)
        draw_squares(root / "photos", 100, seed=2)  # these have no captions

        embeddings = embed(run, root / "photos", root / "emb")  # the same call later embeds what is new
        search = open_search(make_index(embeddings, root / "idx"))
        show("“a red square on blue”", search.text("a red square on blue", k=3))
        show("“a red zebra”", search.text("a red zebra", k=2))
        first = search.text("a green square on white", k=1).hits[0]
        assert first.path is not None
        show(f"like {first.id}", search.image(first.path, k=3, want="images"))


if __name__ == "__main__":
    main()
