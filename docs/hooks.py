"""What the documentation's site takes from elsewhere in the repository: the benchmarks and the examples, as pages.

MkDocs calls the two functions below (`hooks` in mkdocs.yml). In the sources a link leads to the file itself, so that it
works where the repository is read; here it leads to the page made of it.
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)#\s]+)\)")  # up and away from a page


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the pages."""
    for name, text in _pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links to the files into links to their pages; other files of the repository are named, not linked."""
    here = posixpath.dirname(page.file.src_uri)

    def to_page(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", here, link[2]))
        if target.startswith("docs/"):
            return link[0]
        found = _page_of(target)
        return link[1] if found is None else f"[{link[1]}]({posixpath.relpath(found, here or '.')})"

    return _LINK.sub(to_page, markdown)


def _page_of(path: str) -> str | None:
    if path == "bench/RESULTS.md":
        return "benchmarks.md"
    return path.replace(".py", ".md") if re.fullmatch(r"examples/\w+\.py", path) else None


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
