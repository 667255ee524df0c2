"""Read files without executing anything; write them whole or not at all."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from halation._errors import InputError
from halation._storage import publish_file

__all__ = [
    "Location",
    "cache_folder",
    "parse_json",
    "path_below",
    "read_json",
    "read_jsonl",
    "read_lines",
    "read_npy",
    "read_text",
    "write_text",
]


@dataclass(frozen=True)
class Location:
    """A file or a part of it, such as "line 12" or "images[3]", for errors about its content.

    >>> print(Location("captions.jsonl", "line 12").error('no "image"', remedy="name one"))
    captions.jsonl line 12: no "image"; name one
    """

    path: str | os.PathLike[str]
    part: str = ""

    def error(self, problem: str, remedy: str | None = None) -> InputError:
        """The error to raise about this location."""
        return InputError(f"{self.part}: {problem}", path=self.path, remedy=remedy)


def cache_folder() -> Path:
    """The folder for files that you may delete at any time: `HALATION_CACHE`, else inside the user's cache folder."""
    chosen = os.environ.get("HALATION_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(chosen) if chosen else home / "halation"


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text, whole or not at all."""
    with publish_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a UTF-8 file."""
    return _text(_existing(path))


def read_npy(path: str | os.PathLike[str], *, mmap: bool = True) -> npt.NDArray[Any]:
    """The array in a `.npy` file. Pickled objects and half-written files are errors."""
    source = _existing(path)
    try:
        array = np.load(source, mmap_mode="r" if mmap else None, allow_pickle=False)
    except ValueError as error:
        if any(word in str(error).lower() for word in ("pickle", "object")):
            raise InputError(
                "is not a plain array (pickled Python objects, or not a .npy file at all); such files can run code "
                "when loaded, so they are refused",
                path=source,
                remedy="save the numbers with numpy.save",
            ) from None
        raise InputError(f"is not a readable .npy file ({error}); was it written completely?", path=source) from None
    except (OSError, EOFError, SyntaxError) as error:
        raise InputError(f"is not a readable .npy file ({error}); was it written completely?", path=source) from None
    if not isinstance(array, np.ndarray):
        raise InputError("is an archive of several arrays", path=source, remedy="save the one matrix with numpy.save")
    return array


def read_json(path: str | os.PathLike[str]) -> Any:
    """The value in a JSON file; errors name file, line and column."""
    source = _existing(path)
    return parse_json(_text(source), str(source))


def read_jsonl(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) for every non-blank line of a JSON Lines file."""
    source = _existing(path)
    for number, line in read_lines(source):
        row = parse_json(line, str(source), number)
        if not isinstance(row, dict):
            raise InputError(f"line {number}: expected an object {{…}}, found {type(row).__name__}", path=source)
        yield number, row


def path_below(name: str, location: Location) -> str:
    """`name`, if it is a path that stays below its folder; `location` is where the name is written."""
    if name.startswith(("/", "\\", "~")) or ".." in re.split(r"[/\\]", name) or re.match(r"[A-Za-z]:", name):
        raise location.error(f"{name!r} leaves the dataset's folder", "name files below it")
    return name


def parse_json(text: str, source: str, line: int | None = None) -> Any:
    """The value of a JSON text; errors name `source`, and `line` if the text is one line of a file."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        position = f"line {line or error.lineno} column {error.colno}"
        raise InputError(f"{position}: not valid JSON ({error.msg})", path=source) from None
    except (RecursionError, ValueError) as error:  # brackets nested too deeply, or a number of 5,000 digits
        reason = "lists or objects nested too deeply" if isinstance(error, RecursionError) else str(error)
        position = "" if line is None else f"line {line}"
        message = f"{position}: JSON that cannot be read ({reason}); was the file damaged?"
        raise InputError(message, path=source) from None


def read_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """(line number, line without its end) for every non-blank line of a UTF-8 text file."""
    source = _existing(path)
    # split at line feeds only: str.splitlines would also split captions at characters such as U+2028
    for number, line in enumerate(_text(source).split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r")


def _text(source: Path) -> str:
    data = source.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"line {line}: not UTF-8 (byte {data[error.start]:#04x})"
        raise InputError(problem, path=source, remedy="convert the file") from None


def _existing(path: str | os.PathLike[str]) -> Path:
    source = Path(path)
    try:
        is_folder, is_file = source.is_dir(), source.is_file()
    except OSError as error:  # a name longer than the system allows
        raise InputError(f"{str(source)[:80]}… does not exist ({error.strerror})") from None
    if is_folder:
        raise InputError("is a folder", path=source, remedy="name a file")
    if not is_file:
        raise InputError("does not exist", path=source)
    return source
