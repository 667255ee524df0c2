"""The code blocks of README and docs: which there are, in which language, and whether they are to be run.

A block is fenced and says its language. An HTML comment on the line before can say that it is not run, and why:

    <!-- run: no, takes hours -->

Such a block is still read: its commands are parsed by the real command line, its Python is compiled and its imports are
made. No other comment may stand there, and no block may be indented instead of fenced.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = ("python", "console", "toml", "json", "text")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^( *)```(\S*) *$")
_COMMENT = re.compile(r"^ *<!-- (.*) -->$")
_NO = re.compile(r"^run: no, (\S.*)$")


@dataclass(frozen=True)
class Block:
    """One fenced block. why_not: the reason it is not run; None where it is."""

    place: str  # page:line, for messages
    language: str
    code: str
    why_not: str | None


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in order; what breaks the rules above is an AssertionError that names the place."""
    return read(page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix())


def read(text: str, name: str) -> list[Block]:
    """The blocks of a text."""
    found: list[Block] = []
    lines = text.split("\n")
    at, in_list = 0, False
    while at < len(lines):
        line, place = lines[at], f"{name}:{at + 1}"
        opening = _FENCE.match(line)
        if opening is None:
            in_list = _in_list(line, in_list)
            blank_above = at == 0 or not lines[at - 1].strip()
            indented = line.startswith("    ") and line.strip() and blank_above and not in_list
            assert not indented, f"{place}: an indented block; fence it and say its language"
            at += 1
            continue
        indent, language = opening.groups()
        assert language in LANGUAGES, f"{place}: the language is {language!r}; give one of {', '.join(LANGUAGES)}"
        end = next((k for k in range(at + 1, len(lines)) if lines[k].strip() == "```"), None)
        assert end is not None, f"{place}: the block has no end"
        code = "\n".join(inner.removeprefix(indent) for inner in lines[at + 1 : end])
        found.append(Block(place, language, code + "\n", _why_not(lines[at - 1] if at else "", place)))
        at = end + 1
    return found


def _in_list(line: str, before: bool) -> bool:
    """Whether what follows may belong to an item of a list: then four spaces are no code."""
    if re.match(r"^ *([-*]|\d+\.) ", line):
        return True
    return before and (not line.strip() or line.startswith(" "))


def _why_not(line: str, place: str) -> str | None:
    comment = _COMMENT.match(line)
    if comment is None:
        return None
    reason = _NO.match(comment[1])
    assert reason, f"{place}: {comment[1]!r} is no mark; `run: no, REASON` is the only one"
    return reason[1]
