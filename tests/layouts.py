"""Datasets in the layouts people have them in, and models of transformers, all small enough to make in a moment.

Every picture is drawn, every caption invented, every weight drawn at random.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw

from worlds import COLOURS, PLACES, THINGS, sample_truth

SIZES = {"train": 8, "dev": 4, "test": 4}
_SIZE = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
_MARKS = ("[PAD]", "[UNK]", "[BOS]", "[EOS]")


def captions_of(number: int, count: int = 5) -> list[str]:
    """What is said of the picture with this number."""
    thing, colour, place = (words[number % len(words)] for words in (THINGS, COLOURS, PLACES))
    said = [
        f"a {colour} {thing} on the {place}",
        f"the {thing} is {colour}",
        f"a {thing} and the {place}",
        f"{place} with a {colour} thing",
        f"a {thing}",
    ]
    return [said[k % len(said)] for k in range(count)]


def draw(path: Path, number: int) -> Path:
    """A rectangle in a colour of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("RGB", (40, 32), (37 * number % 256, 91 * number % 256, 128))
    ImageDraw.Draw(image).rectangle((4, 4, 20 + number % 16, 24), fill=(255 - 37 * number % 256, 30, 13 * number % 256))
    image.save(path)
    return path


def write_flickr8k(root: Path, sizes: Mapping[str, int] = SIZES) -> Path:
    """Flickr8k.token.txt, its lists and images/."""
    lines, number = [], 0
    for split, size in sizes.items():
        names = []
        for _ in range(size):
            names.append(f"p{number}.jpg")
            draw(root / "images" / names[-1], number)
            lines += [f"{names[-1]}#{k}\t{text} ." for k, text in enumerate(captions_of(number))]
            number += 1
        (root / f"Flickr_8k.{split}Images.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    (root / "Flickr8k.token.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root


def write_judgements(root: Path) -> Path:
    """ExpertAnnotations.txt and CrowdFlowerAnnotations.txt of the test images in `root`: six of each an image."""
    names = (root / "Flickr_8k.testImages.txt").read_text(encoding="utf-8").split()
    ids = [f"{name}#{k}" for name in names for k in range(5)]
    generator = np.random.default_rng(0)
    expert, crowd = [], []
    for image in names:
        scores = generator.integers(1, 5, (6, 3))
        asked = generator.choice(ids, 6, replace=False)
        expert += ["\t".join([image, *map(str, (caption, *row))]) for caption, row in zip(asked, scores, strict=True)]
        for caption in generator.choice(ids, 6, replace=False):
            yes = int(generator.integers(0, 4))
            crowd.append("\t".join([image, caption, f"{yes / 3:.6f}", str(yes), str(3 - yes)]))
    (root / "ExpertAnnotations.txt").write_text("\n".join(expert) + "\n", encoding="utf-8")
    (root / "CrowdFlowerAnnotations.txt").write_text("\n".join(crowd) + "\n", encoding="utf-8")
    return root


def write_features(root: Path) -> Path:
    """features/efflite0_*.npy of the pictures in images/, where the recipes of Flickr8k look for them."""
    names = sorted(path.name for path in (root / "images").iterdir())
    generator = np.random.default_rng(0)
    (root / "features").mkdir()
    for kind, shape in (("pooled", (len(names), 12)), ("local", (len(names), 4, 12))):
        np.save(root / "features" / f"efflite0_{kind}.npy", generator.normal(size=shape).astype(np.float16))
    (root / "features" / "images.txt").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    return root


def write_judged_coco(root: Path) -> Path:
    """karpathy_test5k.jsonl with categories, and extended positives as CxC's, out of the air."""
    truth = sample_truth(images=40, seed=1)
    assert truth.captions is not None and truth.classes is not None and truth.class_names is not None
    generator = np.random.default_rng(0)
    i2t: dict[str, list[int]] = {}
    t2i: dict[str, list[int]] = {}
    root.mkdir(parents=True, exist_ok=True)
    with (root / "karpathy_test5k.jsonl").open("w", encoding="utf-8") as file:
        for image in range(40):
            ids = list(range(5 * image, 5 * image + 5))
            classes = [name for name, here in zip(truth.class_names, truth.classes[image], strict=True) if here]
            row = {"image_id": image, "caption_ids": ids, "captions": [truth.captions[k] for k in ids]}
            file.write(json.dumps({**row, "categories": classes if image != 7 else []}) + "\n")
            for caption in {*ids, *generator.integers(200, size=3).tolist()}:
                i2t.setdefault(str(image), []).append(caption)
                t2i.setdefault(str(caption), []).append(image)
    (root / "cxc_image_to_caption.json").write_text(json.dumps(i2t), encoding="utf-8")
    (root / "cxc_caption_to_image.json").write_text(json.dumps(t2i), encoding="utf-8")
    return root


def write_coco_ids(path: Path, images: int = 40) -> Path:
    """A JSONL with ids of COCO's test images and captions, those that eccv-caption knows, and invented captions."""
    import eccv_caption

    known = Path(eccv_caption.__file__).parent / "data" / "original_image_to_caption.json"
    chosen = list(json.loads(known.read_text(encoding="utf-8")).items())[:images]
    rows = [
        {"image_id": int(image), "caption_ids": ids, "captions": captions_of(number, len(ids))}
        for number, (image, ids) in enumerate(chosen)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_karpathy(root: Path, dataset: str) -> Path:
    """dataset_coco.json with train2014/ and val2014/, or dataset_flickr30k.json with images/."""
    images: list[dict[str, Any]] = []
    parts = {"train": 6, "restval": 2, "val": 4, "test": 4} if dataset == "coco" else {"train": 8, "val": 4, "test": 4}
    for split, size in parts.items():
        for _ in range(size):
            number = len(images)
            folder = "train2014" if split == "train" else "val2014"
            sentences = [{"raw": text, "sentid": 10 * number + k} for k, text in enumerate(captions_of(number))]
            image: dict[str, Any] = {"filename": f"{number}.jpg", "split": split, "sentences": sentences}
            image |= {"filepath": folder, "cocoid": 1000 + number} if dataset == "coco" else {}
            draw(root / (folder if dataset == "coco" else "images") / f"{number}.jpg", number)
            images.append(image)
    document = json.dumps({"dataset": dataset, "images": images})
    (root / f"dataset_{dataset}.json").write_text(document, encoding="utf-8")
    return root


def write_cub(root: Path) -> Path:
    """text_c10/ and images/ by class, and the lists of classes."""
    number = 0
    for name, classes in (("train", range(1, 9)), ("val", range(9, 12)), ("test", range(12, 15))):
        folders = [f"{label:03d}.Bird_{label}" for label in classes]
        (root / f"{name}classes.txt").parent.mkdir(parents=True, exist_ok=True)
        (root / f"{name}classes.txt").write_text("\n".join(folders) + "\n", encoding="utf-8")
        for folder in folders:
            for k in range(1 if name == "train" else 2):
                number += 1
                draw(root / "images" / folder / f"b{k}.jpg", number)
                text = root / "text_c10" / folder / f"b{k}.txt"
                text.parent.mkdir(parents=True, exist_ok=True)
                text.write_text("\n".join(captions_of(number, 3 if name == "train" else 10)) + "\n", encoding="utf-8")
    return root


def write_precomp(root: Path, regions: int = 36, dim: int = 6) -> Path:
    """{split}_ims.npy and {split}_caps.txt."""
    root.mkdir(parents=True)
    generator, number = np.random.default_rng(0), 0
    for split, size in SIZES.items():
        np.save(root / f"{split}_ims.npy", generator.normal(size=(size, regions, dim)).astype(np.float32))
        lines = [text for k in range(number, number + size) for text in captions_of(k)]
        (root / f"{split}_caps.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        number += size
    return root


def write_glove(path: Path, dim: int = 8) -> Path:
    """Word vectors as GloVe writes them; a few words are missing."""
    generator = np.random.default_rng(1)
    words = ["a", "the", "on", "is", "and", *THINGS, *COLOURS]
    path.write_text("".join(f"{word} {' '.join(f'{x:.4f}' for x in generator.normal(size=dim))}\n" for word in words))
    return path


def write_hub(folder: Path, *kinds: str) -> Path:
    """Random models of transformers ("clip", "resnet", "bert"), each in a folder with what prepares its inputs."""
    import transformers

    square = {"height": 32, "width": 32}
    vision = _SIZE | {"image_size": 32, "patch_size": 8}
    text = _SIZE | {"max_position_embeddings": 16, "bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    text["vocab_size"] = len(_words())
    torch.manual_seed(0)
    for kind in kinds:
        parts: Sequence[Any]
        if kind == "clip":
            config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=6)
            processor = transformers.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=square)
            parts = (transformers.CLIPModel(config), processor, _tokenizer())
        elif kind == "resnet":
            size = {"embedding_size": 8, "hidden_sizes": [8, 12], "depths": [1, 1], "layer_type": "basic"}
            network = transformers.ResNetModel(transformers.ResNetConfig(**size))
            parts = (network, transformers.ViTImageProcessorPil(size=square))
        else:
            parts = (transformers.BertModel(transformers.BertConfig(**text)), _tokenizer())
        for part in parts:
            part.save_pretrained(folder / kind)
    return folder


def _words() -> list[str]:
    said = " ".join(text for number in range(40) for text in captions_of(number))
    return [*_MARKS, *sorted(set(said.split()))]


def _tokenizer() -> Any:
    import tokenizers
    import transformers

    table = {word: number for number, word in enumerate(_words())}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(table, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.post_processor = tokenizers.processors.TemplateProcessing(
        single="[BOS] $A [EOS]", special_tokens=[("[BOS]", 2), ("[EOS]", 3)]
    )
    marks = dict(zip(("pad_token", "unk_token", "bos_token", "eos_token"), _MARKS, strict=True))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, **marks)
