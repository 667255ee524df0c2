"""The package as a whole: light to import, layered one way, public names that exist whatever is imported first."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import halation

SRC = Path(halation.__file__).parent

# A room imports only from rooms above it. Private modules of the package root are the ground floor.
ROOMS = [
    "similarity", "semantics", "data", "metrics", "evaluation", "losses", "encoders", "training", "calibration",
    "index", "search", "report", "export", "serve", "cli",
]  # fmt: skip


def packages() -> list[str]:
    return ["halation", *sorted(f"halation.{m.name}" for m in pkgutil.iter_modules([str(SRC)]) if m.name[0] != "_")]


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("code", ["import halation", "from halation.cli import main"])
def test_importing_the_package_or_its_command_line_loads_nothing_heavy(code: str) -> None:
    heavy = {"torch", "numba", "scipy", "matplotlib", "transformers", "pandas"}
    loaded = json.loads(python(f"{code}; import sys, json; print(json.dumps([m.split('.')[0] for m in sys.modules]))"))
    assert heavy.isdisjoint(loaded)


def test_importing_the_package_loads_two_modules_of_its_own_and_a_few_of_the_standard_library() -> None:
    code = (
        "import sys, json\nbefore = set(sys.modules)\nimport halation\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    loaded = json.loads(python(code))
    assert [name for name in loaded if name.startswith("halation")] == ["halation", "halation._lazy"]
    # typing, collections, functools, re and what they stand on: 31 in Python 3.11, none of them a third party's
    assert {name.split(".")[0] for name in loaded} <= {"halation", *sys.stdlib_module_names}
    assert len(loaded) <= 40


def test_the_help_text_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom halation.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "assert not {'torch', 'numba', 'scipy', 'matplotlib'} & set(sys.modules)"
    )
    assert "evaluate" in python(code)


def test_measuring_a_numpy_matrix_does_not_load_torch() -> None:
    code = (
        "import sys, halation\n"
        "truth = halation.Truth.from_captions(['a dog', 'the cat', 'a red bus'], [0, 1, 2])\n"
        "halation.evaluate([[3., 1., 2.], [1., 3., 2.], [1., 2., 3.]], truth)\n"
        "assert 'torch' not in sys.modules"
    )
    python(code)


def test_rooms_import_only_from_rooms_above_them() -> None:
    for path in sorted(SRC.rglob("*.py")):
        room = path.relative_to(SRC).parts[0].removesuffix(".py")
        if room in ("__init__", "__main__"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
                if node.module == "halation":
                    names = [f"halation.{alias.name}" for alias in node.names]
                assert node.level == 0, f"{path}: relative import"
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                if not name.startswith("halation."):
                    continue
                other = name.split(".")[1]
                if other.startswith("_") or other == room:
                    continue
                assert not room.startswith("_"), f"{path}: the ground floor imports {other}"
                assert ROOMS.index(other) < ROOMS.index(room), f"{path}: {room} imports {other}, which is below it"


def test_no_room_imports_a_private_module_of_another() -> None:
    for path in sorted(SRC.rglob("*.py")):
        room = path.relative_to(SRC).parts[0]
        private = [name for name in private_imports(path) if name.split(".")[1] != room]
        assert not private, f"{path} imports {private[0]}, which is private"


@pytest.mark.parametrize("files", ["docs/*.py", "bench/*.py", "studies/*.py", "examples/*.py", "tests/*.py"])
def test_nothing_outside_the_package_imports_a_private_module_of_a_room(files: str) -> None:
    """Tests of a room, in its folder, may import what the room keeps private."""
    paths = sorted(SRC.parents[1].glob(files))
    assert paths
    for path in paths:
        assert not private_imports(path), f"{path} imports {private_imports(path)[0]}, which is private"


def private_imports(path: Path) -> list[str]:
    """The private names and modules of rooms, "halation.data._files", that a file imports."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names += [f"{node.module or ''}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    rooms = [name.split(".") for name in names if name.startswith("halation.") and not name.startswith("halation._")]
    return [".".join(parts) for parts in rooms if any(part.startswith("_") for part in parts[2:])]


def test_everything_most_people_need_is_reached_from_the_top() -> None:
    rooms = {path.parent.name for path in SRC.glob("[a-z]*/__init__.py")} - {"cli"}
    doors = {"load", "train", "evaluate", "compare", "open_dataset", "open_search", "caption_relevance"}
    doors |= {"Model", "Gaussian", "Truth", "Report", "Dataset", "Index", "HalationError", "InputError", "MissingExtra"}
    assert set(halation.__all__) == rooms | doors
    for name in halation.__all__:
        assert getattr(halation, name) is not None


@pytest.mark.parametrize("name", packages())
def test_all_is_importable_whatever_is_imported_first(name: str) -> None:
    module = importlib.import_module(name)
    public = list(module.__all__)
    assert set(public) <= set(dir(module))
    # in a fresh interpreter, after every submodule was imported directly, each name is still the public object
    code = (
        f"import importlib, pkgutil, json\nmodule = importlib.import_module({name!r})\n"
        "for sub in pkgutil.walk_packages(getattr(module, '__path__', []), module.__name__ + '.'):\n"
        "    if '__main__' not in sub.name: importlib.import_module(sub.name)\n"
        "print(json.dumps({n: type(getattr(module, n)).__name__ for n in module.__all__}))"
    )
    after = json.loads(python(code))
    assert after == {n: type(getattr(module, n)).__name__ for n in public}


def test_the_version_is_said_once() -> None:
    root = SRC.parents[1]
    said = f'version = "{halation.__version__}"'
    assert said in (root / "pyproject.toml").read_text(encoding="utf-8")
    assert f"version: {halation.__version__}" in (root / "CITATION.cff").read_text(encoding="utf-8")
