"""`open_dataset`: one way in for every layout."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from halation._errors import InputError
from halation.data._dataset import Dataset
from halation.data._layouts import Annotations, Layout, recognise
from halation.data._pictures import Photos

if TYPE_CHECKING:
    from halation.data._features import FeatureStore

__all__ = ["find_photos", "open_dataset", "photos_of", "rows_of"]


def open_dataset(
    path: str | os.PathLike[str],
    split: str | None = None,
    *,
    features: str | os.PathLike[str] | None = None,
    captions_per_image: int | None = None,
    pictures: bool = True,
) -> Dataset:
    """One split of a dataset, recognised by what is in its folder or file.

    Flickr8k         Flickr8k.token.txt, its lists, images/
    Karpathy's JSON  dataset_{coco,flickr30k,flickr8k}.json; pictures in images/, train2014/, …
    COCO's JSON      captions_*.json
    CUB              text_c10/, images/; splits "seen" and "unseen", or train, dev, test by {train,val,test}classes.txt
    *_precomp        {split}_ims.npy, {split}_caps.txt
    JSON Lines       {split}.jsonl, or captions.jsonl with a "split" in each line ("all" takes every line); images/
    scenes           made by `draw_scenes`

    path       the folder; of JSON and JSON Lines also the file
    split      the dataset's name for it; "dev" and "val" are the same, "train+restval" joins two of Karpathy's. None:
               the usual test part ("test"; CUB: "unseen"), and everything where the data is not split
    features   a folder or file of features, below the dataset's folder or anywhere (see `open_features`); with them
               the pictures may be missing. Images that `cache_features` could not read are left out, and a note of
               the truth counts them
    captions_per_image   keep the first few of each image: some of COCO's have six or seven, papers keep five
    pictures   False: do not look for the pictures; captions alone are a dataset too
    """
    layout = recognise(Path(path))
    name = layout.resolve(split)
    annotations = layout.read(name)
    title = layout.title(name)
    store, dropped = annotations.features, list[int]()
    if features is not None:
        store, dropped = _aligned(_open_features(layout.root, features), annotations, title)
    photos = photos_of(annotations, layout, title, needed=store is None) if pictures else None
    truth = annotations.truth.replace(name=title)
    data = Dataset(title, truth, photos, None if dropped else store, annotations.labels)
    if dropped:
        assert store is not None
        note = f"{len(dropped):,} images that could not be read ({store.source}) are left out"
        data = data.subset(sorted(set(range(truth.n_images)) - set(dropped)))
        data = replace(data, truth=data.truth.replace(notes=(*truth.notes, note)), features=store)
    return data if captions_per_image is None else data.first_captions(captions_per_image)


def find_photos(files: Sequence[Sequence[str]], folders: Sequence[Path]) -> list[Path | None]:
    """For each image the first of its names that is a file in one of these folders; each folder is listed once."""
    listings: dict[Path, set[str]] = {}

    def exists(path: Path) -> bool:
        if path.parent not in listings:
            listings[path.parent] = {file.name for file in path.parent.iterdir()} if path.parent.is_dir() else set()
        return path.name in listings[path.parent]

    present = [folder for folder in folders if folder.is_dir()]
    return [
        next((folder / name for folder in present for name in names if exists(folder / name)), None) for names in files
    ]


def photos_of(annotations: Annotations, layout: Layout, title: str, *, needed: bool) -> Photos | None:
    """The pictures of a split; None if there are none, an InputError if some are `needed` and missing."""
    if annotations.files is None:
        return None
    paths = find_photos(annotations.files, layout.folders)
    present = [path for path in paths if path is not None]
    if len(present) == len(paths):
        return Photos(present)
    if not needed or (not present and not layout.folders[0].is_dir()):
        return None  # captions alone are a dataset too
    missing = [names[0] for names, path in zip(annotations.files, paths, strict=True) if path is None]
    raise InputError(
        f"lacks {len(missing):,} of the {len(paths):,} pictures of {title} ({_first_three(missing)})",
        path=layout.folders[0],
        remedy="unpack them again, or take their lines out of the annotations",
    )


def _first_three(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _open_features(root: Path, features: str | os.PathLike[str]) -> FeatureStore:
    from halation.data._feature_files import open_features  # not at the top: it loads torch

    below = root / features
    begins = below.parent.is_dir() and any(below.parent.glob(f"{below.name}*"))
    return open_features(below if below.exists() or begins else features)


def _aligned(store: FeatureStore, annotations: Annotations, title: str) -> tuple[FeatureStore, list[int]]:
    """The store in the order of the images, and the images without a row because they could not be read."""
    truth = annotations.truth
    if store.names is None:
        if len(store) != truth.n_images:
            raise InputError(
                f"has {len(store):,} rows for the {truth.n_images:,} images of {title}, and no images.txt beside it "
                "names the rows",
                path=store.source,
                remedy="write an images.txt with the name of an image on each line",
            )
        return store, []
    rows, corrupt = rows_of(annotations, store.names), rows_of(annotations, store.corrupt)
    missing = [image for image, row in enumerate(rows) if row is None and corrupt[image] is None]
    if missing:
        named = _first_three([str(truth.image_ids[image]) for image in missing])
        raise InputError(
            f"has no row for {len(missing):,} of the {truth.n_images:,} images of {title} ({named})",
            path=store.source,
            remedy="compute the features of this dataset",
        )
    dropped = [image for image, row in enumerate(rows) if row is None]
    if len(dropped) == truth.n_images:
        problem = f": none of the images of {title} could be read"
        raise InputError(problem, path=store.source, remedy="see its corrupt.txt")
    return store.take([row for row in rows if row is not None]), dropped


def rows_of(annotations: Annotations, names: Sequence[str]) -> list[int | None]:
    """For each image its position in `names`, by its file below the folder, the file's name alone, or its id."""
    row_of = {name: row for row, name in enumerate(names)}
    row_of_last: dict[str, int | None] = {}
    for row, name in enumerate(names):
        last = name.rpartition("/")[2]
        row_of_last[last] = None if last in row_of_last else row  # two folders may hold a file of the same name
    rows = []
    for number, image in enumerate(annotations.truth.image_ids):
        candidates = [*(annotations.files[number] if annotations.files is not None else ()), str(image)]
        row_or_none = next((row_of[name] for name in candidates if name in row_of), None)
        if row_or_none is None:
            bare = [name for name in candidates if "/" not in name]  # "a/1.jpg" is not "b/1.jpg"
            row_or_none = next((row_of_last[name] for name in bare if row_of_last.get(name) is not None), None)
        rows.append(row_or_none)
    return rows
