"""Errors a person can act on: each names the input, what is wrong with it and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["HalationError", "InputError", "MissingExtra", "one_of"]


class HalationError(Exception):
    """Base of every error halation raises on purpose; the command line prints it and exits with code 2."""


class InputError(HalationError, ValueError):
    """The caller's data or arguments do not fit."""


class MissingExtra(HalationError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f'{what} needs the extra "{extra}": pip install "halation[{extra}]"')


def one_of(value: str, choices: Iterable[str], what: str) -> str:
    """Return `value` if it is one of `choices`; otherwise an error that suggests the nearest.

    >>> one_of("cidre", ["cider", "bleu4"], "metric")
    Traceback (most recent call last):
    ...
    halation._errors.InputError: unknown metric 'cidre'; did you mean 'cider'? (known: cider, bleu4)
    """
    known = list(choices)
    if value in known:
        return value
    close = difflib.get_close_matches(str(value).lower(), [name.lower() for name in known], n=1, cutoff=0.4)
    hint = next((f"; did you mean {name!r}?" for name in known if close and name.lower() == close[0]), ";")
    raise InputError(f"unknown {what} {value!r}{hint} (known: {', '.join(known)})")
