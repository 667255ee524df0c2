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
_LINK = re.compile(r"\]\((?:\.\./)+(bench/RESULTS\.md|examples/\w+\.py)\)")


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the pages."""
    for name, text in _pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links to the files into links to their pages."""
    here = posixpath.dirname(page.file.src_uri)

    def to_page(link: re.Match[str]) -> str:
        target = "benchmarks.md" if link[1].startswith("bench") else link[1].replace(".py", ".md")
        return f"]({posixpath.relpath(target, here or '.')})"

    return _LINK.sub(to_page, markdown)


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
