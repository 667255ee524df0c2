"""`FeatureOrigin`: how stored features were made, so that features made in another way are not mixed with them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halation._errors import InputError

if TYPE_CHECKING:
    from torch import nn

    from halation.data._features import FeatureStore
    from halation.data._projection import Projection

__all__ = ["NOT_PROJECTED", "FeatureOrigin", "check_origin"]

NOT_PROJECTED = "none"
"""`FeatureOrigin.projection` of cells that are as the backbone gives them."""


@dataclass(frozen=True)
class FeatureOrigin:
    """How features were made. A part is None if it is not known or does not matter.

    backbone        the network's name: "efficientnet_lite0"
    weights         sha256 of its weights
    preprocessing   how pictures are prepared for it
    projection      sha256 of the projection that made the cells smaller; "none" for cells as the backbone gives them

    >>> origin = FeatureOrigin("efficientnet_lite0", projection="1f40")
    >>> origin.differs_from(FeatureOrigin("efficientnet_lite0", projection="9a3c"))
    'their cells were made smaller by another projection'
    >>> origin.differs_from(FeatureOrigin()) is None
    True
    """

    backbone: str | None = None
    weights: str | None = None
    preprocessing: str | None = None
    projection: str | None = None

    @classmethod
    def of(cls, backbone: nn.Module, projection: Projection | None = None) -> FeatureOrigin:
        """The origin of features that this backbone computes, its cells made smaller by this projection.

        A backbone may have a `name` and a text `preprocessing`; without a name it is called after its class.
        """
        name = getattr(backbone, "name", None) or type(backbone).__name__
        digest = NOT_PROJECTED if projection is None else projection.digest
        return cls(str(name), _sha256_of_weights(backbone), getattr(backbone, "preprocessing", None), digest)

    @property
    def known(self) -> bool:
        """Whether anything is known about it."""
        return any(value is not None for value in dataclasses.astuple(self))

    def differs_from(self, other: FeatureOrigin) -> str | None:
        """The reason why features of this origin are not those of `other`; None if no part differs.

        Parts that one of the two does not know are not compared. Names of backbones are compared only where the
        weights of one are not known: a model may be called by its name or by its folder.
        """
        if self._both(other, "weights"):
            if self.weights != other.weights:
                return f"they were computed by another backbone ({self._named()} instead of {other._named()})"
        elif self._both(other, "backbone") and self.backbone != other.backbone:
            return f"they were computed by another backbone ({self.backbone} instead of {other.backbone})"
        if self._both(other, "preprocessing") and self.preprocessing != other.preprocessing:
            return "their pictures were prepared in another way"
        if self._both(other, "projection") and self.projection != other.projection:
            if self.projection == NOT_PROJECTED:
                return "their cells were not made smaller by a projection"
            if other.projection == NOT_PROJECTED:
                return "their cells were made smaller by a projection"
            return "their cells were made smaller by another projection"
        return None

    def _both(self, other: FeatureOrigin, part: str) -> bool:
        return getattr(self, part) is not None and getattr(other, part) is not None

    def _named(self) -> str:
        return f"{self.backbone or 'unnamed'}, weights {str(self.weights)[:8]}"

    def without_cells(self) -> FeatureOrigin:
        """The origin of the pooled features alone, for which the projection does not matter."""
        return dataclasses.replace(self, projection=None)

    def as_dict(self) -> dict[str, str | None]:
        """The parts by name, for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> FeatureOrigin:
        """The origin of `as_dict`. Other keys are ignored, so meta.json and run.json are read as they are."""
        names = [field.name for field in dataclasses.fields(cls)]
        for name in names:
            if not isinstance(parts.get(name), str | None):
                raise InputError(f'the origin of features has "{name}": {parts[name]!r}', remedy="use a text or null")
        return cls(**{name: parts.get(name) for name in names})


def check_origin(
    features: FeatureStore, origin: FeatureOrigin, *, data: str | os.PathLike[str], run: str | os.PathLike[str]
) -> None:
    """Raise an InputError if features were made in another way than those of a run; its remedy is a command.

    features   stored features of `data`
    origin     of the features that `run` was trained on
    """
    reason = features.origin.differs_from(origin)
    if reason is None:
        return
    command = f"halation features {data} --backbone {origin.backbone or 'BACKBONE'} --out {Path(data) / 'features'}/NEW"
    if origin.projection not in (None, NOT_PROJECTED):
        command += f" --projection {run}"
    raise InputError(
        f"does not fit {run}, which was trained on other features: {reason}",
        path=features.source,
        remedy=f"make features that fit: {command}",
    )


def _sha256_of_weights(module: nn.Module) -> str:
    import torch

    digest = hashlib.sha256()
    for key, value in sorted(module.state_dict().items()):
        plain = value.detach().cpu().contiguous()
        digest.update(json.dumps([key, str(plain.dtype), list(plain.shape)]).encode())
        digest.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
