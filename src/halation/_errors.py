"""Errors you can act on: each names the input, what is wrong with it and what to do."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

__all__ = ["HalationError", "InputError", "MissingExtra", "one_of"]


def _python_argument(name: str, value: object) -> str:
    """An argument as you would pass it in Python: `run=…`, `side='both'`."""
    return f"{name}={'…' if value is None else repr(value)}"


class HalationError(Exception):
    """Base of every error halation raises on purpose; the command line prints it and exits with code 2.

    problem   what is wrong. With a `path`, the sentence continues after it: "is not a folder", ": no such split"
    path      the file or folder the problem is in
    remedy    what to do about it
    argument  the argument to pass to the function you called, and the `value` it needs, if only one will do

    The parts are separate because each reader gets another form: Python shows `run=…`, the command line shows `--run`,
    and the server hides the folders of its disk.

    >>> print(InputError("is not there", path="runs/mine", remedy="say where the run is now", argument="run"))
    runs/mine is not there; say where the run is now (run=…)
    """

    def __init__(
        self,
        problem: str,
        *,
        path: str | os.PathLike[str] | None = None,
        remedy: str | None = None,
        argument: str | None = None,
        value: object = None,
    ) -> None:
        super().__init__(problem)
        self.problem, self.remedy, self.argument, self.value = problem, remedy, argument, value
        self.path: Path | None = None if path is None else Path(path)

    def __str__(self) -> str:
        return self.render()

    def render(
        self,
        show_path: Callable[[Path], str] = str,
        show_argument: Callable[[str, object], str | None] = _python_argument,
    ) -> str:
        """The message, with path and argument shown by your functions; an argument shown as None is left out.

        >>> error = InputError("holds no images", path="/srv/idx", remedy="embed them", argument="side", value="both")
        >>> error.render(lambda path: path.name, lambda name, value: f"--{name} {value}")
        'idx holds no images; embed them (--side both)'
        """
        message = self.problem
        if self.path is not None:
            message = f"{show_path(self.path)}{'' if message[:1] in (':', ',') else ' '}{message}"
        argument = None if self.argument is None else show_argument(self.argument, self.value)
        if self.remedy is None and argument is None:
            return message
        what_to_do = f"pass {argument}" if self.remedy is None else self.remedy
        shown = "" if self.remedy is None or argument is None else f" ({argument})"
        return f"{message}{' ' if message.endswith('?') else '; '}{what_to_do}{shown}"


class InputError(HalationError, ValueError):
    """The caller's data or arguments do not fit."""


class MissingExtra(HalationError, ImportError):  # type: ignore[misc]  # ImportError has a path of another type
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f'{what} needs the extra "{extra}"', remedy=f'pip install "halation[{extra}]"')
        self.args = (what, extra)  # unpickling in another process calls the class with these


def one_of(value: str, choices: Iterable[str], what: str, *, remedy: str | None = None) -> str:
    """Return `value` if it is one of `choices`; otherwise an error that suggests the nearest.

    The error lists all choices, or gives your `remedy` instead if there are too many to list.

    >>> one_of("cidre", ["cider", "bleu4"], "metric")
    Traceback (most recent call last):
    ...
    halation._errors.InputError: unknown metric 'cidre'; did you mean 'cider'? (known: cider, bleu4)
    """
    known = list(choices)
    if value in known:
        return value
    close = difflib.get_close_matches(str(value).lower(), [name.lower() for name in known], n=1, cutoff=0.4)
    hint = next((f"; did you mean {name!r}?" for name in known if close and name.lower() == close[0]), "")
    problem = f"unknown {what} {value!r}{hint}"
    if remedy is not None:
        raise InputError(problem, remedy=remedy)
    raise InputError(f"{problem}{'' if hint else ';'} (known: {', '.join(known)})")
