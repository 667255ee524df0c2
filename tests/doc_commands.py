"""The commands of a console block: run for real where that takes seconds, else parsed by the real command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from doc_blocks import ROOT, Block
from halation.cli import main
from halation.config._toml import tomllib

# what a recipe is cut down to, so that it trains in a second: the verb, the keys and the files stay real
SMALL = (
    "train.epochs=1", "train.batch_size=16", "train.warmup=1", "train.captions_per_image=1", "text.backbone=words_gru",
    "text.min_count=1", "text.dim=8", "text.hidden=8", "text.vectors=''", "model.dim=16",
)  # fmt: skip
_FEW = ("--train", "64", "--dev", "48", "--test", "24")
_ENDLESS = ("serve",)  # ends with Ctrl-C


def commands(block: Block) -> list[tuple[str, str]]:
    """(command, what is shown below it) of every line that begins with "$ "; a backslash joins lines."""
    joined = block.code.replace("\\\n", " ")
    found: list[tuple[str, str]] = []
    for line in joined.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif found:
            found[-1] = (found[-1][0], f"{found[-1][1]}{line}\n")
    assert found, f"{block.place}: a console block needs a line that begins with '$ '"
    return found


def check(block: Block, shown: Callable[[], str]) -> None:
    """Run or parse a console block; `shown` gives what was printed since it was asked last."""
    for command, below in commands(block):
        words = [word for word in shlex.split(command, comments=True) if not re.match(r"^[A-Z_]+=", word)]
        program = words[0]
        assert program in _PROGRAMS, f"{block.place}: {program} is not known to the test of the docs"
        assert program in ("halation", "make", "pip") or block.why_not, f"{block.place}: {program} is not run; say why"
        run = block.why_not is None
        if program != "halation" or not run or words[1] in _ENDLESS:
            _PROGRAMS[program](words[1:], block.place)
            continue
        shown()
        wrong = below.startswith("halation: ")
        code = _run(_cut_down(words[1:]))
        said = shown()
        assert code == (2 if wrong else 0), f"{block.place}: {command} ended with {code}:\n{said}"
        if wrong:
            assert _flat(below) in _flat(said), f"{block.place}: it said\n{said}"


def _flat(text: str) -> str:
    return " ".join(text.split())


def _run(words: list[str]) -> int:
    try:
        main(words)
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def _cut_down(words: list[str]) -> list[str]:
    if words[0] == "train":  # the page's own settings are read too, and a wrong one is still wrong
        return [*words, *(part for setting in SMALL for part in ("--set", setting))]
    if words[:2] == ["data", "scenes"]:
        return [*words, *_FEW]
    return words


def parse(words: list[str], place: str) -> None:
    """The verb, its arguments and options exist; nothing is run."""
    from typer.main import get_command

    from halation.cli._app import app

    command: Any = get_command(app)
    rest, path = list(words), "halation"
    while hasattr(command, "commands"):
        assert rest and rest[0] in command.commands, f"{place}: there is no {path} {' '.join(rest[:1])}"
        command, path = command.commands[rest[0]], f"{path} {rest.pop(0)}"
    try:
        command.make_context(path, rest)
    except Exception as error:  # of click, or of typer's own copy of it
        raise AssertionError(f"{place}: {path}: {getattr(error, 'format_message', error.__str__)()}") from error


def _torchrun(words: list[str], place: str) -> None:
    start = words.index("-m")
    assert words[start + 1] == "halation", f"{place}: torchrun of something else"
    parse(words[start + 2 :], place)


def _make(words: list[str], place: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [word for word in words if "=" not in word]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{place}: the Makefile has no {target}"


def _pip(words: list[str], place: str) -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for extras in re.findall(r"\[([\w,]+)\]", " ".join(words)):
        assert set(extras.split(",")) <= set(known), f"{place}: there is no extra {extras}"


def _python(words: list[str], place: str) -> None:
    if words[0] == "-m":  # python -m bench losses, python -m bench.sizing
        parts = words[2:] if words[1] == "bench" else [words[1].removeprefix("bench.")]
        assert all((ROOT / "bench" / f"{part}.py").is_file() for part in parts), f"{place}: no such benchmark"
    else:
        assert (ROOT / Path(words[0])).is_file(), f"{place}: {words[0]} does not exist"


def _elsewhere(words: list[str], place: str) -> None:
    """A program that is not ours."""


_PROGRAMS: dict[str, Callable[[list[str], str], None]] = {
    "halation": parse,
    "torchrun": _torchrun,
    "make": _make,
    "pip": _pip,
    "python": _python,
    **dict.fromkeys(("curl", "docker", "git", "helm", "kill", "rsync"), _elsewhere),
}
