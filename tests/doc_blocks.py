"""The code blocks of README and docs: which there are, and in which language.

A block is fenced and says its language. All are run, and no mark keeps one from it: no comment may stand on the line
before, and no block may be indented instead of fenced.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = ("python", "console", "toml", "json", "text")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^( *)```(\S*) *$")
_COMMENT = re.compile(r"^ *<!--.*-->$")


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    place: str  # page:line, for messages
    language: str
    code: str


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
        assert not (at and _COMMENT.match(lines[at - 1])), f"{place}: a comment above a block; every block is run"
        code = "\n".join(inner.removeprefix(indent) for inner in lines[at + 1 : end])
        found.append(Block(place, language, code + "\n"))
        at = end + 1
    return found


def _in_list(line: str, before: bool) -> bool:
    """Whether what follows may belong to an item of a list: then four spaces are no code."""
    if re.match(r"^ *([-*]|\d+\.) ", line):
        return True
    return before and (not line.strip() or line.startswith(" "))
