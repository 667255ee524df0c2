"""Convert the state dicts of published checkpoints to the names of our modules.

Every key is either mapped or left out on purpose. A missing or unknown key is an error that lists it. Open a checkpoint
with `torch.load(path, weights_only=True)`, which executes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from torch import Tensor

from halation._errors import InputError, one_of

__all__ = ["convert_pcme", "convert_pcmepp", "convert_sgraf"]

State = Mapping[str, Tensor]
Renaming = Mapping[str, str | None]  # a published prefix → ours; None = left out on purpose
Converted = dict[str, dict[str, Tensor]]

_ATTENTION = {"w_1.weight": "w1.weight", "w_2.weight": "w2.weight"}
_LINEAR = ("weight", "bias")
_GRU = tuple(f"{part}_l0{way}" for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh") for way in ("", "_reverse"))


def _pie(published: str, ours: str) -> dict[str, str]:
    names = {f"{published}attention.{k}": f"{ours}_attention.{v}" for k, v in _ATTENTION.items()}
    return names | {f"{published}fc.{k}": f"{ours}_fc.{k}" for k in _LINEAR}


def _pcme_image() -> dict[str, str]:
    names = {f"fc.{k}": f"image_head/summary.{k}" for k in _LINEAR}
    names |= _pie("pie_net.", "image_head/mean") | _pie("uncertain_net.", "image_head/spread")
    names |= {f"pie_net.layer_norm.{k}": f"image_head/mean_norm.{k}" for k in _LINEAR}
    return names | {f"uncertain_net.fc2.{k}": f"image_head/spread.{k}" for k in _LINEAR}


def _pcme_text() -> dict[str, str]:
    names = {"embed.weight": "words/weight"}
    names |= {f"rnn.{k}": f"text_head/summary.gru.gru.{k}" for k in _GRU}
    names |= _pie("pie_net.", "text_head/mean") | _pie("uncertain_net.", "text_head/spread")
    names |= {f"pie_net.layer_norm.{k}": f"text_head/mean_norm.{k}" for k in _LINEAR}
    return names | {f"uncertain_net.rnn.{k}": f"text_head/spread.gru.gru.{k}" for k in _GRU}


def convert_pcme(state: State, parts: Sequence[Literal["image", "text"]] = ("image", "text")) -> Converted:
    """Convert a checkpoint of naver-ai/pcme: "image_head" and "text_head" for `PCMEHead`, "words" (embedding), "cnn".

    The image head is PCMEHead(d, d, dim), the text head PCMEHead(…, words, dim, "gru", "gru", variant="released"). The
    weights of the CNN (by torchvision's names) are returned as they are under "cnn", the two numbers of the loss under
    "loss". `parts` names the encoders that the state must hold.
    """
    expected: dict[str, str] = {}
    for part in parts:
        one_of(part, ("image", "text"), "part")
        names, prefix = (_pcme_image(), "img_enc.") if part == "image" else (_pcme_text(), "txt_enc.")
        expected |= {prefix + k: v for k, v in names.items()}
    free = {r"img_enc\.cnn\.(.+)": r"cnn/\1", r"(?:criterion\.)?(shift|negative_scale)": r"loss/\1"}
    return _renamed(state, expected, free, (), "pcme")


def _pcmepp_image(scaled: bool) -> dict[str, str]:
    names: dict[str, str] = {}
    for published, ours in (("image_encoder", "mean"), ("image_std_encoder", "spread")):
        names |= {f"{published}.fc.{k}": f"image_head/{ours}_fc.{k}" for k in _LINEAR}
        names |= {f"{published}.gpool.gru.{k}": f"image_head/{ours}_pool.gru.{k}" for k in _GRU}
        names[f"{published}.gpool.linear.weight"] = f"image_head/{ours}_pool.linear.weight"
    return names | ({f"image_std_ln.{k}": f"image_head/spread_norm.{k}" for k in _LINEAR} if scaled else {})


def _pcmepp_text(scaled: bool) -> dict[str, str]:
    names: dict[str, str] = {}
    for published, ours in (("", "mean"), ("std_", "spread")):
        names |= {f"{published}linear.{k}": f"text_head/{ours}_fc.{k}" for k in _LINEAR}
        names |= {f"{published}gpool.gru.{k}": f"text_head/{ours}_pool.gru.{k}" for k in _GRU}
        names[f"{published}gpool.linear.weight"] = f"text_head/{ours}_pool.linear.weight"
    return names | ({f"text_std_ln.{k}": f"text_head/spread_norm.{k}" for k in _LINEAR} if scaled else {})


def convert_pcmepp(state: State) -> Converted:
    """Convert a checkpoint of naver-ai/pcmepp: "image_head" and "text_head" for `PCMEPPHead`, and both backbones.

    The heads are PCMEPPHead(…, d, dim, "gpo"), with `scale` where the checkpoint has the LayerNorm of the variance.
    CLIP's weights are returned under "image_backbone" and "text_backbone" by OpenAI's names, with extra blocks for the
    variance, the two numbers of the loss under "loss". Averaged copies (`swa_*`) are left out on purpose.
    """
    scaled = any(key.endswith("_std_ln.weight") for key in state)
    expected = {f"img_enc.{k}": v for k, v in _pcmepp_image(scaled).items()}
    expected |= {f"txt_enc.{k}": v for k, v in _pcmepp_text(scaled).items()}
    free = {
        r"img_enc\.backbone\.(.+)": r"image_backbone/\1",
        r"txt_enc\.backbone\.(.+)": r"text_backbone/\1",
        r"criterion\.(shift|negative_scale)": r"loss/\1",
    }
    return _renamed(state, expected, free, (r"swa_(img_enc|txt_enc|criterion)\..+",), "pcmepp")


_BATCH_NORM = (*_LINEAR, "running_mean", "running_var", "num_batches_tracked")


def _guided(published: str, ours: str, normed: bool) -> dict[str, str]:
    names: dict[str, str] = {}
    for theirs, mine in (("local", "local"), ("global", "whole"), ("common", "weight")):
        names |= {f"{published}.embedding_{theirs}.0.{k}": f"scorer/{ours}.{mine}.{k}" for k in _LINEAR}
        if normed and theirs != "common":
            names |= {f"{published}.embedding_{theirs}.1.{k}": f"scorer/{ours}.{mine}_norm.{k}" for k in _BATCH_NORM}
    return names


def _scorer(state: State) -> dict[str, str]:
    names = _guided("v_global_w", "image_pool", True) | _guided("t_global_w", "caption_pool", False)
    for theirs, mine in (("sim_tranloc_w", "local_fc"), ("sim_tranglo_w", "whole_fc"), ("sim_eval_w", "score_fc")):
        names |= {f"{theirs}.{k}": f"scorer/{mine}.{k}" for k in _LINEAR}
    steps = {m.group(1) for key in state if (m := re.match(r"SGR_module\.(\d+)\.", key))}
    for step in steps:
        for theirs, mine in (("graph_query_w", "query"), ("graph_key_w", "key"), ("sim_graph_w", "out")):
            names |= {f"SGR_module.{step}.{theirs}.{k}": f"scorer/steps.{step}.{mine}.{k}" for k in _LINEAR}
    if not steps:
        names |= {f"SAF_module.attn_sim_w.{k}": f"scorer/filter_fc.{k}" for k in _LINEAR}
        names |= {f"SAF_module.bn.{k}": f"scorer/filter_norm.{k}" for k in _BATCH_NORM}
    return names


def convert_sgraf(state: State | Sequence[State], *, strict: bool = True) -> Converted:
    """Convert a checkpoint of SGRAF, or of DAA built on it: "scorer" for `SGR` or `SAF`.

    `state` is the similarity encoder's state dict, or the published checkpoint's list of three (images, captions,
    similarities), which also gives "image_head" for `PartsHead(2048, dim)`, "words" (the embedding) and "gru" for
    `BiGRU(…, merge="mean")`. `strict=False` allows keys to be missing (gradients have no running means).
    """
    if isinstance(state, Mapping):
        return _renamed(state, _scorer(state), {}, (), "sgraf", strict=strict)
    if len(state) != 3:
        raise InputError(f"an SGRAF checkpoint is a list of 3 state dicts (images, captions, scores), not {len(state)}")
    images, captions, scores = state
    image_names = {f"fc.{k}": f"image_head/fc.{k}" for k in _LINEAR}
    caption_names = {"embed.weight": "words/weight"} | {f"cap_rnn.{k}": f"gru/gru.{k}" for k in _GRU}
    result = _renamed(images, image_names, {}, (), "sgraf images", strict=strict)
    result |= _renamed(captions, caption_names, {}, (), "sgraf captions", strict=strict)
    return result | _renamed(scores, _scorer(scores), {}, (), "sgraf", strict=strict)


def _renamed(
    state: State,
    expected: Mapping[str, str],
    free: Mapping[str, str],
    dropped: Sequence[str],
    name: str,
    *,
    strict: bool = True,
) -> Converted:
    """The tensors of `state` by group and by our key.

    expected   published key → "group/our key"; all of them must be present
    free       patterns of keys that may be present → how they are renamed
    dropped    patterns of keys left out on purpose
    The prefix `module.`, which data parallelism adds, is removed.
    """
    state = {key.removeprefix("module."): value for key, value in state.items()}
    result: Converted = {}
    unknown = []
    for key, value in state.items():
        target = expected.get(key) or next(
            (m.expand(to) for p, to in free.items() if (m := re.fullmatch(p, key))), None
        )
        if target is not None:
            group, ours = target.split("/", 1)
            result.setdefault(group, {})[ours] = value
        elif not any(re.fullmatch(pattern, key) for pattern in dropped):
            unknown.append(key)
    missing = sorted(set(expected) - set(state)) if strict else []
    if missing or unknown:
        differences = [_listed(what, keys) for what, keys in (("missing", missing), ("unknown", unknown)) if keys]
        raise InputError(
            f"this is not a known {name} state dict: {'; '.join(differences)}",
            remedy="pass the state dict of the model (a checkpoint may hold it under a key such as 'model' or "
            "'state_dict')",
        )
    return result


def _listed(what: str, keys: Sequence[str]) -> str:
    shown = ", ".join(keys[:8]) + (f" and {len(keys) - 8} more" if len(keys) > 8 else "")
    return f"{len(keys)} {what} ({shown})"
