"""Strict TOML to frozen dataclasses and back: a wrong key or value fails with its name and a remedy."""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar, get_type_hints

from halation._errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["apply_setting", "check_numbers", "from_toml", "number", "parse_toml", "to_toml"]

T = TypeVar("T")

_BOUNDS = "halation.bounds"


@dataclasses.dataclass(frozen=True)
class _Bounds:
    least: float  # -inf: any number
    above_zero: bool
    below: float

    def __contains__(self, value: float) -> bool:
        return math.isfinite(value) and self.least <= value < self.below and not (self.above_zero and value == 0)

    def __str__(self) -> str:
        lower = "a number" if self.least == -math.inf else "above 0" if self.above_zero else "0 or more"
        return lower if self.below == math.inf else f"{lower} and below {self.below:g}"


def number(default: T, *, positive: bool = False, any_sign: bool = False, below: float = math.inf) -> T:
    """A dataclass field whose value must stay within bounds: 0 or more, unless you set others.

    positive   above 0
    any_sign   any finite number
    below      less than this
    """
    bounds = _Bounds(-math.inf if any_sign else 0.0, positive, below)
    field: T = dataclasses.field(default=default, metadata={_BOUNDS: bounds})
    return field


def check_numbers(section: Any, name: str) -> None:
    """Raise an `InputError` for the first number of a dataclass that is out of its bounds; `name` is the section's."""
    for field in dataclasses.fields(section):
        value = getattr(section, field.name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        bounds: _Bounds = field.metadata.get(_BOUNDS, _Bounds(0.0, False, math.inf))
        if value not in bounds:
            raise InputError(f"{name}.{field.name} is {value}; it must be {bounds}")


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """The document as nested dicts; the error names `source`."""
    try:
        document: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f": not valid TOML ({error})", path=source) from None
    return document


def apply_setting(document: dict[str, Any], setting: str) -> None:
    """Apply a setting `section.key=value` to a document; text values need no quotes."""
    path, equals, value = setting.partition("=")
    if not equals:
        problem = f"the setting {setting!r} is not of the form section.key=value"
        raise InputError(problem, remedy="write it as in train.epochs=3", argument="overrides")
    *sections, key = path.strip().split(".")
    for section in sections:
        document = document.setdefault(section, {})
        if not isinstance(document, dict):
            raise InputError(f"the setting {setting!r} does not fit: {section} is not a section")
    document[key] = _parsed(value.strip())


def from_toml(kind: type[T], document: Mapping[str, Any], source: str, *, skip: Iterable[str] = ()) -> T:
    """The document as a dataclass `kind`; unknown keys and wrong types are errors. Sections in `skip` are ignored.

    A class variable `removed_keys` names keys of earlier versions, each with what to do about it. Such a key is ignored
    if it is 0, empty or false, or if there is nothing to do; otherwise it is an InputError.
    """
    return _Filler(kind, source).fill(kind, {key: document[key] for key in document if key not in set(skip)}, "")


def to_toml(values: Any) -> str:
    """A dataclass as TOML: every key, whether it was given or not."""
    lines: list[str] = []
    _write(dataclasses.asdict(values), "", lines)
    return "\n".join(lines).lstrip("\n") + "\n"


class _Filler:
    def __init__(self, root: type, source: str) -> None:
        self.root, self.source = root, source

    def fill(self, kind: type[T], values: Mapping[str, Any], prefix: str) -> T:
        hints = get_type_hints(kind)
        known = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
        removed: Mapping[str, str] = getattr(kind, "removed_keys", {})
        given: dict[str, Any] = {}
        for key, value in values.items():
            name = f"{prefix}{key}"
            if key in removed:
                if value and removed[key]:
                    problem = f": {name} is {value!r}, but {key} was removed"
                    raise InputError(problem, path=self.source, remedy=removed[key])
                continue
            if key not in known:
                raise InputError(f": there is no {name}; {_suggestion(self.root, name)}", path=self.source)
            wanted = hints[key]
            if not dataclasses.is_dataclass(wanted):
                given[key] = _typed(value, wanted, name, self.source)
            elif isinstance(value, Mapping):
                given[key] = self.fill(wanted, value, f"{name}.")  # type: ignore[arg-type]
            else:
                raise InputError(f": {name} is a section with keys of its own, not {value!r}", path=self.source)
        try:
            return kind(**given)
        except InputError as error:
            raise InputError(f": {error}", path=self.source) from None


def _parsed(text: str) -> Any:
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text  # text without quotes


def _typed(value: Any, wanted: type, name: str, source: str) -> Any:
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if wanted is float and isinstance(value, str):
        try:
            return float(value)  # such as ".5", which is not a TOML float
        except ValueError:
            pass
    if type(value) is not wanted:
        kinds = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
        raise InputError(f": {name} is {value!r}; it must be {kinds[wanted]}", path=source)
    return value


def _suggestion(root: type, name: str) -> str:
    """A hint for an unknown key: the nearest keys of its section, else of any section, else all keys of its section."""
    known = list(_names(root))
    section, _, key = name.rpartition(".")
    siblings = [other for other in known if other.rpartition(".")[0] == section]
    likely = _nearest(key, siblings) or [other for other in known if other.rpartition(".")[2] == key]
    likely = likely or _nearest(key, known, cutoff=0.8)
    if likely:
        *first, last = likely[:3]
        return f"did you mean {', '.join(first)}{' or ' if first else ''}{last}?"
    return f"there are {', '.join(siblings) or 'none'}"


def _nearest(key: str, names: list[str], cutoff: float = 0.6) -> list[str]:
    """The names whose last part resembles `key`: misspelt, shortened (dim, lr) or written out (dimension)."""
    by_key = {name: name.rpartition(".")[2] for name in reversed(names)}
    close = difflib.get_close_matches(key.lower(), set(by_key.values()), n=1, cutoff=cutoff)
    if not close:
        initials = "".join(word[:1] for word in key.lower().split("_"))
        close = [
            other
            for other in by_key.values()
            if other == initials or (min(len(other), len(key)) > 2 and (key.startswith(other) or other.startswith(key)))
        ][:1]
    return [name for name in names if close and by_key[name] == close[0]]


def _names(kind: type, prefix: str = "") -> Iterator[str]:
    """Every key and every section, with its path."""
    hints = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        name = f"{prefix}{field.name}"
        yield name
        if dataclasses.is_dataclass(hints[field.name]):
            yield from _names(hints[field.name], f"{name}.")


def _write(values: Mapping[str, Any], prefix: str, lines: list[str]) -> None:
    for key, value in values.items():
        if not isinstance(value, Mapping):
            lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
    for key, value in values.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{prefix}{key}]"]
            _write(value, f"{prefix}{key}.", lines)
