"""`Model`: what `halation.load` gives you. Pictures and texts in, embeddings and scores out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from halation._ahead import load_ahead
from halation._arrays import Array, FloatArray
from halation._errors import InputError
from halation._progress import Progress, silent
from halation._tensors import load_tensors
from halation.data import Dataset, FeatureOrigin, Features, Projection, check_origin, read_picture
from halation.encoders._build import build_network
from halation.encoders._config import ModelConfig
from halation.encoders._embeddings import Encoded, concatenate, count, map_tensors
from halation.encoders._encode_split import encode_split, loader_for, open_split
from halation.encoders._network import Network, current_device
from halation.encoders._readers import ImageReader, TextReader
from halation.encoders._run_folder import LearntScalars, RunFolder
from halation.encoders._vocabulary import Vocabulary
from halation.similarity import IndexedSimilarity

__all__ = ["Model", "load"]

Picture = str | os.PathLike[str] | Image.Image

_WORD_TABLE = "table.embedding.weight"
_DECODERS = 4  # threads that decode pictures


class Model:
    """A trained model: pictures and texts in, embeddings and scores out. Load one with `halation.load`.

    folder     the run's folder, or the folder that `halation export` wrote
    config     what the model is built from: backbones, head, similarity
    network    the torch module, in evaluation mode, on this process's device
    learnt     scales, shifts and temperatures that training left, by loss term; empty for a run that kept none
    images, texts   how pictures and texts are read: preprocessing, tokens, known words

    Several threads may use one model.
    """

    def __init__(
        self,
        folder: Path,
        config: ModelConfig,
        network: Network,
        learnt: LearntScalars | None = None,
        *,
        images: ImageReader | None = None,
        texts: TextReader | None = None,
    ) -> None:
        self.folder, self.config, self.learnt = folder, config, learnt or {}
        self.network = network.to(current_device()).eval()
        image_backbone: Any = network.image.backbone
        self.images = images or ImageReader(folder, config, image_backbone)
        self.texts = texts or TextReader(network.text.backbone)

    def encode_images(
        self,
        images: Picture | Sequence[Picture] | Features | Array,
        *,
        batch_size: int = 64,
        progress: Progress = silent,
    ) -> Encoded:
        """The embeddings of images, in order: a `Gaussian` (PVSE, SGR and SAF give several vectors per image).

        images   paths and PIL pictures; or an array or tensor: uint8 pictures (n, H, W, 3), pixels (n, 3, H, W) as
                 `model.preprocess` gives them, or features (n, d) for a model trained on features; or `Features`
        """
        batches = self._image_batches(images, batch_size)
        encoded: list[Encoded] = []
        done = 0
        for total, batch in batches:
            encoded.append(self._encode_image_batch(batch))
            done += count(encoded[-1])
            progress("images", done, total)
        return concatenate(encoded)

    @torch.no_grad()
    def encode_texts(
        self, texts: str | Sequence[str], *, batch_size: int = 256, progress: Progress = silent
    ) -> Encoded:
        """The embeddings of texts, in order: a `Gaussian` (PVSE, SGR and SAF give several vectors per text)."""
        texts = [texts] if isinstance(texts, str) else list(texts)
        if not texts:
            raise InputError("there are no texts to encode")
        encoded: list[Encoded] = []
        for start in range(0, len(texts), batch_size):
            tokens = self.texts.tokens(texts[start : start + batch_size])
            encoded.append(_on_cpu(self.network.captions(tokens)))
            progress("texts", min(start + batch_size, len(texts)), len(texts))
        return concatenate(encoded)

    def similarity(self, images: Encoded, texts: Encoded) -> Tensor:
        """The scores (n_images, n_texts) of encoded images and texts, bigger = closer, float32 on the CPU."""
        device = current_device()
        return self.network.all_scores(_moved(images, device), _moved(texts, device))

    def encode_dataset(self, dataset: Dataset, *, progress: Progress = silent) -> tuple[Encoded, Encoded]:
        """The embeddings of all images and of all captions of a split, in order."""
        return encode_split(self.network, loader_for(self.network, dataset), progress=progress)

    def scores(self, dataset: Dataset, *, progress: Progress = silent) -> FloatArray:
        """The scores (n_images, n_captions) of a split, float32, bigger = closer."""
        images, captions = self.encode_dataset(dataset, progress=progress)
        scores: FloatArray = self.network.all_scores(images, captions, progress=progress).numpy()
        return scores

    def open_dataset(self, folder: str | os.PathLike[str], split: str) -> Dataset:
        """A split of a dataset, with the features this model reads.

        Stored features that were made in another way than those of training are refused, because their numbers mean
        something else.
        """
        dataset = open_split(self.config, folder, split)
        if dataset.features is not None:
            check_origin(dataset.features, self.feature_origin, data=folder, run=self.folder)
        return dataset

    @cached_property
    def feature_origin(self) -> FeatureOrigin:
        """What made the features this model was trained on, as far as the run knows."""
        about = RunFolder(self.folder).read_about()
        if isinstance(about.get("feature_origin"), dict):
            return FeatureOrigin.from_dict(about["feature_origin"])
        kept = self.folder / Projection.FILE  # runs of 0.1 keep the projection, and nothing else
        return FeatureOrigin(projection=Projection.load(kept).digest) if kept.is_file() else FeatureOrigin()

    def preprocess(self, picture: Image.Image) -> Tensor:
        """A picture → pixels (3, H, W), as the image backbone takes them."""
        return self.images.preprocess(picture)

    @property
    def indexed_similarity(self) -> IndexedSimilarity:
        """The similarity by which an index of this model's embeddings is searched; an InputError if there is none."""
        compare = self.network.compare
        if isinstance(compare, IndexedSimilarity):
            return compare
        head = self.config.model.head
        by = "several vectors per item" if head == "pvse" else "a network that looks at both items at once"
        raise InputError(
            f"is a {head} model: it compares by {by}, which no index can store",
            path=self.folder,
            remedy="search needs a head with one vector or one Gaussian per item (point, pcme, pcmepp)",
        )

    @cached_property
    def fingerprint(self) -> str:
        """The sha256 of its config, vocabulary and weights, which tells this model from every other."""
        return RunFolder(self.folder).fingerprint()

    def __repr__(self) -> str:
        return f"Model({self.config.name or self.folder.name!r}: {self.config.model})"

    @torch.no_grad()
    def _encode_image_batch(self, batch: Tensor | Features) -> Encoded:
        if isinstance(batch, Features):
            return _on_cpu(self.network.images(batch.to(current_device())))
        return _on_cpu(self.network.images(self.images.read(batch)))

    def _image_batches(self, images: Any, size: int) -> Iterator[tuple[int, Tensor | Features]]:
        """Pairs of the number of images and the next batch, in the form the backbone takes."""
        if isinstance(images, Features):
            total = len(images.pooled)
            for start in range(0, total, size):
                part = (None if x is None else x[start : start + size] for x in images)
                yield total, Features(*part)  # type: ignore[arg-type]
            return
        if isinstance(images, np.ndarray | Tensor):
            images = _from_array(images)
            if isinstance(images, Features):
                yield from self._image_batches(images, size)
                return
            if isinstance(images, Tensor):
                yield from ((len(images), images[start : start + size]) for start in range(0, len(images), size))
                return
        pictures = [images] if isinstance(images, str | os.PathLike | Image.Image) else list(images)
        if not pictures:
            raise InputError("there are no images to encode")
        batches = ((None, pictures[start : start + size]) for start in range(0, len(pictures), size))
        for _, pixels in load_ahead(batches, self._pixels, workers=_DECODERS):
            yield len(pictures), torch.stack([future.result() for future in pixels])

    def _pixels(self, picture: Picture) -> Tensor:
        if not isinstance(picture, Image.Image):
            picture = read_picture(Path(picture))
        return self.preprocess(picture.convert("RGB"))


