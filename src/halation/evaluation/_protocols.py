"""The field's evaluation protocols by name: each sets truth, folds and metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from halation._errors import InputError, one_of
from halation.data import Truth, read_cxc, read_eccv

__all__ = ["PROTOCOLS", "Protocol", "named_protocol"]


@dataclass(frozen=True)
class Protocol:
    """A named way to measure; `metrics=None` means everything the truth allows."""

    name: str
    description: str
    prepare: Callable[[Truth], Truth]
    metrics: tuple[str, ...] | None = None
    folds: int | None = None


def _unchanged(truth: Truth) -> Truth:
    return truth


def _cxc(truth: Truth) -> Truth:
    return truth if truth.kind == "cxc" else read_cxc(truth)  # a "cxc" truth was read from the caller's files


def _eccv(truth: Truth) -> Truth:
    return truth if truth.kind == "eccv" else read_eccv(truth)


def _coco_test(truth: Truth) -> Truth:
    if truth.n_images != 5000:
        raise InputError(
            f"the COCO protocols measure the 5,000 test images; this truth has {truth.n_images:,}",
            remedy="for other sizes leave the protocol out, and choose the folds",
            argument="folds",
        )
    return truth


def _by_class(truth: Truth) -> Truth:
    """A truth where images and captions of one class are relevant to each other."""
    if truth.kind == "classes":
        return truth
    if truth.classes is None or truth.image_of is None:
        raise InputError("the protocol 'cub' needs the class of every image; read the data with halation.data.read_cub")
    if not (truth.classes.sum(axis=1) == 1).all():
        raise InputError("the protocol 'cub' needs exactly one class per image")
    return Truth.from_classes(
        truth.classes.argmax(axis=1),
        image_of=truth.image_of,
        image_ids=truth.image_ids,
        caption_ids=truth.caption_ids,
        captions=truth.captions,
        name=truth.name,
    )


_RETRIEVAL = ("R@1", "R@5", "R@10")
PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol("coco-5k", "all 5,000 test images", _coco_test),
        Protocol("coco-1k", "five sequential folds of 1,000 images, averaged", _coco_test, folds=5),
        Protocol("cxc", "Crisscrossed Captions' extended positives", _cxc, metrics=(*_RETRIEVAL, "MedR")),
        Protocol("eccv", "ECCV Caption's queries and positives", _eccv, metrics=("R@1", "R-P", "mAP@R")),
        Protocol("flickr", "all images of the split", _unchanged),
        Protocol("cub", "same class = relevant", _by_class, metrics=(*_RETRIEVAL, "MedR", "R-P", "mAP@R")),
    )
}


def named_protocol(name: str) -> Protocol:
    """The protocol of this name; an unknown one is an error that suggests the nearest."""
    return PROTOCOLS[one_of(name, PROTOCOLS, "protocol")]
