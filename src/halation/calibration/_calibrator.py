"""`Calibrator`: match probabilities and verdicts for one direction; `Calibrators`: both, as a run keeps them."""

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
from halation.calibration._abstention import Abstention, Verdict
from halation.calibration._ambiguity import Ambiguity
from halation.calibration._conformal import Conformal
from halation.calibration._probability_map import ProbabilityMap
from halation.data import Direction

__all__ = ["Calibrator", "Calibrators", "MapQuality"]

_VERSION = 3  # 2 was fitted to annotations alone and had two answers


@dataclass(frozen=True)
class MapQuality:
    """One kind of probability map, measured on candidates of images it was not fitted on."""

    name: str
    ece: float
    brier: float
    skill: float


@dataclass(frozen=True)
class Calibrator:
    """One direction: text asks for images ("t2i"), or images ask for text ("i2t").

    probability_map      scores → match probabilities
    abstention           does anything match at all? From the query's `depth` best scores
    abstention_by_best   the same from the best score alone, for callers that have no more
    conformal            the set that holds a match with probability 1 − α
    ambiguity            words for σ; None where the model has no σ
    chosen, qualities    the name of the map, and the held-out quality of all kinds
    aurocs               AUROC of each abstention statistic on held-out images
    """

    probability_map: ProbabilityMap
    abstention: Abstention
    abstention_by_best: Abstention
    conformal: Conformal
    ambiguity: Ambiguity | None = None
    chosen: str = ""
    qualities: tuple[MapQuality, ...] = ()
    aurocs: Mapping[str, float] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """How many of a query's best scores to pass, where the gallery has that many; perhaps more than you show."""
        return max(self.abstention.depth, self.probability_map.top)

    @property
    def top(self) -> int:
        """The rank up to which probabilities were fitted; hits below it have none."""
        return self.probability_map.top

    def probability(
        self, scores: Array, gallery: int | None = None, uncertainty: Array | float | None = None
    ) -> FloatArray:
        """Match probabilities of candidates, (k,) of one query or (q, k) of several; the ten best are among them."""
        sigma = uncertainty if "sigma" in self.probability_map.context else None
        return self.probability_map(scores, gallery, uncertainty=sigma)

    def verdict(self, scores: Array | float, gallery: int | None = None, uncertainty: float | None = None) -> Verdict:
        """Whether something in the gallery matches, from a query's best scores, best first (the best alone will do).

        "matches" and "nothing" are right with the requested precision, the rest is "unsure". An empty gallery has
        nothing.
        """
        best = np.atleast_1d(to_numpy(scores).astype(np.float64))
        size = self.probability_map.gallery if gallery is None else gallery
        if size == 0 or not len(best):
            return "nothing"
        abstention = self._abstention(len(best), uncertainty)
        return abstention.verdict(best[: abstention.depth], size, uncertainty)

    def can_say_nothing(self, given: int | None = None, uncertainty: float | None = None) -> bool:
        """Whether `verdict` can be "nothing" for `given` best scores (None: as many as it uses)."""
        abstention = self.abstention if given is None else self._abstention(given, uncertainty)
        return abstention.nothing_below is not None

    def _abstention(self, given: int, uncertainty: float | None) -> Abstention:
        enough = given >= self.abstention.depth  # a smaller gallery is judged by the best score alone
        known = "sigma" not in self.abstention.weights or (uncertainty is not None and uncertainty > 0)
        return self.abstention if enough and known else self.abstention_by_best

    def match_within(self, scores: Array, gallery: int, uncertainty: float | None = None) -> int | None:
        """How many of a query's best, given best first, hold a match with probability 1 − α, if anything matches.

        None where the set goes on below the scores you pass, where σ is needed and missing, and where the gallery is
        bigger than that of the fit: there the best score rises and the set shrinks, so the guarantee does not hold.
        """
        best = np.atleast_1d(to_numpy(scores).astype(np.float64))
        conformal = self.conformal
        if not len(best) or (conformal.nonconformity.slope != 0 and not (uncertainty or 0) > 0):
            return None
        if self.no_guarantee(gallery) is not None:
            return None
        inside = len(conformal.prediction_set(best, uncertainty))
        return inside if inside < len(best) or inside == gallery else None

    def no_guarantee(self, gallery: int) -> str | None:
        """Why `match_within` gives no number for a gallery of this size; None where it does."""
        fitted = self.conformal.gallery
        if gallery <= fitted or self.conformal.nonconformity.best_weight == 0:
            return None
        return (
            f"how many of the first hits hold a match is not known here: it was fitted among {fitted:,} items, and it "
            f"does not hold among {gallery:,}"
        )

    def note(self, gallery: int) -> str | None:
        """A warning to show with probabilities in a gallery of this size; None where there is none."""
        return self.probability_map.note(gallery)

    def to_json(self) -> dict[str, Any]:
        """A document for `json.dump`."""
        return {
            "calibration": self.probability_map.to_json(),
            "abstention": self.abstention.to_json(),
            "plain": self.abstention_by_best.to_json(),
            "conformal": self.conformal.to_json(),
            "ambiguity": None if self.ambiguity is None else self.ambiguity.to_json(),
            "chosen": self.chosen,
            "figures": [asdict(row) for row in self.qualities],
            "areas": dict(self.aurocs),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Calibrator:
        """The calibrator that `to_json` wrote."""
        ambiguity = document["ambiguity"]
        return cls(
            ProbabilityMap.from_json(document["calibration"]),
            Abstention.from_json(document["abstention"]),
            Abstention.from_json(document["plain"]),
            Conformal.from_json(document["conformal"]),
            None if ambiguity is None else Ambiguity.from_json(ambiguity),
            str(document["chosen"]),
            tuple(MapQuality(**row) for row in document["figures"]),
            {str(name): float(area) for name, area in document["areas"].items()},
        )


@dataclass(frozen=True)
class Calibrators:
    """Both directions of one run.

    fingerprint   of the run it was fitted on; another model needs another
    data, notes   the data it was fitted on, and what a reader of the numbers must know
    judge         who says what matches: "people" (or another level of it), "annotations" or "exact"
    images        a digest of every image it was fitted on, to warn when it is measured there
    """

    t2i: Calibrator
    i2t: Calibrator
    fingerprint: str
    data: str = ""
    notes: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    judge: str = "annotations"

    def __getitem__(self, direction: Direction) -> Calibrator:
        return self.t2i if one_of(direction, ("t2i", "i2t"), "direction") == "t2i" else self.i2t

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file."""
        document = {
            "version": _VERSION,
            "fingerprint": self.fingerprint,
            "data": self.data,
            "notes": list(self.notes),
            "images": " ".join(self.images),
            "judge": self.judge,
            "t2i": self.t2i.to_json(),
            "i2t": self.i2t.to_json(),
        }
        write_text(path, json.dumps(document, indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str], fingerprint: str | None = None) -> Calibrators:
        """The calibrators that `save` wrote; with a fingerprint, an error if they were fitted on another run."""
        document = read_json(path)
        if not isinstance(document, dict) or document.get("version") != _VERSION:
            version = document.get("version") if isinstance(document, dict) else None
            raise InputError(
                f"is a calibration of version {version}, not {_VERSION}; run halation calibrate again", path=path
            )
        try:
            calibrators = cls(
                Calibrator.from_json(document["t2i"]),
                Calibrator.from_json(document["i2t"]),
                str(document["fingerprint"]),
                str(document["data"]),
                tuple(map(str, document["notes"])),
                tuple(str(document["images"]).split()),
                str(document["judge"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"is not a calibration as halation writes it ({error!r}); run halation calibrate again", path=path
            ) from None
        if fingerprint is not None and calibrators.fingerprint != fingerprint:
            raise InputError("was fitted on another model; run halation calibrate again", path=path)
        return calibrators
