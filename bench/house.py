"""Measures of this repository: the size of the code, its structure, and what it costs to import.

    python -m bench.house                        # a Markdown table of the working tree
    python -m bench.house --against v0.1.0       # the same beside another revision
    python -m bench.house --index demo/index     # count what opening this index imports, not a missing one
    python -m bench.house --no-tests             # do not let pytest collect the tests (the slow part)

Everything is read from the source or seen in a fresh interpreter, so it works on other revisions too.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bench.imports import Imports
from halation import _table

ROOT = Path(__file__).resolve().parents[1]
_SHORT = 80  # lines
_REPEATS = 5
_BARE = "import sys, json, time; before = set(sys.modules); started = time.perf_counter()"
_IMPORTED = "print(json.dumps([sorted(set(sys.modules) - before), time.perf_counter() - started]))"
_OPEN = """
import halation.search
try:
    halation.search.open_search({index!r})
except Exception as error:
    if {index!r} != "missing": raise
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.house", description=__doc__.splitlines()[0])
    parser.add_argument("--against", metavar="REV", help="a revision to show beside the working tree")
    parser.add_argument("--index", type=Path, help="an index to open; default: a folder that does not exist")
    parser.add_argument("--no-tests", dest="collect", action="store_false", help="leave out what pytest collects")
    options = parser.parse_args(arguments)
    index = "missing" if options.index is None else str(options.index.resolve())
    columns = {"now": measures(ROOT, index=index, collect=options.collect)}
    if options.against is not None:
        with checked_out(options.against) as tree:
            columns = {options.against: measures(tree, index=index, collect=options.collect), **columns}
    print(table(columns))


def table(columns: Mapping[str, Mapping[str, str]]) -> str:
    """Markdown: a row per measure, a column per tree; a measure that one tree lacks is a dash there."""
    names = dict.fromkeys(name for column in columns.values() for name in column)
    rows = [[name, *(column.get(name, "–") for column in columns.values())] for name in names]
    return _table.markdown(["", *columns], rows)


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """A temporary worktree of a revision."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), revision], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def measures(root: Path, *, index: str = "missing", collect: bool = True) -> dict[str, str]:
    """Every measure of a tree, by name."""
    package = root / "src" / "halation"
    return {
        **_sizes(package),
        **_structure(package),
        **_functions(package),
        **_imported(root, index),
        "words in README and docs, without code blocks": f"{words(root):,}",
        **_tests(root, collect),
        **_public(package),
    }


def _sizes(package: Path) -> dict[str, str]:
    lengths = [len(path.read_text(encoding="utf-8").splitlines()) for path in package.rglob("*.py")]
    return {
        "lines of src": f"{sum(lengths):,}",
        "files": str(len(lengths)),
        f"files under {_SHORT} lines": str(sum(length < _SHORT for length in lengths)),
        "longest file, lines": str(max(lengths)),
    }


def _structure(package: Path) -> dict[str, str]:
    imports = Imports(package)
    private = imports.private_imports()
    return {
        "rooms": str(len(imports.rooms())),
        "longest import chain, modules": str(len(imports.longest_chain())),
        "… with imports inside functions": str(len(Imports(package, inside_functions=True).longest_chain())),
        "import cycles": str(len(imports.cycles())),
        "private imports across rooms, statements (names)": f"{private.statements} ({private.names})",
    }


def _public(package: Path) -> dict[str, str]:
    names = Imports(package).public_names()
    return {
        "public names of all rooms": str(sum(names.values())),
        **{f"… {room}": str(count) for room, count in names.items()},
    }


def _functions(package: Path) -> dict[str, str]:
    functions = [
        (path, node)
        for path in sorted(package.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    lengths = [length(node) for _, node in functions]
    middle, most = np.percentile(lengths, (50, 90))
    # a verb's parameters are options of a command, which are never given by position
    worst = max((positional(node), node.name) for path, node in functions if path.parent.name != "cli")
    return {
        "functions": f"{len(lengths):,}",
        "function length without docstring, p50 / p90 / max": f"{middle:.0f} / {most:.0f} / {max(lengths)}",
        "most positional arguments outside cli": f"{worst[0]} (`{worst[1]}`)",
    }


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function from `def` to its end, without the docstring.

    >>> length(ast.parse('def f(x):\\n    "Twice x."\\n    return 2 * x').body[0])
    2
    """
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node) is not None:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def positional(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many arguments a caller may give by position; `self` and `cls` are not counted.

    >>> positional(ast.parse("def f(self, a, b, *, c): ...").body[0])
    2
    """
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def _imported(root: Path, index: str) -> dict[str, str]:
    plain, seconds = imported_by(root, "import halation")
    opened, open_seconds = imported_by(root, _OPEN.format(index=index), first="import torch")
    ours = [name for name in opened if name.split(".")[0] == "halation"]
    training = [name for name in ours if name.split(".")[1:2] in (["training"], ["losses"])]
    return {
        "`import halation`, modules beyond a bare interpreter": f"{len(plain)} in {1000 * seconds:.0f} ms",
        "`open_search`, modules beyond torch": f"{len(opened)} in {open_seconds:.1f} s",
        "… of halation (of its losses and training)": f"{len(ours)} ({len(training)})",
    }


def imported_by(root: Path, code: str, first: str = "") -> tuple[list[str], float]:
    """The modules that code imports in a fresh interpreter, and the fewest seconds of several repeats.

    first   code that runs before the counting
    """
    program = "\n".join([first, _BARE, code, _IMPORTED])
    results = [json.loads(_python(root, "-c", program).splitlines()[-1]) for _ in range(_REPEATS)]
    return results[0][0], min(seconds for _, seconds in results)


def _python(root: Path, *arguments: str, check: bool = True) -> str:
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=root, env=environment, check=check, stdout=subprocess.PIPE, text=True)
    return done.stdout


def words(root: Path) -> int:
    """The number of words in README and docs/**/*.md, without code blocks; a word has a letter or a digit."""
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    texts = [re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S) for page in pages]
    return sum(len(re.findall(r"\S*\w\S*", text)) for text in texts)


def _tests(root: Path, collect: bool) -> dict[str, str]:
    counted = sum(
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_")
        for path in (root / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )
    shown = {"test functions": f"{counted:,}"}
    if collect:
        printed = _python(root, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", check=False)
        shown["tests collected by pytest"] = f"{sum('::' in line for line in printed.splitlines()):,}"
    return shown


if __name__ == "__main__":
    main()
