"""A small world: scenes of one to three objects, and statements that are true or false of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from halation._arrays import BoolArray, IntArray

__all__ = [
    "ATTRIBUTES",
    "BACKGROUNDS",
    "MOST",
    "Object",
    "Predicate",
    "Scene",
    "pick",
    "random_scene",
    "true_of",
    "truths",
]

ATTRIBUTES: dict[str, tuple[Any, ...]] = {
    "shape": ("circle", "square", "triangle", "star", "cross", "diamond"),
    "colour": ("red", "green", "blue", "yellow", "purple", "orange"),
    "size": ("small", "large"),
    "row": (0, 1, 2),  # from the top
    "column": (0, 1, 2),  # from the left
}
BACKGROUNDS = ("white", "black", "grey", "pink", "green", "blue")
MOST = 3  # objects in a scene

Predicate = Sequence[Mapping[str, Any]]
"""Clauses that must all be true of a scene:

    {"some": {"colour": "red", "column": 0}}           an object with all these attributes
    {"pair": [{…}, {…}], "where": "left"}              two objects, one of each kind; the first left of the second
                                                       ("right", "above", "below", or None for anywhere)
    {"count": 2, "of": {"shape": "circle"}}            exactly this many objects of this kind ({} = any)
    {"background": "green"}
"""


@dataclass(frozen=True)
class Object:
    """One thing in a scene. Its cell is (row, column) of a 3 × 3 grid; x and y move it a little within the cell."""

    shape: str
    colour: str
    size: str
    row: int
    column: int
    x: float = 0.0  # of a cell's side, −0.5 … 0.5
    y: float = 0.0


@dataclass(frozen=True)
class Scene:
    """A background and one to three objects in different cells."""

    background: str
    objects: tuple[Object, ...]

    @property
    def essence(self) -> tuple[Any, ...]:
        """All that statements can be about: two scenes of the same essence have the same true statements."""
        kinds = sorted((o.row, o.column, o.shape, o.colour, o.size) for o in self.objects)
        return (self.background, *kinds)


def pick(options: Sequence[Any], generator: np.random.Generator) -> Any:
    """One of the options, all equally likely."""
    return options[int(generator.random() * len(options))]  # many times faster than generator.choice


def random_scene(generator: np.random.Generator) -> Scene:
    """A scene at random; nothing has the background's colour."""
    background = pick(BACKGROUNDS, generator)
    colours = [colour for colour in ATTRIBUTES["colour"] if colour != background]
    count = pick((1, 1, 1, 1, 1, 2, 2, 2, 2, 3), generator)  # mostly few: what a small network learns in a minute
    cells = generator.permutation(9)[:count]
    objects = []
    for cell in cells:
        shape, colour = pick(ATTRIBUTES["shape"], generator), pick(colours, generator)
        size = pick(ATTRIBUTES["size"], generator)
        x, y = (round(float(move), 3) for move in generator.uniform(-0.1, 0.1, 2))
        objects.append(Object(shape, colour, size, int(cell) // 3, int(cell) % 3, x, y))
    return Scene(background, tuple(objects))


def true_of(predicate: Predicate, scene: Scene) -> bool:
    """Whether a statement is true of a scene; `truths` does the same for many at once.

    >>> scene = Scene("grey", (Object("circle", "red", "large", 0, 0), Object("star", "blue", "small", 2, 1)))
    >>> true_of([{"some": {"colour": "red", "column": 0}}, {"count": 2, "of": {}}], scene)
    True
    >>> true_of([{"pair": [{"shape": "star"}, {"shape": "circle"}], "where": "above"}], scene)
    False
    """
    return all(_clause_true(clause, scene) for clause in predicate)


def _clause_true(clause: Mapping[str, Any], scene: Scene) -> bool:
    if "background" in clause:
        return bool(scene.background == clause["background"])
    if "some" in clause:
        return any(_fits(thing, clause["some"]) for thing in scene.objects)
    if "count" in clause:
        return bool(sum(_fits(thing, clause["of"]) for thing in scene.objects) == clause["count"])
    one, other = clause["pair"]
    return any(
        a is not b and _fits(a, one) and _fits(b, other) and _stands(a, b, clause["where"])
        for a in scene.objects
        for b in scene.objects
    )


def _fits(thing: Object, kind: Mapping[str, Any]) -> bool:
    return all(getattr(thing, attribute) == value for attribute, value in kind.items())


def _stands(a: Object, b: Object, where: str | None) -> bool:
    if where is None:
        return True
    first, second = (a.column, b.column) if where in ("left", "right") else (a.row, b.row)
    return first < second if where in ("left", "above") else first > second


def truths(predicates: Sequence[Predicate], scenes: Sequence[Scene]) -> BoolArray:
    """(n_scenes, n_predicates): whether each statement is true of each scene."""
    world = _Arrays(scenes)
    keys = [json.dumps(predicate, sort_keys=True) for predicate in predicates]
    column_of = {key: column for column, key in enumerate(dict.fromkeys(keys))}
    columns = np.empty((len(column_of), len(scenes)), dtype=np.bool_)
    for key, column in column_of.items():
        columns[column] = np.logical_and.reduce([world.clause(clause) for clause in json.loads(key)])
    return np.ascontiguousarray(columns[[column_of[key] for key in keys]].T)


class _Arrays:
    """Scenes as arrays (n, 3): a column for each possible object."""

    def __init__(self, scenes: Sequence[Scene]) -> None:
        self._there = np.array([[k < len(scene.objects) for k in range(MOST)] for scene in scenes])
        self._codes = {name: np.full((len(scenes), MOST), -1) for name in ATTRIBUTES}
        for number, scene in enumerate(scenes):
            for k, thing in enumerate(scene.objects):
                for name, values in ATTRIBUTES.items():
                    self._codes[name][number, k] = values.index(getattr(thing, name))
        self._background = np.array([BACKGROUNDS.index(scene.background) for scene in scenes])
        self._kinds: dict[str, BoolArray] = {}

    def clause(self, clause: Mapping[str, Any]) -> BoolArray:
        """(n,): whether the clause is true of each scene."""
        if "background" in clause:
            return np.asarray(self._background == BACKGROUNDS.index(clause["background"]))
        if "some" in clause:
            return np.asarray(self._kind(clause["some"]).any(axis=1))
        if "count" in clause:
            return np.asarray(self._kind(clause["of"]).sum(axis=1) == clause["count"])
        one, other = (self._kind(kind) for kind in clause["pair"])
        both = one[:, :, None] & other[:, None, :] & ~np.eye(MOST, dtype=np.bool_)  # (n, 3, 3)
        if clause["where"] is not None:
            both &= self._stands(clause["where"])
        return np.asarray(both.any(axis=(1, 2)))

    def _kind(self, kind: Mapping[str, Any]) -> BoolArray:
        """(n, 3): which objects have these attributes."""
        key = json.dumps(kind, sort_keys=True)
        if key not in self._kinds:
            fits = self._there.copy()
            for name, value in kind.items():
                fits &= self._codes[name] == ATTRIBUTES[name].index(value)
            self._kinds[key] = fits
        return self._kinds[key]

    def _stands(self, where: str) -> BoolArray:
        """(n, 3, 3): whether the first object is left of, right of, above or below the second."""
        cells: IntArray = self._codes["column" if where in ("left", "right") else "row"]
        first, second = cells[:, :, None], cells[:, None, :]
        return np.asarray(first < second if where in ("left", "above") else first > second)
