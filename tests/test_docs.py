"""The documentation does what it says: every block of README and docs runs, every link leads somewhere."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

import doc_commands
from doc_blocks import PAGES, ROOT, Block, blocks, read
from doc_worlds import NAMES, PREPARED, copy_world, write_world
from halation.config import parse_recipe

WITH_CODE = [page for page in PAGES if blocks(page)]


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world(tmp_path_factory.mktemp("docs"))


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_of_the_page_runs(
    page: Path, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = page.relative_to(ROOT).as_posix()
    monkeypatch.chdir(copy_world(world, tmp_path / "world"))
    PREPARED.get(name, lambda _: None)(Path.cwd())
    names = {"__name__": "__page__", **NAMES.get(name, dict)()}
    for block in blocks(page):
        if block.language == "python":
            run_python(block, names)
        elif block.language == "console":
            doc_commands.check(block, lambda: "".join(capsys.readouterr()))
        elif block.language == "toml" and block.why_not is None:
            parse_recipe(block.code)
        elif block.language == "json":
            [json.loads(line) for line in block.code.splitlines() if line]


def run_python(block: Block, names: dict[str, object]) -> None:
    """Run it; one that is not to be run must compile, and what it imports must exist."""
    tree = ast.parse(block.code, block.place)
    if block.why_not is not None:
        tree.body = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    exec(compile(tree, block.place, "exec"), names)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("```\nx\n```", "language is ''"),
        ("```ruby\nx\n```", "language is 'ruby'"),
        ("<!-- run: maybe -->\n```python\nx\n```", "is no mark"),
        ("<!-- run: no -->\n```python\nx\n```", "is no mark"),
        ("words\n\n    x = 1\n", "indented block"),
        ("```python\nx\n", "no end"),
    ],
)
def test_a_block_that_hides_from_this_test_is_found(text: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        read(text, "page")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("halation fly", "there is no halation fly"),
        ("halation train scenes_pcme --data d --out o --wings 2", "No such option"),
        ("halation train scenes_pcme", "Missing option"),
        ("halation study love", "there is no halation study love"),
        ("make tea", "has no tea"),
        ("pip install halation[wings]", "no extra wings"),
        ("python examples/nothing.py", "does not exist"),
        ("cobol x", "not known"),
    ],
)
def test_a_command_that_does_not_exist_is_found(command: str, said: str) -> None:
    block = read(f"<!-- run: no, it is wrong -->\n```console\n$ {command}\n```", "page")[0]
    with pytest.raises(AssertionError, match=re.escape(said)):
        doc_commands.check(block, lambda: "")


def test_what_is_not_ours_says_why_it_is_not_run() -> None:
    block = read("```console\n$ curl localhost\n```", "page")[0]
    with pytest.raises(AssertionError, match="say why"):
        doc_commands.check(block, lambda: "")


def test_every_linked_file_and_heading_exists() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", text):
            other = page.parent / target if target else page
            assert other.exists(), f"{page.name} links to {target}"
            if anchor:
                assert anchor in headings(other), f"{page.name} links to {target}#{anchor}"


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub and MkDocs both make them of plain words."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}