def load(
    source: str | os.PathLike[str],
    *,
    backbone: str | None = None,
    data: str | os.PathLike[str] | None = None,
) -> Model:
    """The model in a run's folder, in a folder that `halation export` wrote, or of the package by its name.

    Nothing is downloaded, and no code of the folder is run.

    backbone   the network that computed the features, for a model trained on features whose name does not tell
    data       the dataset's folder, for a model on projected features whose run does not hold the projection
    """
    run = RunFolder(_model_folder(source))
    folder, weights = run.path, run.weights
    if not weights.exists():
        raise InputError(f"has no {weights.name}; is it a run's folder, and did an epoch finish?", path=folder)
    config, vocabulary, tensors = run.read_config(), Vocabulary.load(run.vocabulary), load_tensors(weights)
    dims = run.read_about().get("feature_dims", (0, 0))
    vectors = _word_vectors(tensors, len(vocabulary))
    network = build_network(config, vocabulary, (int(dims[0]), int(dims[1])), vectors)
    _fill(network, tensors, weights)
    reader = ImageReader(folder, config, network.image.backbone, backbone, None if data is None else Path(data))
    return Model(folder, config, network, run.read_learnt(), images=reader)


def _model_folder(source: str | os.PathLike[str]) -> Path:
    folder = Path(source)
    if folder.is_dir():
        return folder
    packaged = sorted(path.name for path in _packaged_models().glob("*") if RunFolder(path).weights.is_file())
    if str(source) in packaged:
        return _packaged_models() / str(source)
    names = f"; models that come with the package: {', '.join(packaged)}" if packaged else ""
    if not folder.is_absolute() and len(folder.parts) == 2 and not folder.parent.is_dir():
        raise InputError(
            "is not a folder",
            path=source,
            remedy="nothing is downloaded: if it is the name of a model on a hub, fetch it first "
            f"(huggingface_hub.snapshot_download({str(source)!r}, local_dir=…)) and load that folder{names}",
        )
    remedy = f"name a run's folder or a folder that `halation export` wrote{names}"
    raise InputError("does not exist", path=source, remedy=remedy)


