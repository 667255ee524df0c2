"""The command line: its verbs, and errors in one line. A verb imports what it needs when it runs, so help is fast."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperGroup

import halation
from halation._errors import HalationError
from halation.cli import _calibrate, _data, _export, _look, _measure, _search, _serve, _train
from halation.cli._console import fail

__all__ = ["run"]

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
for _file in (_measure, _train, _data, _calibrate, _export, _search, _serve, _look):
    _file.add_verbs(app)


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; an error you can act on is printed in one line."""
    try:
        app(args=None if arguments is None else list(arguments), prog_name="halation")
    except HalationError as error:
        fail(error.render(show_argument=partial(_flag, _command(arguments))))
    except BrokenPipeError:  # `halation … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        fail(f"{error.filename or 'file'}: {error.strerror or error}")
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _command(arguments: Sequence[str] | None) -> Any:
    """The verb that these arguments call."""
    command: Any = typer.main.get_command(app)
    for word in sys.argv[1:] if arguments is None else arguments:
        if isinstance(command, TyperGroup) and word in command.commands:
            command = command.commands[word]
    return command


def _flag(command: Any, name: str, value: object) -> str | None:
    """An argument of the library as this verb takes it, `--run`; None where the verb does not take it."""
    parameter = next((one for one in command.params if one.name == name), None)
    if parameter is None:
        return None
    if isinstance(parameter, TyperArgument):
        return str(parameter.metavar or name.upper())
    if value is True and not parameter.is_flag:  # a switch of the library's function that is a verb's option here
        return f"{parameter.opts[0]} {parameter.metavar}"
    return str(parameter.opts[0]) if value is None or value is True else f"{parameter.opts[0]} {value}"


def _version(wanted: bool) -> None:
    if wanted:
        print(f"halation {halation.__version__}")
        raise typer.Exit


_HELP = """
Image-text retrieval where many answers are right.

Measure rankings with every metric of the field.
Train models that turn images and captions into Gaussians.
Search pictures by words, with the probability that a hit matches.

New here? `halation demo` trains and compares two small models in about two minutes.
"""


@app.callback(help=_HELP)
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Show what the program does."""
