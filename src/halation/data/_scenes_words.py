"""How people speak of a scene: a grammar with synonyms, from precise sentences to vague ones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from halation.data._scenes_world import Object, Scene, pick

__all__ = ["TEMPLATES", "Statement", "Template", "state"]

_WORDS: dict[str, dict[Any, tuple[str, ...]]] = {
    "shape": {
        "circle": ("circle", "disc"),
        "square": ("square", "box"),
        "triangle": ("triangle",),
        "star": ("star",),
        "cross": ("cross", "plus"),
        "diamond": ("diamond", "lozenge"),
    },
    "colour": {
        "red": ("red", "crimson", "scarlet"),
        "green": ("green", "emerald"),
        "blue": ("blue", "azure"),
        "yellow": ("yellow", "golden"),
        "purple": ("purple", "violet"),
        "orange": ("orange", "tangerine"),
    },
    "size": {"small": ("small", "little", "tiny"), "large": ("large", "big", "huge")},
}
_PLURAL = {"box": "boxes", "cross": "crosses", "plus": "pluses"}
_NUMBER = {1: ("one", "a single"), 2: ("two", "a pair of"), 3: ("three", "a trio of")}
_EDGE = {
    ("column", 0): ("on the left", "at the left side"),
    ("column", 2): ("on the right", "at the right side"),
    ("row", 0): ("at the top", "in the upper part"),
    ("row", 2): ("at the bottom", "in the lower part"),
}
_MIDDLE = ("in the middle", "in the centre")
_VERTICAL, _SIDE = {0: ("top", "upper"), 2: ("bottom", "lower")}, {0: "left", 2: "right"}
_RELATION = {
    "left": ("left of", "to the left of"),
    "right": ("right of", "to the right of"),
    "above": ("above", "over"),
    "below": ("below", "under"),
}


class Statement(NamedTuple):
    """A caption and what it claims."""

    text: str
    predicate: list[dict[str, Any]]
    template: str
    held_out: bool


@dataclass(frozen=True)
class Template:
    """A pattern of a sentence.

    `{1 size colour shape place}` is the first object by these attributes: with `bare` without an article, `only` words
    behind "something", `cornered` "top left"; `{relation}` is how the first stands to the second; `{count}` how many
    shapes there are, `{count shape}` how many of one shape; `{background}` its colour. Templates that are held out
    never occur in a training split; their words do.
    """

    name: str
    level: str  # "precise", "middling" or "vague"
    pattern: str
    held_out: bool = False

    @cached_property
    def objects(self) -> int:
        """How many objects it speaks of."""
        return max((int(number) for number in re.findall(r"\{(\d)", self.pattern)), default=1)

    @cached_property
    def needs_corner(self) -> bool:
        return "corner" in self.pattern


TEMPLATES = (
    Template("two-in-full", "precise", "{1 size colour shape place} and {2 size colour shape place}"),
    Template("one-in-full", "precise", "{1 size colour shape place} on a {background} background"),
    Template("relation", "precise", "{1 colour shape} {relation} {2 colour shape}"),
    Template("corner", "precise", "there is {1 colour shape corner}"),
    Template("terse", "precise", "{1 bare size colour shape place}"),
    Template("object", "middling", "{1 colour shape}"),
    Template("picture-of", "middling", "a picture of {1 size shape}"),
    Template("two-objects", "middling", "{1 colour shape} and {2 shape}"),
    Template("shape-place", "middling", "there is {1 shape place}"),
    Template("count-shape", "middling", "{count shape}"),
    Template("shape-backdrop", "middling", "{1 shape} on a {background} background"),
    Template("colour", "vague", "something {1 only colour}"),
    Template("count", "vague", "{count}"),
    Template("background", "vague", "a picture with a {background} background"),
    Template("shape", "vague", "there is {1 shape}"),
    Template("size", "vague", "there is something {1 only size} in the picture"),
    Template("place", "vague", "something {1 only place}"),
    Template("in-full-turned", "precise", "on a {background} background there is {1 size colour shape place}", True),
    Template("relation-picture", "precise", "a picture of {1 size shape} {relation} {2 colour shape}", True),
    Template("terse-corner", "precise", "{1 bare cornered size colour shape}", True),
    Template("colour-place", "middling", "something {1 only colour place}", True),
    Template("object-turned", "middling", "there is {1 size colour shape}", True),
    Template("count-backdrop", "middling", "{count} on a {background} background", True),
    Template("terse-object", "middling", "{1 bare colour shape}", True),
    Template("colour-picture", "vague", "there is a picture with something {1 only colour} in the picture", True),
    Template("size-alone", "vague", "something {1 only size}", True),
    Template("count-picture", "vague", "there is a picture and {count} in the picture", True),
    Template(
        "background-long", "vague", "there is something on the background and the background is {background}", True
    ),
)
"""Every template, the trained first."""


def state(template: Template, scene: Scene, generator: np.random.Generator) -> Statement | None:
    """A true statement of this form about the scene, in words chosen at random; None where the form does not fit."""
    things = [scene.objects[k] for k in generator.permutation(len(scene.objects))]
    if template.needs_corner:
        things.sort(key=lambda thing: thing.row == 1 or thing.column == 1)  # those in a corner first
        if things[0].row == 1 or things[0].column == 1:
            return None
    if template.objects > len(things):
        return None
    speaker = _Speaker(scene, things, generator)
    text = re.sub(r"\{([^}]*)\}", lambda slot: speaker.say(slot[1].split()), template.pattern)
    return Statement(text, speaker.predicate(template.objects), template.name, template.held_out)


class _Speaker:
    """Says the slots of one sentence and remembers what was claimed."""

    def __init__(self, scene: Scene, things: list[Object], generator: np.random.Generator) -> None:
        self._scene, self._things, self._generator = scene, things, generator
        self._kinds: dict[int, dict[str, Any]] = {}
        self._where: str | None = None
        self._clauses: list[dict[str, Any]] = []

    def say(self, slot: list[str]) -> str:
        head = slot[0]
        if head.isdigit():
            return self._object(int(head), slot[1:])
        if head == "count":
            return self._count(slot[1:])
        if head == "relation":
            return self._relation()
        self._clauses.append({"background": self._scene.background})
        return self._scene.background

    def predicate(self, objects: int) -> list[dict[str, Any]]:
        kinds = [self._kinds[number] for number in sorted(self._kinds)]
        if objects == 2:
            return [{"pair": kinds, "where": self._where}, *self._clauses]
        return [*({"some": kind} for kind in kinds), *self._clauses]

    def _object(self, number: int, slot: list[str]) -> str:
        thing = self._things[number - 1]
        kind = self._kinds.setdefault(number, {})
        words = []
        for attribute in slot:
            if attribute in _WORDS:
                value = getattr(thing, attribute)
                kind[attribute] = value
                words.append(pick(_WORDS[attribute][value], self._generator))
            elif attribute == "cornered":
                words.append(self._corner(thing, kind))
        if "bare" not in slot and "only" not in slot:
            words.insert(0, "an" if words[0][0] in "aeiou" else "a")
        if "place" in slot:
            words.append(self._place(thing, kind))
        if "corner" in slot:
            words.append(f"in the {self._corner(thing, kind)} corner")
        return " ".join(words)

    def _corner(self, thing: Object, kind: dict[str, Any]) -> str:
        kind.update(row=thing.row, column=thing.column)
        return f"{pick(_VERTICAL[thing.row], self._generator)} {_SIDE[thing.column]}"

    def _place(self, thing: Object, kind: dict[str, Any]) -> str:
        edges = [(name, getattr(thing, name)) for name in ("row", "column") if getattr(thing, name) != 1]
        if not edges:
            kind.update(row=1, column=1)
            return str(pick(_MIDDLE, self._generator))
        edge = pick(edges, self._generator)
        kind[edge[0]] = edge[1]
        return str(pick(_EDGE[edge], self._generator))

    def _count(self, slot: list[str]) -> str:
        if not slot:
            number, kind, noun = len(self._scene.objects), {}, pick(("shape", "thing"), self._generator)
        else:
            shapes = [thing.shape for thing in self._things]
            shape = max(shapes, key=shapes.count)  # people count what there is several of
            number, kind = shapes.count(shape), {"shape": shape}
            noun = pick(_WORDS["shape"][shape], self._generator)
        self._clauses.append({"count": number, "of": kind})
        return f"{pick(_NUMBER[number], self._generator)} {noun if number == 1 else _PLURAL.get(noun, noun + 's')}"

    def _relation(self) -> str:
        a, b = self._things[:2]
        true = [
            name
            for name, holds in (
                ("left", a.column < b.column),
                ("right", a.column > b.column),
                ("above", a.row < b.row),
                ("below", a.row > b.row),
            )
            if holds
        ]
        self._where = pick(true, self._generator)  # never empty: objects stand in different cells
        return str(pick(_RELATION[self._where], self._generator))
