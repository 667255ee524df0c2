"""A process that is killed before any single step to the disk, in turn."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable

import pytest


class Killed(BaseException):
    pass


def cut_short(context: pytest.MonkeyPatch, after: int) -> None:
    """Let `after` steps to the disk pass, and stop before the next."""
    calls = itertools.count()

    def stopping(original: Callable[..., object]) -> Callable[..., object]:
        def step(*arguments: object, **named: object) -> object:
            if next(calls) >= after:
                raise Killed
            return original(*arguments, **named)

        return step

    for name in ("fsync", "link", "replace", "rename", "truncate", "unlink", "mkdir"):
        context.setattr(os, name, stopping(getattr(os, name)))
