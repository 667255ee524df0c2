"""Words and their numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from halation import InputError
from halation.encoders import Vocabulary

CAPTIONS = ["Two dogs run over grass.", "Two cats sleep", "Two dogs sleep"]


def test_frequent_words_come_first_and_equals_by_the_alphabet() -> None:
    assert Vocabulary.build(CAPTIONS).words == ("two", "dogs", "sleep", "cats", "grass", "over", "run")
    assert Vocabulary.build(reversed(CAPTIONS)).words == Vocabulary.build(CAPTIONS).words


def test_rare_words_are_left_out_and_become_the_unknown_word() -> None:
    vocabulary = Vocabulary.build(CAPTIONS, min_count=2)
    assert vocabulary.words == ("two", "dogs", "sleep") and len(vocabulary) == 5
    assert "cats" not in vocabulary and "dogs" in vocabulary
    assert vocabulary.encode(["cats sleep"]).ids.tolist() == [[Vocabulary.UNKNOWN, 4]]


def test_captions_are_padded_to_the_longest_of_the_call() -> None:
    ids, mask, _ = Vocabulary.build(CAPTIONS).encode(["dogs", "two dogs sleep"])
    assert ids.tolist() == [[3, Vocabulary.PADDING, Vocabulary.PADDING], [2, 3, 4]] and ids.dtype == torch.int64
    assert mask.tolist() == [[True, False, False], [True, True, True]]


@pytest.mark.parametrize("caption", ["", "   ", "?!", "a"])
def test_a_caption_without_words_is_one_unknown_word(caption: str) -> None:
    ids, mask, _ = Vocabulary.build(CAPTIONS).encode([caption])
    assert ids.tolist() == [[Vocabulary.UNKNOWN]] and mask.tolist() == [[True]]


def test_the_tokenizer_belongs_to_the_vocabulary(tmp_path: Path) -> None:
    vocabulary = Vocabulary.build(["a dog's ball"], tokenizer="treebank")
    assert "'s" in vocabulary and "a" in vocabulary
    vocabulary.save(tmp_path / "v.json")
    assert Vocabulary.load(tmp_path / "v.json") == vocabulary
    with pytest.raises(InputError, match="treebank"):
        Vocabulary.build(CAPTIONS, tokenizer="treebnk")


def test_what_is_saved_is_loaded_whatever_the_script(tmp_path: Path) -> None:
    vocabulary = Vocabulary.build(["zwei große hunde", "две собаки", "犬が 走る", 'the "quoted" word'])
    vocabulary.save(tmp_path / "v.json")
    again = Vocabulary.load(tmp_path / "v.json")
    assert again == vocabulary and hash(again) == hash(vocabulary)
    assert torch.equal(again.encode(["große собаки"]).ids, vocabulary.encode(["große собаки"]).ids)
    assert [path.name for path in tmp_path.iterdir()] == ["v.json"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": "something else"}, "not a vocabulary"),
        ({"words": ["dog", "dog"]}, "twice"),
        ({"words": ["dog", 3]}, "list of words"),
        ({"words": ["dog", ""]}, "list of words"),
        ({"tokenizer": "spaces"}, "tokenizer"),
        ({"more": 1}, "more"),
    ],
)
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = tmp_path / "v.json"
    Vocabulary(["dog"]).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=says) as caught:
        Vocabulary.load(path)
    assert "v.json" in str(caught.value)


def test_nothing_to_build_from_or_to_encode_is_an_error() -> None:
    with pytest.raises(InputError, match="min_count"):
        Vocabulary.build(CAPTIONS, min_count=9)
    with pytest.raises(InputError, match="no captions"):
        Vocabulary(["dog"]).encode([])
    with pytest.raises(InputError, match="one string"):
        Vocabulary(["dog"]).encode("dog")
