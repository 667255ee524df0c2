"""Tokenizers: three plain functions from a caption to its tokens."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import MappingProxyType

from halation._errors import InputError, one_of

__all__ = ["TOKENIZERS", "Tokenizer", "as_tokenizer", "callable_name", "treebank", "whitespace", "words"]

Tokenizer = Callable[[str], list[str]]
"""Any function from a caption to its tokens."""

_WORD = re.compile(r"\b\w\w+\b")


def words(text: str) -> list[str]:
    r"""Runs of two or more word characters, lower-cased: scikit-learn's `\b\w\w+\b`, the words of `tfidf`.

    >>> words("A dog's T-shirt, size 10")
    ['dog', 'shirt', 'size', '10']
    """
    return _WORD.findall(text.lower())


def whitespace(text: str) -> list[str]:
    """The parts between white space, unchanged. For text that is tokenised already.

    >>> whitespace("a dog 's ball")
    ['a', 'dog', "'s", 'ball']
    """
    return text.split()


# Typographic marks and entities are written plainly before the text is split, longer ones first.
_PLAIN = {
    "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&nbsp;": " ",
    "’": "'", "‘": "'", "`": "'", "“": '"', "”": '"', "–": " -- ", "—": " -- ", "…": "...",
}  # fmt: skip
_ORNATE = re.compile("|".join(map(re.escape, _PLAIN)))

_LETTER = r"[^\W\d_]"
_CLITIC = r"(?:s|re|ve|ll|d|m)(?!\w)"
_ABBREVIATION = (
    "adm|apr|aug|ave|blvd|bros|capt|co|col|corp|cos|ct|dec|dept|dr|drs|etc|feb|ft|gen|gov|inc|jan|jr|lt|ltd|maj|"
    "messrs|mr|mrs|ms|mt|no|nos|nov|oct|pres|prof|rd|rep|rev|sen|sept|sgt|sr|st|univ|vs|wed"
)
_TOKEN = re.compile(
    rf"""
      [a-z]+(?![^\s,])                                    # most words: nothing but white space or a comma follows
    | (?:https?://|www\.)\S*[\w/] | \w[\w.+-]*@\w[\w-]*(?:\.\w+)+    # web and mail addresses
    | [\#@]{_LETTER}\w*                                   # hash tags, user names
    | n't\b | '{_CLITIC} | \w+?(?=n't(?!\w))              # is|n't, dog|'s
    | '\d\ds\b | 'n'(?!\w) | 'em\b                        # the '90s, rock 'n' roll
    | (?:{_LETTER}\.)+(?:{_LETTER}(?!\w))?                # initials and acronyms keep their full stops: u.s.
    | (?:{_ABBREVIATION})\.(?!\w)                         # so do abbreviations: mr.
    | \d+(?:[.,:]\d+)+(?=[ap]m\b)                         # 3:30|pm
    | \w+'(?!{_CLITIC}){_LETTER}+                         # o'clock
    | (?:(?<!\S)[.:](?=\d))?\w+(?:[.,:]\d+)*(?:(?:[-&/]|\.(?={_LETTER}))\w+)*   # t-shirt, at&t, a/c, 1,000, rees.com
    | <[^\s<>]+> | [?!]+ | \.\.\. | --+ | \S
    """,
    re.VERBOSE,
)
_AS_TWO = {
    "cannot": ["can", "not"], "gimme": ["gim", "me"], "gonna": ["gon", "na"], "gotta": ["got", "ta"],
    "lemme": ["lem", "me"], "wanna": ["wan", "na"],
}  # fmt: skip
_BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
# The tokens that pycocoevalcap drops. Its list has -LRB- too, but lets the lower-cased -lrb- through, and so do we.
_DROPPED = dict.fromkeys(["'", "''", '"', "`", "``", ".", "...", "?", "!", ",", ":", ";", "-", "--"])
_SPECIAL: dict[str, list[str]] = {
    **{token: [] for token in _DROPPED},
    **{token: [name] for token, name in _BRACKETS.items()},
    **_AS_TWO,
}


def treebank(text: str) -> list[str]:
    """Lower-cased Penn Treebank tokens without punctuation, as captioning metrics are computed on.

    Entities and typographic quotes are first written plainly. Clitics are split off ("dog|'s", "is|n't"), and so are
    the halves of "can|not", "gon|na" and similar words. Words joined by a hyphen, ampersand, slash or full stop stay
    one token, as do numbers, times, addresses, initials ("u.s.") and common abbreviations ("mr."). Brackets become
    -lrb- and -rrb-. Everything else is one token per character, and the marks `' " . ? ! , : ; -` are dropped.

    Real captions give the tokens of the Stanford tokenizer inside pycocoevalcap (`python -m bench tokenizer` counts
    them). The few exceptions are where that tokenizer looks at capitals, which are lower-cased here: it keeps "AT&T"
    but splits "at & t".

    >>> treebank("A dog's T-shirt isn't dry (yet), Mr. Smith!")
    ['a', 'dog', "'s", 't-shirt', 'is', "n't", 'dry', '-lrb-', 'yet', '-rrb-', 'mr.', 'smith']
    """
    text = text.lower()
    if not text.isascii() or "&" in text or "`" in text:
        text = _ORNATE.sub(lambda match: _PLAIN[match.group()], text)
    tokens: list[str] = []
    for token in _TOKEN.findall(text):
        if token in _SPECIAL:
            tokens += _SPECIAL[token]
        else:
            tokens.append(token)
    return tokens


TOKENIZERS: MappingProxyType[str, Tokenizer] = MappingProxyType(
    {"treebank": treebank, "whitespace": whitespace, "words": words}
)
"""The tokenizers by name."""


def as_tokenizer(tokenizer: str | Tokenizer) -> Tokenizer:
    """The tokenizer of that name, or the callable itself."""
    if isinstance(tokenizer, str):
        return TOKENIZERS[one_of(tokenizer, TOKENIZERS, "tokenizer")]
    if not callable(tokenizer):
        raise InputError(f"tokenizer must be a name ({', '.join(TOKENIZERS)}) or a function, not {tokenizer!r}")
    return tokenizer


def callable_name(function: Callable[..., object]) -> str:
    """The name of a tokenizer or an encoder in a report: its `name`, else the name of its function or class."""
    return str(getattr(function, "name", None) or getattr(function, "__name__", None) or type(function).__name__)
