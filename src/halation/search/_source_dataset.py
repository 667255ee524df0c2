"""A dataset's folder as a collection: its images, and the captions written for them."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from halation._errors import InputError
from halation.data import Dataset, FeatureStore, check_origin, open_dataset, recognise
from halation.encoders import Model
from halation.search._answers import Side
from halation.search._source import PictureLocation, Source, SourceItem, file_stamp, text_stamp, to_utf8

__all__ = ["dataset_source"]


def dataset_source(folder: Path, model: Model, split: str | None) -> Source:
    """The images and captions of one split, or of all (None).

    For a run trained on features, the dataset's stored features are used if it has them.
    """
    layout = recognise(folder)
    every = ["all"] if "all" in layout.splits else list(layout.splits)
    splits = every if split is None else [layout.resolve(split)]
    roots: list[Path] = [Path(os.path.realpath(folder))]
    items: dict[Side, dict[str, SourceItem]] = {"images": {}, "captions": {}}
    stores, notes = [], []
    for name in splits:
        dataset, note = _opened(folder, name, model)
        notes += [*note, *dataset.truth.notes]
        if dataset.features is not None:
            stores.append(dataset.features)
        features = "" if dataset.features is None else _features_stamp(dataset.features)
        captions_of: list[list[tuple[str, str]]] = [[] for _ in range(len(dataset))]
        for caption, image, text in zip(dataset.truth.caption_ids, dataset.image_of, dataset.captions, strict=True):
            captions_of[image].append((to_utf8(str(caption)), to_utf8(text)))
        for image, image_id in enumerate(dataset.truth.image_ids):
            location, stamp = _location(dataset, image, roots)
            row = None if dataset.features is None else (len(stores) - 1, image)
            texts = tuple(text for _, text in captions_of[image])
            item = SourceItem(str(image_id), stamp if row is None else features, texts, location, row)
            if item.id in items["images"]:
                continue  # in two splits: once is enough
            items["images"][item.id] = item
            for caption, text in captions_of[image]:
                caption_id = caption if caption not in items["captions"] else f"{name}/{caption}"
                items["captions"][caption_id] = SourceItem(caption_id, text_stamp(text), (text,))
    lists: dict[Side, list[SourceItem]] = {side: list(by_id.values()) for side, by_id in items.items()}
    if not items["images"].keys().isdisjoint(items["captions"]):  # numbers, as COCO's: an id must name one item
        lists["captions"] = [item._replace(id=f"caption/{item.id}") for item in lists["captions"]]
    return Source(
        str(folder),
        tuple(roots),
        lists,
        (),
        tuple(stores),
        tuple(dict.fromkeys(notes)),
        None if split is None else splits[0],
    )


def _opened(folder: Path, split: str, model: Model) -> tuple[Dataset, list[str]]:
    features = model.config.data.features or None
    if features is None:
        return open_dataset(folder, split), []
    try:
        dataset = open_dataset(folder, split, features=features)
        if dataset.features is not None:
            check_origin(dataset.features, model.feature_origin, data=folder, run=model.folder)
    except InputError as error:
        dataset = open_dataset(folder, split)
        if dataset.photos is None:
            raise
        return dataset, [f"the pictures themselves are read, because their features cannot be used ({error})"]
    if dataset.features is not None and not model.config.image.local:
        dataset = dataclasses.replace(dataset, features=dataset.features.pooled_only())
    return dataset, []


def _features_stamp(store: FeatureStore) -> str:
    """The stamp of the files that hold the features: new features are embedded again."""
    arrays = [rows.array for rows in (store.pooled, store.local) if rows is not None]
    files = [
        getattr(array, "filename", None) or getattr(getattr(array, "file", None), "filename", None) for array in arrays
    ]
    return "features " + " ".join(file_stamp(Path(file)) if file else "" for file in files)


def _location(dataset: Dataset, image: int, roots: list[Path]) -> tuple[PictureLocation | None, str]:
    """Location and stamp of a picture; pictures outside the dataset's folder get a root of their own."""
    if dataset.photos is None:
        return None, "none"
    path = dataset.photos.paths[image]
    real = Path(os.path.realpath(path.parent)) / path.name
    number = next((n for n, root in enumerate(roots) if real.is_relative_to(root)), len(roots))
    if number == len(roots):
        roots.append(real.parent)
    return PictureLocation(number, real.relative_to(roots[number]).as_posix()), file_stamp(path)
