"""Mistakes at the prompt (an unknown option, a missing argument, a wrong type), worded like halation's other errors."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from enum import Enum
from typing import Any, get_args, get_type_hints

import typer
from typer.core import TyperArgument, TyperGroup

from halation._errors import InputError

__all__ = ["UsageError", "explain_usage_error", "resolve_verb"]

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""The base class of Typer's usage errors. Typer has no public name for it."""

_KINDS: dict[Any, str] = {int: "a whole number", float: "a number"}


def resolve_verb(app: typer.Typer, words: Sequence[str]) -> tuple[Any, list[str]]:
    """The command that these words call, and its full name: (command, ["halation", "data", "check"])."""
    command: Any = typer.main.get_command(app)
    names = ["halation"]
    for word in words:
        if isinstance(command, TyperGroup) and word in command.commands:
            command = command.commands[word]
            names.append(word)
    return command, names


def explain_usage_error(error: Any, command: Any, names: Sequence[str], words: Sequence[str]) -> InputError:
    """A usage error as one of halation's own: what is wrong, the nearest option, and the help to read."""
    help_command = f"`{' '.join(names)} --help`"
    problem = _problem(error, command, names, words)
    return InputError(problem, remedy=f"{'See' if problem.endswith('?') else 'see'} {help_command}")


def _problem(error: Any, command: Any, names: Sequence[str], words: Sequence[str]) -> str:
    if hasattr(error, "possibilities"):
        return _unknown_option(error.option_name, command)
    if hasattr(error, "option_name"):
        return f"{error.option_name} needs a value"
    if isinstance(error, typer.BadParameter) and error.param is not None:
        is_missing = hasattr(error, "param_type")
        return _missing(error.param) if is_missing else _wrong_type(error, error.param, command, words)
    if type(error) is not UsageError:
        message = str(error.format_message()).rstrip(".")
        return f"{message[:1].lower()}{message[1:]}"
    return _unknown_command(command, names, words) if isinstance(command, TyperGroup) else _too_many(command)


def _unknown_option(option: str, command: Any) -> str:
    known = [name for parameter in command.params for name in parameter.opts if name.startswith("-")]
    return f"unknown option {option}{_suggestion(option, [*known, '--help'])}"


def _unknown_command(group: TyperGroup, names: Sequence[str], words: Sequence[str]) -> str:
    word = next((word for word in words if not word.startswith("-") and word not in names), None)
    if word is None:  # only options, as in `halation --`
        return f"a command is missing: {', '.join(group.commands)}"
    return f"unknown command {word!r}{_suggestion(word, list(group.commands))}"


def _suggestion(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _too_many(command: Any) -> str:
    taken = " ".join(_name(parameter) for parameter in command.params if isinstance(parameter, TyperArgument))
    return f"too many arguments: it takes {taken} (put several words in quotes)" if taken else "it takes no arguments"


def _missing(parameter: Any) -> str:
    """The name of what is missing and the first sentence of its help."""
    meaning = (parameter.help or "").partition(".  ")[0].rstrip(".")
    return f"{_name(parameter)} is missing" + (f": {meaning[:1].lower()}{meaning[1:]}" if meaning else "")


def _wrong_type(error: Any, parameter: Any, command: Any, words: Sequence[str]) -> str:
    wanted = get_type_hints(command.callback).get(parameter.name)
    wanted = next((kind for kind in get_args(wanted) if kind in _KINDS), wanted)  # int | None
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        kind = f"one of {', '.join(str(member.value) for member in wanted)}"
    elif wanted in _KINDS:
        kind = _KINDS[wanted]
    else:
        return f"{_name(parameter)}: {error.message}".rstrip(".")
    value = _typed_value(parameter, words)
    return f"{_name(parameter)} must be {kind}" if value is None else f"{_name(parameter)} is {value!r}; give {kind}"


def _typed_value(parameter: Any, words: Sequence[str]) -> str | None:
    """The value after an option, `--port x` or `--port=x`; None if it was typed as in `-kx`."""
    typed = None
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        if option in parameter.opts:
            typed = value if equals else following
    return typed


def _name(parameter: Any) -> str:
    if isinstance(parameter, TyperArgument):
        return str(parameter.metavar or parameter.name.upper())
    return str(parameter.opts[0])
