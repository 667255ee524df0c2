"""Metric names as papers write them: `R@1`, `nDCG@10`, `PMRP`, `ASP(cider)`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from halation._errors import InputError, one_of
from halation.data import Truth
from halation.semantics import METRICS as SEMANTIC_METRICS
from halation.semantics import PEOPLE

__all__ = ["Spec", "default_metrics", "parse_metrics", "people_metrics"]

PMRP_ZETAS = (0, 1, 2)  # PCME's protocol; eccv-caption's PMRP is a single ζ and is written PMRP(ζ)
_AT_K = ("R", "Recall", "P", "nDCG")
_PLAIN = ("MedR", "R-P", "mAP@R", "mAP")
_RECALLS = ("R@1", "R@5", "R@10")
_BY_PEOPLE = ("R-P", "mAP@R", "nDCG@10")


@dataclass(frozen=True)
class Spec:
    """One metric of a report: a family and its parameter."""

    name: str
    family: str
    k: int = 0
    zetas: tuple[int, ...] = ()
    relevance: str = ""


def default_metrics(truth: Truth, relevances: Iterable[str] = ()) -> list[str]:
    """What the truth allows and needs no encoder: binary metrics always, PMRP with classes, ASP with captions."""
    names = [*_RECALLS, "MedR", "R-P", "mAP@R", "nDCG@10"]
    if _has_classes(truth):
        names.append("PMRP")
    if truth.captions is not None and truth.image_of is not None:
        names += [f"ASP({name})" for name in ("tfidf", "cider", "bleu4", "rouge-l", "mean")]
    return names + [f"ASP({name})" for name in relevances]


def people_metrics(relevance: str = "people") -> list[str]:
    """The metrics by people's judgement: ASP, R-P, mAP@R and nDCG@10."""
    return [f"{name}({relevance})" for name in ("ASP", *_BY_PEOPLE)]


def parse_metrics(names: Iterable[str], truth: Truth, relevances: Iterable[str] = ()) -> list[Spec]:
    """The specs of these names, in order, without repeats; an InputError suggests the nearest to an unknown name."""
    custom = tuple(relevances)
    specs = {spec.name: spec for spec in (_parse(name, custom) for name in names)}
    if not specs:
        raise InputError("the list of metrics is empty; name at least one, or leave it out for all")
    for spec in specs.values():
        _check_possible(spec, truth, custom)
    return list(specs.values())


def _parse(name: str, custom: tuple[str, ...]) -> Spec:
    if name == "ASP":
        return Spec("ASP(tfidf)", "ASP", relevance="tfidf")
    if name == "PMRP":
        return Spec("PMRP", "PMRP", zetas=PMRP_ZETAS)
    if name in _PLAIN:
        return Spec(name, name)
    at = re.fullmatch(r"(\w+)@([1-9]\d{0,8})", name)
    if at and at[1] in _AT_K:
        return Spec(name, f"{at[1]}@", k=int(at[2]))
    people = re.fullmatch(r"(R-P|mAP@R|nDCG@([1-9]\d{0,8}))\((.+)\)", name)
    if people:
        family = "nDCG@" if people[2] else people[1]
        relevance = one_of(people[3], PEOPLE, f"probability for {people[1]}")
        return Spec(name, family, k=int(people[2] or 0), relevance=relevance)
    zeta = re.fullmatch(r"PMRP\((\d{1,4})\)", name)
    if zeta:
        return Spec(name, "PMRP", zetas=(int(zeta[1]),))
    semantic = re.fullmatch(r"ASP\((.+)\)", name)
    if semantic:
        relevance = one_of(semantic[1], (*SEMANTIC_METRICS, *custom), "relevance for ASP")
        return Spec(name, "ASP", relevance=relevance)
    known = [*_RECALLS, "Recall@10", "P@10", "nDCG@10", *_PLAIN, "PMRP", "PMRP(1)", "ASP"]
    known += [f"ASP({metric})" for metric in (*SEMANTIC_METRICS, *custom)]
    known += [f"{metric}({relevance})" for metric in _BY_PEOPLE for relevance in PEOPLE]
    one_of(name, known, "metric")
    raise AssertionError("unreachable: a known name was not parsed")  # pragma: no cover


def _check_possible(spec: Spec, truth: Truth, custom: tuple[str, ...]) -> None:
    if spec.family == "PMRP" and not _has_classes(truth):
        raise InputError(f"{spec.name} needs the classes of images and the image of each caption; this truth has none")
    if spec.relevance and spec.relevance not in custom and (truth.captions is None or truth.image_of is None):
        raise InputError(f"{spec.name} compares captions with captions; this truth has no caption texts")


def _has_classes(truth: Truth) -> bool:
    return truth.annotated is not None and bool(truth.annotated.any()) and truth.image_of is not None
