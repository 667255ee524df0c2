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

_UNPOOLED = ("vit", "deit")  # most of their checkpoints have no pooler; the class token is what they are trained for


def import_transformers(what: str, extra: str = "hub") -> Any:
    """The transformers library; a torchvision that breaks it gets a message of its own."""
    if find_spec("torchvision") is not None:
        try:
            import_module("torchvision")
        except Exception as error:  # missing operators, missing CUDA libraries: any kind
            raise InputError(
                f"torchvision is installed but does not work with this torch ({error}), and breaks transformers; "
                "halation does not need it: pip uninstall torchvision"
            ) from None
    try:
        return import_module("transformers")
    except ImportError:
        raise MissingExtra(what, extra) from None


def load_options(source: str | os.PathLike[str]) -> dict[str, Any]:
    """How to load: no code of the repository runs, a folder never asks the network."""
    return {"local_files_only": Path(source).is_dir(), "trust_remote_code": False}


def load_model(
    library: Any, source: str | os.PathLike[str], part: Literal["text", "vision"], towers: Mapping[str, str]
) -> tuple[Any, str]:
    """The model, or of a model of images and text the tower that is wanted, and its kind; nothing is unpickled."""
    options = load_options(source)
    read = library.AutoConfig.from_pretrained
    config = load_quietly(library, source, "the configuration", lambda: read(source, **options))
    kind = str(config.model_type)
    if kind not in towers and getattr(config, f"{part}_config", None) is not None:
        raise InputError(f"{source} is a {kind!r} model of several modalities; those known here: clip, siglip")
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
    """`load()`, without transformers' progress bars, its errors as one of ours that names the model."""
    log = library.utils.logging
    bars, level = log.is_progress_bar_enabled(), log.get_verbosity()
    log.disable_progress_bar()
    log.set_verbosity_error()
    try:
        return load()
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(
            f"{source}: {what} cannot be loaded ({reason}); name a model of the Hugging Face hub, or a folder with "
            "config.json and model.safetensors"
        ) from None
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


def layers_in_order(model: nn.Module) -> list[nn.Module]:
    """What stands before the longest list of blocks, each block, and what stands after it."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList) and len(module)]
    if not lists:
        return [model]
    blocks = max(lists, key=len)
    inside = {id(parameter) for parameter in blocks.parameters()}
    before, after, seen = nn.ParameterList(), nn.ParameterList(), False
    for parameter in model.parameters():
        if id(parameter) in inside:
            seen = True
        else:
            (after if seen else before).append(parameter)
    return [before, *blocks, after]


Self = TypeVar("Self", bound="Freezable")


class Freezable(nn.Module):
    """A module that with `trainable=False` has no gradients and stays in evaluation mode whatever `train` says."""

    trainable: bool = True

    def freeze(self) -> None:
        """From now on nothing here learns."""
        self.trainable = False
        self.requires_grad_(False)
        self.eval()

    def train(self: Self, mode: bool = True) -> Self:
        """As any module, but a frozen one stays as it is."""
        super().train(mode and self.trainable)
        return self

    def gradients(self) -> torch.set_grad_enabled:
        """A context for `forward`: gradients only where something learns."""
        return torch.set_grad_enabled(self.trainable and torch.is_grad_enabled())


def packaged_file(package: str, name: str, sha256: str, what: str) -> Path:
    """The file `name` inside `package`, whose content is the published one; `what` needs it, for the message."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(what, "pretrained")
    path = Path(next(iter(spec.submodule_search_locations))) / name
    if not path.is_file():
        raise InputError(f"does not exist; reinstall the package {package}", path=path)
    with path.open("rb") as file:
        found = hashlib.new("sha256")
        while block := file.read(1 << 20):
            found.update(block)
    if found.hexdigest() != sha256:
        raise InputError(f"is not the published file (its sha256 differs); reinstall the package {package}", path=path)
    return path
