"""The documentation's pages that are made, not written: benchmarks, examples, and a reference page per room.

MkDocs calls the two functions below (`hooks` in mkdocs.yml). In the sources a link leads to the file itself, so that it
works where the repository is read; on the site it leads to the page made of it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

import halation

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)*[^)#\s:]+)\)")
_ROOM = re.compile(r"src/halation/(\w+)/?")
_WIDTH = 100  # of a signature before its arguments go on lines of their own


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the made pages."""
    for name, text in {**_pages(), **room_pages()}.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links to files of the repository into links to their pages; a file without a page is named, not linked."""
    folder = posixpath.dirname(page.file.src_uri)

    def to_page(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, link[2]))
        if target.startswith("docs/"):
            return link[0]
        made = _page_of(target)
        return link[1] if made is None else f"[{link[1]}]({posixpath.relpath(made, folder or '.')})"

    return _LINK.sub(to_page, markdown)


def _page_of(path: str) -> str | None:
    if path == "bench/RESULTS.md":
        return "benchmarks.md"
    if room := _ROOM.fullmatch(path):
        return f"rooms/{_page_name(room[1])}.md"
    return path.replace(".py", ".md") if re.fullmatch(r"examples/\w+\.py", path) else None


def _page_name(room: str) -> str:
    return "index_room" if room == "index" else room  # rooms/index.md is the list of rooms


def _pages() -> dict[str, str]:
    pages = {"benchmarks.md": (ROOT / "bench" / "RESULTS.md").read_text(encoding="utf-8")}
    lines = [
        "# Examples",
        "",
        "One complete, short script per use. Each runs offline in seconds, and each is tested.",
        "",
    ]
    for path in sorted((ROOT / "examples").glob("*.py")):
        source = path.read_text(encoding="utf-8")
        title = (ast.get_docstring(ast.parse(source)) or path.stem).split("\n")[0].rstrip(".")
        head = title.split(":")[0]
        pages[f"examples/{path.stem}.md"] = f"# {head}\n\n`examples/{path.name}`\n\n```python\n{source}```\n"
        lines.append(f"- [`{path.name}`]({path.stem}.md): {title}.")
    pages["examples/index.md"] = "\n".join(lines) + "\n"
    return pages


def room_pages() -> dict[str, str]:
    """A reference page for every room, made of its docstrings."""
    folders = sorted(path.parent.name for path in Path(halation.__file__).parent.glob("[a-z]*/__init__.py"))
    return {f"rooms/{_page_name(room)}.md": _room_page(room) for room in folders}


def _room_page(room: str) -> str:
    module = importlib.import_module(f"halation.{room}")
    names: list[str] = list(module.__all__)
    lines = [f"# {room}", "", *_prose(inspect.getdoc(module) or ""), "", "| name | |", "|---|---|"]
    things = {name: getattr(module, name) for name in names}
    constants = _constants(room)
    for name, thing in things.items():
        summary = constants.get(name) or _summary(thing)
        lines.append(f"| [`{name}`](#{name}) | {summary.replace('|', chr(92) + '|')} |")
    for name, thing in things.items():
        lines += ["", f"## {name} {{#{name}}}", "", *_details(name, thing, constants.get(name))]
    return "\n".join(lines) + "\n"


def _constants(room: str) -> dict[str, str]:
    """What the sources say of constants and type aliases: the string below their assignment."""
    said = {}
    for path in Path(halation.__file__).parent.joinpath(room).glob("*.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for statement, below in itertools.pairwise(body):
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            text = below.value if isinstance(below, ast.Expr) else None
            if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(text, ast.Constant):
                said |= {
                    target.id: inspect.cleandoc(text.value).replace("\n", " ")
                    for target in targets
                    if isinstance(target, ast.Name)
                }
    return said


def _summary(thing: Any) -> str:
    """The first sentence of a docstring."""
    first = (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[.:])\s+(?=[A-Z`])", first)[0].rstrip(":")


def _details(name: str, thing: Any, constant: str | None) -> list[str]:
    if constant is not None:
        return ["```python", f"{name} = {thing!r}"[:400], "```", "", constant]
    lines = ["```python", _signature(name, thing), "```", "", *_prose(inspect.getdoc(thing) or "")]
    for method, function in inspect.getmembers(thing, _is_method) if inspect.isclass(thing) else ():
        if not method.startswith("_") and method in vars(thing):
            function = function.fget if isinstance(function, property) else function
            text = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
            lines += ["", f"- `{method}`: {text}"]
    return lines


def _is_method(member: Any) -> bool:
    return inspect.isfunction(member) or inspect.ismethod(member) or isinstance(member, property)


def _signature(name: str, thing: Any) -> str:
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    plain = [re.sub(r"(?:halation|torch|numpy|collections\.abc|pathlib|typing)\.(?:\w+\.)*", "", str(part))
             for part in signature.parameters.values()]  # fmt: skip
    plain = [part.replace("'", "") for part in plain]
    line = f"{name}({', '.join(plain)})"
    return line if len(line) <= _WIDTH else f"{name}(\n" + "".join(f"    {part},\n" for part in plain) + ")"


def _prose(docstring: str) -> list[str]:
    """A docstring as Markdown: paragraphs and tables as they are, aligned lists and examples as blocks."""
    lines: list[str] = []
    for paragraph in docstring.split("\n\n"):
        rows = paragraph.split("\n")
        aligned = any(re.search(r"\S {2,}\S", row) for row in rows) or rows[0].startswith((">>>", "    "))
        if aligned and not rows[0].startswith("|"):
            language = "python" if rows[0].startswith(">>>") else "text"
            lines += [
                f"```{language}",
                inspect.cleandoc(paragraph) if rows[0].startswith(" ") else paragraph,
                "```",
                "",
            ]
        else:
            lines += [*rows, ""]
    return lines
