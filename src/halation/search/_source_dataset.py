"""A dataset's folder as a collection: its images, and the captions written for them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
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
    collected, notes = _Collected([Path(os.path.realpath(folder))]), list[str]()
    for name in splits:
        dataset, problems = _opened(folder, name, model)
        notes += [*problems, *dataset.truth.notes]
        collected.add(dataset, name)
    return Source(
        str(folder),
        tuple(collected.roots),
        collected.sides(),
        stores=tuple(collected.stores),
        notes=tuple(dict.fromkeys(notes)),
        split=None if split is None else splits[0],
    )


@dataclass
class _Collected:
    """The items of the splits that were read so far, by their ids."""

    roots: list[Path]
    images: dict[str, SourceItem] = field(default_factory=dict)
    captions: dict[str, SourceItem] = field(default_factory=dict)
    stores: list[FeatureStore] = field(default_factory=list)

    def add(self, dataset: Dataset, split: str) -> None:
        """Add the images of a split and their captions; an image that an earlier split has is skipped."""
        if dataset.features is not None:
            self.stores.append(dataset.features)
        features = None if dataset.features is None else _features_stamp(dataset.features)
        captions_of: list[list[tuple[str, str]]] = [[] for _ in range(len(dataset))]
        for caption, image, text in zip(dataset.truth.caption_ids, dataset.image_of, dataset.captions, strict=True):
            captions_of[image].append((to_utf8(str(caption)), to_utf8(text)))
        for image, image_id in enumerate(map(str, dataset.truth.image_ids)):
            if image_id in self.images:
                continue
            location, stamp = _location(dataset, image, self.roots)
            row = None if features is None else (len(self.stores) - 1, image)
            texts = tuple(text for _, text in captions_of[image])
            self.images[image_id] = SourceItem(image_id, features or stamp, texts, location, row)
            for caption, text in captions_of[image]:
                caption_id = caption if caption not in self.captions else f"{split}/{caption}"
                self.captions[caption_id] = SourceItem(caption_id, text_stamp(text), (text,))

    def sides(self) -> dict[Side, list[SourceItem]]:
        """The items of both sides, in order, with ids that differ: COCO has the same numbers on both sides."""
        images, captions = list(self.images.values()), list(self.captions.values())
        if not self.images.keys().isdisjoint(self.captions):
            captions = [item._replace(id=f"caption/{item.id}") for item in captions]
        return {"images": images, "captions": captions}


def _opened(folder: Path, split: str, model: Model) -> tuple[Dataset, list[str]]:
    """The split, with stored features if the model can use them, and notes."""
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
        dataset = replace(dataset, features=dataset.features.pooled_only())
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
