"""Published checkpoints' names: random state dicts of the published shapes load strictly into our modules."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from halation._errors import InputError
from halation.data import Features
from halation.encoders import (
    SAF,
    SGR,
    BiGRU,
    PartEmbedding,
    PartsHead,
    PCMEHead,
    PCMEPPHead,
    convert_pcme,
    convert_pcmepp,
    convert_sgraf,
)

D, WORD, DIM = 12, 6, 8


def filled(prefix: str, module: nn.Module) -> dict[str, Tensor]:
    """A state dict by the names of a torch module, filled at random."""
    return {f"{prefix}{k}": torch.randn(v.shape).to(v.dtype) for k, v in module.state_dict().items()}


def pie(d: int) -> dict[str, Tensor]:
    attention = {"attention.w_1.weight": torch.randn(d // 2, d), "attention.w_2.weight": torch.randn(1, d // 2)}
    return attention | filled("fc.", nn.Linear(d, DIM))


def pcme() -> dict[str, Tensor]:
    gru = nn.GRU(WORD, DIM // 2, bidirectional=True)
    state = filled("img_enc.cnn.conv1.", nn.Conv2d(3, 2, 3)) | filled("img_enc.fc.", nn.Linear(D, DIM))
    for side, d in (("img_enc", D), ("txt_enc", WORD)):
        state |= {f"{side}.pie_net.{k}": v for k, v in pie(d).items()}
        state |= filled(f"{side}.pie_net.layer_norm.", nn.LayerNorm(DIM))
        state |= {f"{side}.uncertain_net.{k}": v for k, v in pie(d).items()}
    state |= filled("img_enc.uncertain_net.fc2.", nn.Linear(D, DIM)) | filled("txt_enc.embed.", nn.Embedding(9, WORD))
    return state | filled("txt_enc.rnn.", gru) | filled("txt_enc.uncertain_net.rnn.", gru)


def pcmepp(scaled: bool) -> dict[str, Tensor]:
    gru = nn.GRU(32, 32, bidirectional=True)
    state = {"criterion.shift": torch.ones(1), "criterion.negative_scale": torch.ones(1)}
    for encoder in ("img_enc.image_encoder.", "img_enc.image_std_encoder."):
        state |= filled(f"{encoder}fc.", nn.Linear(D, DIM)) | filled(f"{encoder}gpool.gru.", gru)
        state |= filled(f"{encoder}gpool.linear.", nn.Linear(32, 1, bias=False))
    for kind in ("", "std_"):
        state |= filled(f"txt_enc.{kind}linear.", nn.Linear(WORD, DIM)) | filled(f"txt_enc.{kind}gpool.gru.", gru)
        state |= filled(f"txt_enc.{kind}gpool.linear.", nn.Linear(32, 1, bias=False))
    if scaled:
        state |= filled("img_enc.image_std_ln.", nn.LayerNorm(DIM)) | filled("txt_enc.text_std_ln.", nn.LayerNorm(DIM))
    state |= {"img_enc.backbone.conv1.weight": torch.randn(2, 3, 4, 4)}
    state |= {"txt_enc.backbone.transformer.resblocks.0.ln_1.weight": torch.randn(4)}
    return state | {"swa_img_enc.n_averaged": torch.ones(1)}


def sgraf(kind: str, dim: int = DIM, sim: int = 5, regions: int = 4) -> dict[str, Tensor]:
    state: dict[str, Tensor] = {}
    for side, norms in (("v_global_w", (nn.BatchNorm1d(regions), nn.BatchNorm1d(dim))), ("t_global_w", ())):
        for i, part in enumerate(("local", "global")):
            state |= filled(f"{side}.embedding_{part}.0.", nn.Linear(dim, dim))
            if norms:
                state |= filled(f"{side}.embedding_{part}.1.", norms[i])
                state[f"{side}.embedding_{part}.1.running_var"].abs_()
        state |= filled(f"{side}.embedding_common.0.", nn.Linear(dim, 1))
    state |= filled("sim_tranloc_w.", nn.Linear(dim, sim)) | filled("sim_tranglo_w.", nn.Linear(dim, sim))
    state |= filled("sim_eval_w.", nn.Linear(sim, 1))
    if kind == "SAF":
        state |= filled("SAF_module.attn_sim_w.", nn.Linear(sim, 1)) | filled("SAF_module.bn.", nn.BatchNorm1d(1))
        state["SAF_module.bn.running_var"].abs_()
        return state
    for step in range(3):
        for part in ("graph_query_w", "graph_key_w", "sim_graph_w"):
            state |= filled(f"SGR_module.{step}.{part}.", nn.Linear(sim, sim))
    return state


@pytest.mark.parametrize("prefix", ["", "module."])
def test_a_pcme_checkpoint_fills_both_heads(prefix: str) -> None:
    state = pcme()
    groups = convert_pcme({prefix + k: v for k, v in state.items()})
    image, text = PCMEHead(D, D, DIM), PCMEHead(1, WORD, DIM, "gru", "gru", variant="released")
    image.load_state_dict(groups["image_head"])
    text.load_state_dict(groups["text_head"])
    assert groups["words"]["weight"].shape == (9, WORD)
    assert set(groups["cnn"]) == {"conv1.weight", "conv1.bias"}
    x = torch.randn(2, 5, D)
    assert bool(image(Features(x.mean(1), x)).mean.isfinite().all())
    torch.testing.assert_close(image.spread.weight, state["img_enc.uncertain_net.fc2.weight"])


def test_the_text_head_reads_both_directions_at_the_last_word_as_released() -> None:
    state = pcme()
    head = PCMEHead(1, WORD, DIM, "gru", "gru", variant="released")
    head.load_state_dict(convert_pcme(state)["text_head"])
    gru = nn.GRU(WORD, DIM // 2, bidirectional=True, batch_first=True)
    gru.load_state_dict({k.removeprefix("txt_enc.rnn."): v for k, v in state.items() if k.startswith("txt_enc.rnn.")})
    words = torch.randn(1, 5, WORD)
    torch.testing.assert_close(head.summary(Features(words[:, 0], words)), gru(words)[0][:, -1])


@pytest.mark.parametrize("scaled", [False, True])
def test_a_pcmepp_checkpoint_fills_both_heads(scaled: bool) -> None:
    groups = convert_pcmepp(pcmepp(scaled))
    scale = 0.01 if scaled else None
    for group, width in (("image_head", D), ("text_head", WORD)):
        head = PCMEPPHead(1, width, DIM, scale=scale)
        head.load_state_dict(groups[group])
        assert len(head(Features(torch.ones(2, 1), torch.randn(2, 5, width)))) == 2
    assert set(groups) == {"image_head", "text_head", "image_backbone", "text_backbone", "loss"}


@pytest.mark.parametrize(("kind", "scorer"), [("SGR", SGR), ("SAF", SAF)])
def test_an_sgraf_checkpoint_fills_encoders_and_scorer(kind: str, scorer: Any) -> None:
    gru = nn.GRU(WORD, DIM, bidirectional=True)
    images = filled("fc.", nn.Linear(D, DIM))
    captions = filled("embed.", nn.Embedding(9, WORD)) | filled("cap_rnn.", gru)
    groups = convert_sgraf([images, captions, sgraf(kind)])
    ours = scorer(DIM, 5, regions=4).eval()
    ours.load_state_dict(groups["scorer"])
    PartsHead(D, DIM).load_state_dict(groups["image_head"])
    BiGRU(WORD, DIM, merge="mean").load_state_dict(groups["gru"])
    scores = ours(PartEmbedding(torch.randn(2, 4, DIM)), PartEmbedding(torch.randn(3, 5, DIM)))
    assert scores.shape == (2, 3) and bool(scores.isfinite().all())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: convert_pcme({k: v for k, v in pcme().items() if "fc2" not in k}),
            "2 missing (img_enc.uncertain_net.fc2",
        ),
        (lambda: convert_pcme(pcme() | {"img_enc.extra": torch.ones(1)}), "1 unknown (img_enc.extra)"),
        (lambda: convert_pcmepp(pcme()), "unknown"),
        (lambda: convert_sgraf({"model": torch.ones(1)}), "1 unknown (model)"),
        (lambda: convert_sgraf([{}, {}]), "list of 3 state dicts"),
        (lambda: convert_pcme({}, parts=("images",)), "did you mean 'image'"),  # type: ignore[arg-type]
    ],
)
def test_a_key_that_is_missing_or_unknown_is_listed(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        call()
