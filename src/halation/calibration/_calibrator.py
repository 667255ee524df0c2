"""`Calibrator`: how far to believe scores in one direction; `Calibrators`: both directions, as a run keeps them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from halation._arrays import Array, FloatArray, to_numpy
from halation._errors import InputError, one_of
from halation._files import read_json, write_text
from halation.calibration._abstention import Abstention
from halation.calibration._ambiguity import Ambiguity
from halation.calibration._choose import Figures
from halation.calibration._conformal import Conformal
from halation.calibration._probability_map import ProbabilityMap
from halation.data import Direction

__all__ = ["Calibrator", "Calibrators"]

_VERSION = 2  # 1: probabilities given that something matches


@dataclass(frozen=True)
class Calibrator:
    """One direction: words asking for images ("t2i"), or images asking for words ("i2t").

    calibration   scores → match probabilities
    abstention    does anything match at all? from the query's `depth` best scores
    plain         the same from the best score alone, for callers that have no more
    conformal     the set that holds a match with probability 1 − α
    ambiguity     σ in words; None where the model has no σ
    chosen, figures   which calibration, and the held-out figures of all
    areas         AUROC of each abstention statistic on held-out images
    """

    calibration: ProbabilityMap
    abstention: Abstention
    plain: Abstention
    conformal: Conformal
    ambiguity: Ambiguity | None = None
    chosen: str = ""
    figures: tuple[Figures, ...] = ()
    areas: Mapping[str, float] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """How many of a query's best scores to give, where the gallery has so many: more than are shown, perhaps."""
        return max(self.abstention.depth, self.calibration.top)

    @property
    def top(self) -> int:
        """Up to which rank probabilities were fitted: below it there is nothing to show."""
        return self.calibration.top

    def probability(self, scores: Array, gallery: int | None = None) -> FloatArray:
        """Match probabilities of one query's candidates (k,), or of several queries' (q, k), its best among them."""
        return self.calibration(scores, gallery)

    def nothing_matches(
        self, scores: Array | float, gallery: int | None = None, uncertainty: float | None = None
    ) -> bool:
        """Whether to say that nothing here matches: from a query's best scores, best first (its best alone will do).

        False where the model cannot tell with the precision that was asked for; True for an empty gallery.
        """
        best = np.atleast_1d(to_numpy(scores).astype(np.float64))
        size = self.calibration.gallery if gallery is None else gallery
        if size == 0 or not len(best):
            return True
        used = self._abstention(len(best), uncertainty)
        return used.nothing_matches(best[: used.depth], size, uncertainty)

    def can_tell(self, given: int | None = None, uncertainty: float | None = None) -> bool:
        """Whether `nothing_matches` can be True of so many best scores (None: as many as it looks at)."""
        used = self.abstention if given is None else self._abstention(given, uncertainty)
        return used.threshold is not None

    def _abstention(self, given: int, uncertainty: float | None) -> Abstention:
        enough = given >= self.abstention.depth  # in a gallery with fewer items the best alone tells
        known = "sigma" not in self.abstention.weights or (uncertainty is not None and uncertainty > 0)
        return self.abstention if enough and known else self.plain

    def within(self, scores: Array, gallery: int, uncertainty: float | None = None) -> int | None:
        """How many of a query's best, given best first, hold a match with probability 1 − α, if anything matches.

        None where the set goes on below the scores given; where the gallery is bigger than that of the fit, in which
        the best of it rises and the set shrinks, so that the promise does not hold; and where σ is needed and missing.
        """
        best = np.atleast_1d(to_numpy(scores).astype(np.float64))
        conformal, shape = self.conformal, self.conformal.shape
        if not len(best) or (shape.slope != 0 and not (uncertainty or 0) > 0):
            return None
        if self.no_promise(gallery) is not None:
            return None
        inside = len(conformal.rows(best, uncertainty))
        return inside if inside < len(best) or inside == gallery else None

    def no_promise(self, gallery: int) -> str | None:
        """Why nothing is said of how many hold a match in a gallery of this size; None where `within` may say it."""
        fitted = self.conformal.gallery
        if gallery <= fitted or self.conformal.shape.lean == 0:
            return None
        return (
            f"how many of the first hold a match is not said: that was fitted among {fitted:,} items, and it does not "
            f"hold among {gallery:,}"
        )

    def note(self, gallery: int) -> str | None:
        """What to say beside probabilities in a gallery of this size, if anything."""
        return self.calibration.note(gallery)

    def to_json(self) -> dict[str, Any]:
        """For `json.dump`."""
        return {
            "calibration": self.calibration.to_json(),
            "abstention": self.abstention.to_json(),
            "plain": self.plain.to_json(),
            "conformal": self.conformal.to_json(),
            "ambiguity": None if self.ambiguity is None else self.ambiguity.to_json(),
            "chosen": self.chosen,
            "figures": [asdict(row) for row in self.figures],
            "areas": dict(self.areas),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Calibrator:
        """What `to_json` gave."""
        ambiguity = document["ambiguity"]
        return cls(
            ProbabilityMap.from_json(document["calibration"]),
            Abstention.from_json(document["abstention"]),
            Abstention.from_json(document["plain"]),
            Conformal.from_json(document["conformal"]),
            None if ambiguity is None else Ambiguity.from_json(ambiguity),
            str(document["chosen"]),
            tuple(Figures(**row) for row in document["figures"]),
            {str(name): float(area) for name, area in document["areas"].items()},
        )


@dataclass(frozen=True)
class Calibrators:
    """Both directions of one run.

    fingerprint   of the run it was fitted on: another model needs another
    data, notes   what it was fitted on, and what a reader of the numbers must know
    images        a mark of every image it was fitted on, so that nobody measures it there unawares; empty in old files
    """

    t2i: Calibrator
    i2t: Calibrator
    fingerprint: str
    data: str = ""
    notes: tuple[str, ...] = ()
    images: tuple[str, ...] = ()

    def __getitem__(self, direction: Direction) -> Calibrator:
        return self.t2i if one_of(direction, ("t2i", "i2t"), "direction") == "t2i" else self.i2t

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file, whole or not at all."""
        document = {
            "version": _VERSION,
            "fingerprint": self.fingerprint,
            "data": self.data,
            "notes": list(self.notes),
            "images": " ".join(self.images),
            "t2i": self.t2i.to_json(),
            "i2t": self.i2t.to_json(),
        }
        write_text(path, json.dumps(document, indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str], fingerprint: str | None = None) -> Calibrators:
        """Read what `save` wrote; with a fingerprint, only if it was fitted on that run."""
        document = read_json(path)
        if not isinstance(document, dict) or document.get("version") != _VERSION:
            found = document.get("version") if isinstance(document, dict) else None
            raise InputError(
                f"is a calibration of version {found}, not {_VERSION}; run halation calibrate again", path=path
            )
        try:
            read = cls(
                Calibrator.from_json(document["t2i"]),
                Calibrator.from_json(document["i2t"]),
                str(document["fingerprint"]),
                str(document["data"]),
                tuple(map(str, document["notes"])),
                tuple(str(document.get("images", "")).split()),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"is not a calibration as halation writes it ({error!r}); run halation calibrate again", path=path
            ) from None
        if fingerprint is not None and read.fingerprint != fingerprint:
            raise InputError("was fitted on another model; run halation calibrate again", path=path)
        return read
