"""The documentation does what it says: every block of README and docs runs, every link leads somewhere."""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path

import pytest

from doc_blocks import PAGES, ROOT, Block, blocks, read
from doc_commands import Console
from doc_processes import request
from doc_worlds import NAMES, PREPARED, copy_world, write_world
from halation.training import parse_recipe

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
    monkeypatch.setitem(sys.modules, "umap", None)  # no extra of `make test`; where it is, it compiles for a minute
    PREPARED.get(name, lambda _: None)(Path.cwd())
    names = {"__name__": "__page__", **NAMES.get(name, dict)()}
    with Console(lambda: "".join(capsys.readouterr())) as console:
        for block in blocks(page):
            if block.language == "python" and serves(block):
                console.serve_python(block)
            elif block.language == "python":
                exec(compile(block.code, block.place, "exec"), names)
            elif block.language == "console":
                console.run(block)
            elif block.language == "toml":
                parse_recipe(block.code)
            elif block.language == "json":
                [json.loads(line) for line in block.code.splitlines() if line]


def serves(block: Block) -> bool:
    """Whether it would not end by itself."""
    called = (node.func for node in ast.walk(ast.parse(block.code)) if isinstance(node, ast.Call))
    return any(isinstance(name, ast.Name) and name.id == "serve" for name in called)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("```\nx\n```", "language is ''"),
        ("```ruby\nx\n```", "language is 'ruby'"),
        ("<!-- run: no, takes hours -->\n```python\nx\n```", "every block is run"),
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
        ("halation fly", "unknown command 'fly'"),
        ("halation train scenes_pcme --data d --out o --wings 2", "unknown option --wings"),
        ("halation train scenes_pcme", "to begin a run: halation train RECIPE"),
        ("halation study daa", "unknown command 'study'"),
        ("python -m studies love", "No such command 'love'"),
        ("torchrun --nnodes=2 -m halation fly", "waits for others"),
        ("make tea", "tea"),
        ("make serve", "there is no index at demo/index"),
        ("pip install halation[wings]", "does not provide the extra 'wings'"),
        ("python examples/nothing.py", "No such file"),
        ("curl localhost:8000", "no block above starts a server"),
        ("cobol x", "not known"),
    ],
)
def test_a_command_that_does_not_run_is_found(
    command: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    block = read(f"```console\n$ {command}\n```", "page")[0]
    with pytest.raises(AssertionError, match=re.escape(said)), Console(lambda: "".join(capsys.readouterr())) as console:
        console.run(block)


def test_where_there_is_no_curl_the_same_is_asked(tmp_path: Path) -> None:
    (tmp_path / "p.jpg").write_bytes(b"a picture")
    asked = request(["-s", "localhost:8000/search", "-H", "content-type: application/json", "-d", '{"k": 1}'])
    assert (asked.method, str(asked.url), asked.content) == ("POST", "http://localhost:8000/search", b'{"k": 1}')
    assert asked.headers["content-type"] == "application/json"
    sent = request(["http://localhost/search/image", "-F", f"image=@{tmp_path / 'p.jpg'}", "-F", "want=captions"])
    body = sent.read()
    assert sent.headers["content-type"].startswith("multipart/form-data")
    assert b'name="image"' in body and b"a picture" in body and b'name="want"' in body and b"captions" in body


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
