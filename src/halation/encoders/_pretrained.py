"""What pretrained backbones share: freezing, weights inside packages, and models of transformers (extra "hub")."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from safetensors import SafetensorError
from torch import nn

from halation._errors import InputError, MissingExtra

__all__ = [
    "Freezable",
    "import_transformers",
    "layers_in_order",
    "load_model",
    "load_options",
    "load_quietly",
    "packaged_file",
]

_UNPOOLED = ("vit", "deit")  # most of their checkpoints have no pooler: they are trained for the class token


def import_transformers(what: str, extra: str = "hub") -> Any:
    """The transformers library; if a broken torchvision keeps it from loading, an error that says so."""
    if find_spec("torchvision") is not None:
        try:
            import_module("torchvision")
        except Exception as error:  # of any kind: missing operators, missing CUDA libraries
            raise InputError(
                f"torchvision is installed but does not work with this torch ({error}), and breaks transformers",
                remedy="halation does not need it: pip uninstall torchvision",
            ) from None
    try:
        return import_module("transformers")
    except ImportError:
        raise MissingExtra(what, extra) from None


def load_options(source: str | os.PathLike[str]) -> dict[str, Any]:
    """Options for loading: no code of the repository runs, and a folder is never looked up on the network."""
    return {"local_files_only": Path(source).is_dir(), "trust_remote_code": False}


def load_model(
    library: Any, source: str | os.PathLike[str], part: Literal["text", "vision"], towers: Mapping[str, str]
) -> tuple[Any, str]:
    """The model and its kind; of a model of images and text, only the tower for `part`. Nothing is unpickled."""
    options = load_options(source)
    read = library.AutoConfig.from_pretrained
    config = load_quietly(library, source, "the configuration", lambda: read(source, **options))
    kind = str(config.model_type)
    if kind not in towers and getattr(config, f"{part}_config", None) is not None:
        raise InputError(f"is a {kind!r} model of several modalities; halation knows clip and siglip", path=source)
    if kind == "clip":  # many checkpoints have the right width of the projection only at the top
        options["config"] = getattr(config, f"{part}_config")
        options["config"].projection_dim = config.projection_dim
    if kind in _UNPOOLED:
        options["add_pooling_layer"] = False
    load = getattr(library, towers.get(kind, "AutoModel")).from_pretrained
    return load_quietly(
        library, source, f"the {part} model", lambda: load(source, use_safetensors=True, **options)
    ), kind


def load_quietly(library: Any, source: str | os.PathLike[str], what: str, load: Callable[[], Any]) -> Any:
    """The result of `load()`, without progress bars; its errors become an InputError that names the model."""
    log = library.utils.logging
    bars, level = log.is_progress_bar_enabled(), log.get_verbosity()
    log.disable_progress_bar()
    log.set_verbosity_error()
    try:
        return load()
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(
            f": {what} cannot be loaded ({reason})",
            path=source,
            remedy="name a model of the Hugging Face hub, or a folder with config.json and model.safetensors",
        ) from None
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


def layers_in_order(model: nn.Module) -> list[nn.Module]:
    """The layers of a model: those before its longest list of blocks, each block, and those after."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList) and len(module)]
    if not lists:
        return [model]
    blocks = max(lists, key=len)
    inside = {id(parameter) for parameter in blocks.parameters()}
    before, after, past_blocks = nn.ParameterList(), nn.ParameterList(), False
    for parameter in model.parameters():
        if id(parameter) in inside:
            past_blocks = True
        else:
            (after if past_blocks else before).append(parameter)
    return [before, *blocks, after]


Self = TypeVar("Self", bound="Freezable")


class Freezable(nn.Module):
    """A module that can be frozen: then it has no gradients and stays in evaluation mode, also after `train()`."""

    trainable: bool = True

    def freeze(self) -> None:
        """Freeze all weights."""
        self.trainable = False
        self.requires_grad_(False)
        self.eval()

    def train(self: Self, mode: bool = True) -> Self:
        """As for any module, but a frozen one stays in evaluation mode."""
        super().train(mode and self.trainable)
        return self

    def gradients(self) -> torch.set_grad_enabled:
        """A context for `forward`: gradients are computed only if the module learns."""
        return torch.set_grad_enabled(self.trainable and torch.is_grad_enabled())


def packaged_file(package: str, name: str, sha256: str, what: str) -> Path:
    """The path of the file `name` in an installed package, its sha256 checked; `what` needs it, for the errors."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(what, "pretrained")
    path = Path(next(iter(spec.submodule_search_locations))) / name
    if not path.is_file():
        raise InputError("does not exist", path=path, remedy=f"reinstall the package {package}")
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != sha256:
        problem = "is not the published file (its sha256 differs)"
        raise InputError(problem, path=path, remedy=f"reinstall the package {package}")
    return path
