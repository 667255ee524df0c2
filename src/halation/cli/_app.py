"""The command line: verbs and one-line errors.

A verb imports what it needs when it runs, so that help is fast.
"""

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
from halation.cli._usage import UsageError, explain_usage_error, resolve_verb

__all__ = ["run"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
for _file in (_measure, _train, _data, _calibrate, _export, _search, _serve, _look):
    _file.add_verbs(app)


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; an error you can act on is printed in one line."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    command, names = resolve_verb(app, words)
    try:
        if isinstance(command, TyperGroup) and len(words) < len(names):  # `halation` or `halation data` alone
            _call([*words, "--help"])
            raise SystemExit(2)
        raise SystemExit(_call(words))
    except UsageError as error:
        fail(explain_usage_error(error, command, names, words).render())
    except HalationError as error:
        fail(error.render(show_argument=partial(_flag, command)))
    except BrokenPipeError:  # `halation … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        fail(f"{error.filename or 'file'}: {error.strerror or error}")
    except (KeyboardInterrupt, typer.Abort):
        raise SystemExit(130) from None


def _call(words: Sequence[str]) -> int:
    """Run a verb; its exit code."""
    return int(app(args=list(words), prog_name="halation", standalone_mode=False) or 0)


def _flag(command: Any, name: str, value: object) -> str | None:
    """The option of this verb for an argument of the library, such as `--run`; None if it has none."""
    parameter = next((one for one in command.params if one.name == name), None)
    if parameter is None:
        return None
    if isinstance(parameter, TyperArgument):
        return str(parameter.metavar or name.upper())
    if value is True and not parameter.is_flag:  # a switch in the library, an option with a value here
        return f"{parameter.opts[0]} {parameter.metavar}"
    return str(parameter.opts[0]) if value is None or value is True else f"{parameter.opts[0]} {value}"


def _version(is_wanted: bool) -> None:
    if is_wanted:
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
    """Take the options of `halation` itself."""
