"""Agreement with people, against rank correlations counted pair by pair."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from halation import caption_relevance
from layouts import write_judgements
from studies import humans
from worlds import sample_truth


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as Flickr8k's, with captions and judgements of our own."""
    path = tmp_path_factory.mktemp("flickr8k")
    truth = sample_truth(images=12, seed=2)
    assert truth.captions is not None
    names = [f"{image:02d}.jpg" for image in range(12)]
    tokens = [f"{names[k // 5]}#{k % 5}\t{caption}" for k, caption in enumerate(truth.captions)]
    (path / "Flickr8k.token.txt").write_text("\n".join(tokens) + "\n")
    (path / "Flickr_8k.testImages.txt").write_text("\n".join(names) + "\n")
    return write_judgements(path)


def judged(folder: Path, name: str) -> list[tuple[int, int, list[float]]]:
    rows = [line.split("\t") for line in (folder / name).read_text().splitlines()]
    return [(int(i[:2]), 5 * int(c[:2]) + int(c[-1]), [float(x) for x in scores]) for i, c, *scores in rows]


def captions_of(folder: Path) -> list[str]:
    return [line.split("\t")[1] for line in (folder / "Flickr8k.token.txt").read_text().splitlines()]


def tau(points: list[tuple[float, float]], variant: str) -> float:
    """Kendall's τ straight from its definition."""
    agree = ties_x = ties_y = 0
    pairs = list(itertools.combinations(points, 2))
    for (x1, y1), (x2, y2) in pairs:
        agree += int(np.sign(x1 - x2) * np.sign(y1 - y2))
        ties_x += x1 == x2
        ties_y += y1 == y2
    if variant == "b":
        return 100 * agree / np.sqrt((len(pairs) - ties_x) * (len(pairs) - ties_y))
    smaller = min(len({x for x, _ in points}), len({y for _, y in points}))
    return 100 * 2 * agree / (len(points) ** 2 * (smaller - 1) / smaller)


@pytest.mark.parametrize("leave_one_out", [False, True])
def test_agreement_is_kendalls_tau_over_all_judged_pairs(folder: Path, leave_one_out: bool) -> None:
    study = humans(folder, relevances=["rouge-l"])
    row = study.agreements[int(leave_one_out)]
    assert row.leave_one_out == leave_one_out
    relevance = caption_relevance(
        captions_of(folder), np.repeat(np.arange(12), 5), metric="rouge-l", leave_one_out=leave_one_out
    )
    expert, crowd = judged(folder, "ExpertAnnotations.txt"), judged(folder, "CrowdFlowerAnnotations.txt")
    points = [(float(relevance[i, c]), score) for i, c, scores in expert for score in scores]
    assert row.expert_tau_c == pytest.approx(tau(points, "c"))
    assert row.crowd_tau_b == pytest.approx(tau([(float(relevance[i, c]), s[0]) for i, c, s in crowd], "b"))
    within = []
    for image in range(12):
        own = [(float(relevance[i, c]), float(np.mean(s))) for i, c, s in expert if i == image]
        if len({y for _, y in own}) > 1:
            within.append(tau(own, "b") if len({x for x, _ in own}) > 1 else 0.0)
    assert row.expert_within == pytest.approx(np.mean(within))
    assert row.expert_low <= row.expert_within <= row.expert_high


def test_the_literature_leaves_an_images_own_captions_out(folder: Path) -> None:
    study = humans(folder, relevances=["bleu1"])
    expert = [row for row in judged(folder, "ExpertAnnotations.txt") if row[1] // 5 != row[0]]
    assert study.expert_pairs == len(expert) < 72
    relevance = caption_relevance(captions_of(folder), np.repeat(np.arange(12), 5), metric="bleu1")
    points = [(float(relevance[i, c]), score) for i, c, scores in expert for score in scores]
    assert study.literature["bleu1"]["expert"] == pytest.approx(tau(points, "c"))


def test_gain_over_tfidf_is_zero_for_tfidf(folder: Path) -> None:
    row = humans(folder, relevances=["tfidf"]).agreements[0]
    assert (row.expert_gain, row.gain_low, row.gain_high) == (0, 0, 0)


def test_what_is_written_holds_numbers_and_no_caption(folder: Path, tmp_path: Path) -> None:
    study = humans(folder, relevances=["tfidf", "cider"])
    texts = [path.read_text() for path in study.write(tmp_path)]
    assert not any(caption in text for caption in captions_of(folder) for text in texts)
    assert len(json.loads(texts[1])["agreements"]) == 4
    assert study.best.relevance in str(study)


def test_published_figures_are_reproduced_with_pycocoevalcaps_conventions(shared_data: Path) -> None:
    published = {"bleu1": 32.3, "bleu4": 30.8, "rouge-l": 32.3, "cider-d": 43.9}
    study = humans(shared_data / "flickr8k", relevances=tuple(published))
    assert study.expert_pairs == 5664
    for name, value in published.items():
        assert study.literature[name]["expert"] == pytest.approx(value, abs=0.5), name
