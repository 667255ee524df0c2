"""The tables of the benchmarks, and the measures of the house."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest
import torch

import bench.index
import bench.losses
from bench import scorers
from bench.gallery import normals
from bench.house import ROOT, imported_by, length, positional, table, words
from bench.imports import Imports, Private
from bench.results import Row, merged
from halation import losses
from halation.encoders import SAF, SGR
from halation.index import Index

BENCHES = sorted(path.stem for path in (ROOT / "bench").glob("[a-z]*.py"))


@pytest.mark.parametrize("name", BENCHES)
def test_every_benchmark_imports_names_that_exist(name: str) -> None:
    tree = ast.parse((ROOT / "bench" / f"{name}.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):  # also inside functions
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("halation", "bench", "studies"):
            module = importlib.import_module(node.module or "")
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")


def test_a_part_replaces_its_own_table_and_leaves_the_others() -> None:
    first = merged("", [Row("index", "latency", "2 ms"), Row("index", "recall", "0.99"), Row("serving", "p50", "5 ms")])
    second = merged(first, [Row("index", "latency", "1 ms", "3 ms", 3.0, 2.0)])
    assert first.count("## ") == second.count("## ") == 2
    assert "| latency | 1 ms | 3 ms | 3.00 × | ≥ 2 × met |" in second
    assert "2 ms" not in second and "recall" not in second
    assert "| p50 | 5 ms |  |  |  |" in second
    assert second.index("## index") < second.index("## serving")  # where it was
    assert merged(second, []) == second


def test_the_loop_that_scorers_are_timed_against_gives_their_scores() -> None:
    images, captions = scorers.batch(3, regions=4, dim=16)
    for scorer in (SGR(16, 8, regions=4).eval(), SAF(16, 8, regions=4).eval()):
        torch.testing.assert_close(scorer(images, captions), scorers.loop(scorer, images, captions))


def test_the_forms_that_daa_is_timed_against_give_its_value() -> None:
    scores, relevance = (torch.rand(6, 6, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    ours = losses.DAA(0.01)(scores, relevance)
    for form in (bench.losses.direct_daa, bench.losses.banded_daa):
        torch.testing.assert_close(form(scores, relevance, 0.01), ours)


def test_an_index_is_held_against_exact_search() -> None:
    items, queries = normals(200, 8, 0), normals(20, 8, 1)
    assert bench.index._recall(Index([str(k) for k in range(200)], items), items, queries) == 1.0


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Two rooms: `high` imports from `low` by its public name, by a private module, and inside a function."""
    files = {
        "__init__.py": "",
        "_ground.py": "",
        "low/__init__.py": (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.low._a import a\n__all__ = ['a']"
        ),
        "low/_a.py": "from house.low._b import b\na = b",
        "low/_b.py": "from house._ground import x\nimport json\nb = 1",
        "high/__init__.py": "__all__ = ['one', 'two']",
        "high/_c.py": "from house.low import a",
        "high/_d.py": "from house.low._a import a, other\nfrom house._ground import x",
        "high/_e.py": "def late():\n    from house.high import _c\n    import house.low._b",
    }
    for name, text in files.items():
        path = tmp_path / "house" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "house"


def test_a_chain_goes_through_public_names_to_the_modules_behind_them(package: Path) -> None:
    chain = Imports(package).longest_chain()
    assert chain[1:] == ["house.low._a", "house.low._b", "house._ground"] and chain[0] in (
        "house.high._c",
        "house.high._d",
    )
    assert Imports(package, inside_functions=True).longest_chain()[:2] == ["house.high._e", "house.high._c"]


def test_private_imports_of_other_rooms_count_and_the_ground_floor_does_not(package: Path) -> None:
    imports = Imports(package)
    assert imports.rooms() == ["high", "low"] and imports.public_names() == {"high": 2, "low": 1}
    assert imports.private_imports() == Private(statements=2, names=3)
    assert imports.cycles() == []


def test_modules_that_import_each_other_are_a_cycle(package: Path) -> None:
    (package / "_ground.py").write_text("from house.low import _a", encoding="utf-8")
    imports = Imports(package)
    assert imports.cycles() == [["house._ground", "house.low._a", "house.low._b"]]
    assert len(imports.longest_chain()) == 4


def test_lines_and_arguments_of_a_function_are_counted_without_docstring_and_self() -> None:
    code = 'def f(self, a, /, b, *, c):\n    """One.\n\n    Two.\n    """\n    return a'
    function = ast.parse(code).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert (length(function), positional(function)) == (2, 2)


def test_words_are_those_of_the_prose(tmp_path: Path) -> None:
    (tmp_path / "docs" / "rooms").mkdir(parents=True)
    (tmp_path / "README.md").write_text("Two words\n```python\nimport nothing\n```\n| --- |\n", encoding="utf-8")
    (tmp_path / "docs" / "rooms" / "a.md").write_text("# Three more words\n", encoding="utf-8")
    assert words(tmp_path) == 5


def test_a_measure_that_one_tree_lacks_is_a_dash_there() -> None:
    shown = table({"before": {"lines": "9", "… old room": "1"}, "now": {"lines": "7", "… new room": "2"}})
    assert "| lines | 9 | 7 |" in shown and "| … old room | 1 | – |" in shown and "| … new room | – | 2 |" in shown


def test_what_a_fresh_interpreter_imports_is_seen() -> None:
    modules, seconds = imported_by(ROOT, "import halation")
    assert "halation" in modules and "torch" not in modules and 0 < seconds < 5
