"""Strict TOML ⇄ recipe: an unknown key, or a value of the wrong type, fails with its place and the nearest one."""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from halation._errors import InputError, one_of
from halation._files import read_text
from halation.training._recipe import Recipe

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["parse_recipe", "read_recipe", "to_toml"]

T = TypeVar("T")


def read_recipe(path: str | os.PathLike[str], settings: Iterable[str] = ()) -> Recipe:
    """A recipe file, or the name of one that comes with the package, with `section.key=value` settings on top."""
    source = Path(path)
    if not source.exists() and source.parent == Path() and not source.suffix:
        source = _packaged(source.name)
    return parse_recipe(read_text(source), settings, source=str(path))


def _packaged(name: str) -> Path:
    """Where a recipe of the package lies: within it, or beside its sources."""
    package = Path(__file__).parents[1]
    folder = next((place for place in (package / "recipes", package.parents[1] / "recipes") if place.is_dir()), package)
    return folder / f"{one_of(name, sorted(path.stem for path in folder.glob('*.toml')), 'recipe')}.toml"


def parse_recipe(text: str, settings: Iterable[str] = (), source: str = "recipe") -> Recipe:
    """A recipe from its text.

    >>> parse_recipe("[train]\\nepochs = 3", ["loss.daa.weight=5"]).loss.daa.weight
    5.0
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source}: not valid TOML ({error})") from None
    for setting in settings:
        _put(document, setting)
    return _filled(Recipe, document, "", source)


def to_toml(recipe: Recipe) -> str:
    """The recipe as TOML: every key, whether given or not."""
    lines: list[str] = []
    _write(dataclasses.asdict(recipe), "", lines)
    return "\n".join(lines).lstrip("\n") + "\n"


def _put(document: dict[str, Any], setting: str) -> None:
    path, equals, value = setting.partition("=")
    if not equals:
        raise InputError(f"--set {setting}: expected section.key=value, as in train.epochs=3")
    *sections, key = path.strip().split(".")
    for section in sections:
        document = document.setdefault(section, {})
        if not isinstance(document, dict):
            raise InputError(f"--set {setting}: {section} is not a section")
    document[key] = _value(value.strip())


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text  # a name without quotes


def _filled(kind: type[T], values: Mapping[str, Any], place: str, source: str) -> T:
    fields, hints = {f.name: f for f in dataclasses.fields(kind)}, get_type_hints(kind)  # type: ignore[arg-type]
    given: dict[str, Any] = {}
    for key, value in values.items():
        here = f"{place}{key}"
        if key not in fields:
            raise InputError(f"{source}: there is no {here}; {_nearest(key, place)}")
        wanted = hints[key]
        if dataclasses.is_dataclass(wanted):
            if not isinstance(value, Mapping):
                raise InputError(f"{source}: {here} is a section with keys of its own, not {value!r}")
            given[key] = _filled(wanted, value, f"{here}.", source)  # type: ignore[arg-type]
        else:
            given[key] = _typed(value, wanted, here, source)
    try:
        return kind(**given)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _typed(value: Any, wanted: type, here: str, source: str) -> Any:
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if wanted is float and isinstance(value, str):
        try:
            return float(value)  # 1e-3 is no TOML float, but everybody writes it
        except ValueError:
            pass
    if type(value) is not wanted:
        kinds = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
        raise InputError(f"{source}: {here} is {value!r}; it must be {kinds[wanted]}")
    return value


def _nearest(key: str, place: str) -> str:
    known = list(_keys(Recipe))
    near = difflib.get_close_matches(f"{place}{key}", known, n=1, cutoff=0.5)
    near = near or [name for name in known if name.rsplit(".", 1)[-1] == key][:1]
    siblings = [name for name in known if name.startswith(place) and "." not in name[len(place) :]]
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(siblings) or 'none'}"


def _keys(kind: type, place: str = "") -> Iterable[str]:
    hints = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        here = f"{place}{field.name}"
        if dataclasses.is_dataclass(hints[field.name]):
            yield from _keys(hints[field.name], f"{here}.")
        else:
            yield here


def _write(values: Mapping[str, Any], place: str, lines: list[str]) -> None:
    for key, value in values.items():
        if not isinstance(value, Mapping):
            lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
    for key, value in values.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{place}{key}]"]
            _write(value, f"{place}{key}.", lines)