def _packaged_models() -> Path:
    return Path(__file__).parents[1] / "models"


def _word_vectors(tensors: dict[str, Tensor], rows: int) -> Tensor | None:
    """The word vectors among a model's weights, so that the file they came from is not needed again."""
    table = next((value for name, value in tensors.items() if name.endswith(_WORD_TABLE)), None)
    return table if table is not None and table.ndim == 2 and len(table) == rows else None


def _fill(network: Network, tensors: dict[str, Tensor], path: Path) -> None:
    wanted = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    given = {name: tuple(value.shape) for name, value in tensors.items()}
    wrong = sorted(name for name in wanted.keys() | given.keys() if wanted.get(name) != given.get(name))
    if wrong:
        first = wrong[0]
        raise InputError(
            f"is of another model: {len(wrong)} tensors differ from those that config.toml beside it describes, "
            f"the first {first}: {given.get(first, 'missing')} instead of {wanted.get(first, 'none')}",
            path=path,
        )
    network.load_state_dict(tensors)


def _from_array(images: Array) -> Features | Tensor | list[Image.Image]:
    """Features (n, d), pixels (n, 3, H, W) as floats, or pictures (n, H, W, 3) or (n, 3, H, W) as uint8."""
    array = images if isinstance(images, Tensor) else torch.from_numpy(np.ascontiguousarray(images))
    if array.dtype == torch.uint8 and array.ndim == 4 and 3 in (array.shape[1], array.shape[3]):
        by_row = array if array.shape[3] == 3 else array.permute(0, 2, 3, 1)
        return [Image.fromarray(picture) for picture in by_row.contiguous().cpu().numpy()]
    if array.is_floating_point() and array.ndim == 2 and len(array):
        return Features(array.float())
    if array.is_floating_point() and array.ndim == 4 and array.shape[1] == 3 and len(array):
        return array.float()
    raise InputError(
        f"images is an array of {array.dtype} and shape {tuple(array.shape)}; give uint8 pictures (n, H, W, 3), pixels "
        "(n, 3, H, W) as model.preprocess gives them, or features (n, d)"
    )


def _on_cpu(encoded: Encoded) -> Encoded:
    return map_tensors(encoded, lambda x: x.cpu() if x.dtype == torch.bool else x.to("cpu", torch.float32))


def _moved(encoded: Encoded, device: torch.device) -> Encoded:
    return map_tensors(encoded, lambda x: x.to(device))
