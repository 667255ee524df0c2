"""`open_dataset`: one door for every layout."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from halation._errors import InputError
from halation.data._dataset import Dataset
from halation.data._feature_files import open_features
from halation.data._features import FeatureStore
from halation.data._layouts import Listing, recognise, resolve_split
from halation.data._photos import Photos

__all__ = ["find_photos", "open_dataset", "photos_or_complaint", "rows_of"]


def open_dataset(
    folder: str | os.PathLike[str],
    split: str,
    *,
    features: str | os.PathLike[str] | None = None,
    captions_per_image: int | None = None,
) -> Dataset:
    """One split of a dataset's folder, recognised by what is in it.

    Flickr8k         Flickr8k.token.txt, its lists, images/
    Karpathy's JSON  dataset_{coco,flickr30k,flickr8k}.json; pictures in images/, train2014/, …
    CUB              text_c10/, images/; splits "seen" and "unseen", or train, dev, test by {train,val,test}classes.txt
    *_precomp        {split}_ims.npy, {split}_caps.txt
    JSON Lines       {split}.jsonl, or captions.jsonl with a "split" in each line ("all" takes every line); images/
    scenes           what `draw_scenes` drew

    split      the dataset's name for it; "dev" and "val" are the same, "train+restval" joins two of Karpathy's
    features   a folder or file of features, below `folder` or anywhere (see `open_features`); with them the pictures
               may be missing. Images that `cache_features` could not read are left out, and the truth's notes say so
    captions_per_image   keep the first so many of each image: some of COCO's have six or seven
    """
    root = Path(folder)
    layout = recognise(root)
    name = resolve_split(layout, split, root)
    listing = layout.read(name)
    title = f"{layout.name}-{name}"
    store = listing.features
    dropped: list[int] = []
    if features is not None:
        store, dropped = _aligned(_open_features(root, features), listing, title)
    photos = None
    if listing.files is not None:
        paths = find_photos(listing.files, layout.folders)
        photos = photos_or_complaint(paths, listing, layout.folders, title, needed=store is None)
    kept = sorted(set(range(listing.truth.n_images)) - set(dropped))
    truth = listing.truth.replace(name=title)
    data = Dataset(title, truth, photos, None if dropped else store, listing.labels)
    if dropped:
        assert store is not None
        note = f"{len(dropped):,} images that could not be read ({store.source}) are left out"
        data = data.subset(kept)
        data = Dataset(title, data.truth.replace(notes=(*truth.notes, note)), data.photos, store, data.labels)
    return data if captions_per_image is None else data.first_captions(captions_per_image)


def find_photos(files: Sequence[Sequence[str]], folders: Sequence[Path]) -> list[Path | None]:
    """For each image the first place among its names and these folders where a file lies; one listing a folder."""
    listings: dict[Path, set[str]] = {}

    def exists(path: Path) -> bool:
        if path.parent not in listings:
            listings[path.parent] = {file.name for file in path.parent.iterdir()} if path.parent.is_dir() else set()
        return path.name in listings[path.parent]

    there = [folder for folder in folders if folder.is_dir()]
    return [
        next((folder / name for folder in there for name in names if exists(folder / name)), None) for names in files
    ]


def photos_or_complaint(
    paths: Sequence[Path | None], listing: Listing, folders: Sequence[Path], title: str, *, needed: bool
) -> Photos | None:
    found = [path for path in paths if path is not None]
    if len(found) == len(paths):
        return Photos(found)
    assert listing.files is not None
    missing = [names[0] for names, path in zip(listing.files, paths, strict=True) if path is None]
    if not needed or (not found and not folders[0].is_dir()):
        return None  # a dataset of captions alone is one too
    raise InputError(
        f"{title}: {len(missing):,} of {len(paths):,} pictures are not in {folders[0]} ({', '.join(missing[:3])}"
        f"{', …' if len(missing) > 3 else ''}); unpack them again, or take their lines out of the annotations"
    )


def _open_features(root: Path, features: str | os.PathLike[str]) -> FeatureStore:
    inside = root / features
    begun = inside.parent.is_dir() and any(inside.parent.glob(f"{inside.name}*"))
    return open_features(inside if inside.exists() or begun else features)


def _aligned(store: FeatureStore, listing: Listing, title: str) -> tuple[FeatureStore, list[int]]:
    """The store in the order of the images, and the images that are left out since they could not be read."""
    truth = listing.truth
    if store.names is None:
        if len(store) != truth.n_images:
            raise InputError(
                f"{store.source} has {len(store):,} rows for the {truth.n_images:,} images of {title}, and no "
                "images.txt beside it that names the rows; write one name on each line"
            )
        return store, []
    rows, corrupt = rows_of(listing, store.names), rows_of(listing, store.corrupt)
    missing = [image for image, row in enumerate(rows) if row is None and corrupt[image] is None]
    if missing:
        named = ", ".join(str(truth.image_ids[image]) for image in missing[:3])
        raise InputError(
            f"{store.source} has no row for {len(missing):,} of the {truth.n_images:,} images of {title} ({named}"
            f"{', …' if len(missing) > 3 else ''}); compute the features of this dataset"
        )
    dropped = [image for image, row in enumerate(rows) if row is None]
    if len(dropped) == truth.n_images:
        raise InputError(f"{store.source}: none of the images of {title} could be read; see its corrupt.txt")
    return store.take([row for row in rows if row is not None]), dropped


def rows_of(listing: Listing, names: Sequence[str]) -> list[int | None]:
    """Which of `names` each image is called: its file below the folder, the file's name alone, or its id."""
    whole = {name: row for row, name in enumerate(names)}
    short: dict[str, int | None] = {}
    for row, name in enumerate(names):
        last = name.rpartition("/")[2]
        short[last] = None if last in short else row  # two folders may hold a file of the same name
    rows = []
    for place, image in enumerate(listing.truth.image_ids):
        called = [*(listing.files[place] if listing.files is not None else ()), str(image)]
        found = next((whole[name] for name in called if name in whole), None)
        if found is None:
            bare = [name for name in called if "/" not in name]  # "a/1.jpg" is not "b/1.jpg"
            found = next((short[name] for name in bare if short.get(name) is not None), None)
        rows.append(found)
    return rows
