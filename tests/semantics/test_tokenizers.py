"""Each tokenizer keeps to the rule it names."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halation.semantics import TOKENIZERS, Semantics, treebank, whitespace, words

# Expected tokens: the Stanford tokenizer inside pycocoevalcap (lower-cased, its punctuation list dropped).
AS_STANFORD = [
    ("The colour isn't grey (really) [or so]", "the colour is n't grey -lrb- really -rrb- -lsb- or so -rsb-"),
    ("He's there, they're here; I've won!", "he 's there they 're here i 've won"),
    ("we'll see, I'd say I'm late", "we 'll see i 'd say i 'm late"),
    ("can't, cannot, won't, don't, gonna, gotta, wanna", "ca n't can not wo n't do n't gon na got ta wan na"),
    ("at five o'clock, ma'am, with O'Brien", "at five o'clock ma'am with o'brien"),
    ("Mr. Smith and Dr. Jones vs. the U.S. Army at 5 p.m.", "mr. smith and dr. jones vs. the u.s. army at 5 p.m."),
    ("1,000 people pay $5.00 or 50% for #1", "1,000 people pay $ 5.00 or 50 % for # 1"),
    ("AT&T and R&B &amp; more, black/white and/or w/o", "at&t and r&b & more black/white and/or w/o"),
    ("a well-known t-shirt -- two--dashes - and — one", "a well-known t-shirt two dashes and one"),
    ('"quoted" and “curly”, it’s ‘so’', "quoted and curly it 's so"),
    ("wait... no;semi colon:word at 3:30 or 10:30am", "wait no semi colon word at 3:30 or 10:30 am"),
    ("http://foo.com or www.foo.com or me@foo.com", "http://foo.com or www.foo.com or me@foo.com"),
    ("the 2nd of 20 4x4 cars, 5-6 years", "the 2nd of 20 4x4 cars 5-6 years"),
    ("café naïve 日本 star_under #hashtag @user", "café naïve 日本 star_under #hashtag @user"),
    ("what?! huh!!", "what ?! huh !!"),
    ("rock 'n' roll of the '90s, the 1990's", "rock 'n' roll of the '90s the 1990 's"),
    ("the dogs' ball", "the dogs ball"),
    ("end of one.Next one,two , three", "end of one.next one two three"),
    ("", ""),
    (" . , - ", ""),
]


@pytest.mark.parametrize(("caption", "tokens"), AS_STANFORD)
def test_treebank_splits_as_the_stanford_tokenizer(caption: str, tokens: str) -> None:
    assert treebank(caption) == tokens.split()


def test_treebank_agrees_with_the_tokenizer_that_captioning_uses() -> None:
    if shutil.which("java") is None:
        pytest.skip("the tokenizer inside pycocoevalcap needs java")
    tokenizer = pytest.importorskip("pycocoevalcap.tokenizer.ptbtokenizer").PTBTokenizer()
    captions = {number: [{"caption": caption}] for number, (caption, _) in enumerate(AS_STANFORD)}
    theirs = tokenizer.tokenize(captions)
    for number, (caption, _) in enumerate(AS_STANFORD):
        assert theirs[number][0].split() == treebank(caption)


def test_words_are_those_of_scikit_learn() -> None:
    analyse = pytest.importorskip("sklearn.feature_extraction.text").TfidfVectorizer().build_analyzer()
    for caption, _ in AS_STANFORD:
        assert words(caption) == analyse(caption)


def test_whitespace_leaves_tokens_as_they_are() -> None:
    assert whitespace(" A dog 's\tball . ") == ["A", "dog", "'s", "ball", "."]


@given(st.text(max_size=60))
def test_any_text_has_tokens_without_white_space_or_nothingness(text: str) -> None:
    for tokenizer in TOKENIZERS.values():
        for token in tokenizer(text):
            assert token
            assert token.split() == [token]


@given(st.lists(st.sampled_from(["a", "dog", "runs", "t-shirt", "red", "bus", "in", "town"]), max_size=12))
def test_plain_words_are_their_own_tokens_whatever_the_case_and_commas(tokens: list[str]) -> None:
    assert treebank(" ".join(tokens)) == treebank(" , ".join(tokens).upper() + " .") == tokens


def test_a_report_can_name_the_tokenizer() -> None:
    def shout(text: str) -> list[str]:
        return text.upper().split()

    captions, image_of = ["a dog", "a bus"], [0, 1]
    assert Semantics.fit(captions, image_of, "tfidf").tokenizer == "words"
    assert Semantics.fit(captions, image_of, "mean").tokenizer == "words, treebank"
    assert (
        Semantics.fit(captions, image_of, "bleu4", tokenizer="whitespace").description == "bleu4 (tokens: whitespace)"
    )
    assert Semantics.fit(captions, image_of, "mean", tokenizer=shout).tokenizer == "shout"
