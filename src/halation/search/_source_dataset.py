"""A dataset's folder as a collection: images with the captions that were written for them, and the captions."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from halation._errors import InputError
from halation.data import Dataset, FeatureStore, check_origin, open_dataset, recognise
from halation.encoders import Model
from halation.search._answers import Side
from halation.search._entries import Entry, PictureLocation, Source, plain, stamp_of, stamp_of_file

__all__ = ["dataset_source"]


def dataset_source(folder: Path, model: Model, split: str | None) -> Source:
    """All splits, or one. A run trained on features takes the dataset's own features where it has them."""
    layout = recognise(folder)
    every = ["all"] if "all" in layout.splits else list(layout.splits)
    splits = every if split is None else [layout.resolve(split)]
    roots: list[Path] = [Path(os.path.realpath(folder))]
    entries: dict[Side, dict[str, Entry]] = {"images": {}, "captions": {}}
    stores, notes = [], []
    for name in splits:
        dataset, note = _opened(folder, name, model)
        notes += [*note, *dataset.truth.notes]
        if dataset.features is not None:
            stores.append(dataset.features)
        features = "" if dataset.features is None else _stamp_of_features(dataset.features)
        said: list[list[tuple[str, str]]] = [[] for _ in range(len(dataset))]
        for caption, image, text in zip(dataset.truth.caption_ids, dataset.image_of, dataset.captions, strict=True):
            said[image].append((plain(str(caption)), plain(text)))
        for image, called in enumerate(dataset.truth.image_ids):
            place, stamp = _place(dataset, image, roots)
            row = None if dataset.features is None else (len(stores) - 1, image)
            texts = tuple(text for _, text in said[image])
            entry = Entry(str(called), stamp if row is None else features, texts, place, row)
            if entry.id in entries["images"]:
                continue  # in two splits: once is enough
            entries["images"][entry.id] = entry
            for caption, text in said[image]:
                called_so = caption if caption not in entries["captions"] else f"{name}/{caption}"
                entries["captions"][called_so] = Entry(called_so, stamp_of(text), (text,))
    lists: dict[Side, list[Entry]] = {side: list(found.values()) for side, found in entries.items()}
    if not entries["images"].keys().isdisjoint(entries["captions"]):  # numbers, as COCO's: one id is to be one item
        lists["captions"] = [entry._replace(id=f"caption/{entry.id}") for entry in lists["captions"]]
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
        return dataset, [f"the pictures themselves are looked at, since their features cannot be had ({error})"]
    if dataset.features is not None and not model.config.image.local:
        dataset = dataclasses.replace(dataset, features=dataset.features.pooled_only())
    return dataset, []


def _stamp_of_features(store: FeatureStore) -> str:
    """Of the files the features lie in: features that were computed anew are looked at anew."""
    arrays = [rows.array for rows in (store.pooled, store.local) if rows is not None]
    files = [
        getattr(array, "filename", None) or getattr(getattr(array, "file", None), "filename", None) for array in arrays
    ]
    return "features " + " ".join(stamp_of_file(Path(file)) if file else "" for file in files)


def _place(dataset: Dataset, image: int, roots: list[Path]) -> tuple[PictureLocation | None, str]:
    """Where a picture lies, and its stamp; pictures beside the dataset's folder get a root of their own."""
    if dataset.photos is None:
        return None, "none"
    path = dataset.photos.paths[image]
    real = Path(os.path.realpath(path.parent)) / path.name
    number = next((n for n, root in enumerate(roots) if real.is_relative_to(root)), len(roots))
    if number == len(roots):
        roots.append(real.parent)
    return PictureLocation(number, real.relative_to(roots[number]).as_posix()), stamp_of_file(path)
