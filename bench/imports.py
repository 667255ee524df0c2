"""The import graph of a package, read from its source: chains, cycles and imports of other rooms' private modules.

Imports at module level count; imports inside functions count if you want them. A name that a package's `__init__`
offers lazily counts as an import of the module that defines it, because using the name loads that module. Imports for
type checkers count only in `private_imports`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Private:
    """Statements that import another room's private module or name, and the names they import."""

    statements: int
    names: int


class Imports:
    """The modules of a package and what they import of each other.

    folder             the package, as "src/halation"; a room is a public package directly inside it
    inside_functions   whether imports inside functions count in the graph
    """

    def __init__(self, folder: Path, *, inside_functions: bool = False) -> None:
        self.package = folder.name
        self._inside_functions = inside_functions
        self.trees: dict[str, ast.Module] = {}
        self._packages: set[str] = set()
        for path in sorted(folder.rglob("*.py")):
            parts = [self.package, *path.relative_to(folder).with_suffix("").parts]
            if parts[-1] == "__init__":
                parts.pop()
                self._packages.add(".".join(parts))
            self.trees[".".join(parts)] = ast.parse(path.read_text(encoding="utf-8"))

    @cached_property
    def graph(self) -> dict[str, set[str]]:
        """The modules that each module imports."""
        return {
            name: {
                target
                for node in _statements(tree, self._inside_functions)
                for module, imported in _imported(node)
                if (target := self._module_of(module, imported)) is not None and target != name
            }
            for name, tree in self.trees.items()
        }

    @cached_property
    def _offered(self) -> dict[str, dict[str, tuple[str, str]]]:
        """For each package, its public names: the (module, name) that its `__init__` imports them from."""
        offered: dict[str, dict[str, tuple[str, str]]] = {}
        for package in self._packages:
            nodes = [node for node in ast.walk(self.trees[package]) if isinstance(node, ast.ImportFrom)]
            offered[package] = {
                alias.asname or alias.name: (node.module or "", alias.name) for node in nodes for alias in node.names
            }
        return offered

    def _module_of(self, module: str, name: str | None) -> str | None:
        """The module of this package that `from module import name` loads; None for other packages."""
        if name is not None and f"{module}.{name}" in self.trees:
            return f"{module}.{name}"
        if module not in self.trees:
            return None
        source = self._offered.get(module, {}).get(name or "")
        return module if source is None or source == (module, name) else self._module_of(*source) or module

    def cycles(self) -> list[list[str]]:
        """Groups of modules that import each other, directly or not."""
        return [sorted(part) for part in self._components() if len(part) > 1]

    def longest_chain(self) -> list[str]:
        """The longest path in the graph: each module imports the next. A cycle counts with all its modules."""
        best: dict[str, list[str]] = {}
        for part in self._components():  # what a component imports comes before it
            below = [best[target] for name in part for target in self.graph[name] if target not in part]
            chain = [*sorted(part), *max(below, key=len, default=[])]
            best |= dict.fromkeys(part, chain)
        return max(best.values(), key=len, default=[])

    def _components(self) -> list[set[str]]:
        """Strongly connected components, those imported first (Tarjan, SIAM J. Comput. 1972)."""
        number: dict[str, int] = {}
        low: dict[str, int] = {}
        stack: list[str] = []
        components: list[set[str]] = []

        def visit(name: str) -> None:
            number[name] = low[name] = len(number)
            stack.append(name)
            for target in sorted(self.graph[name]):
                if target not in number:
                    visit(target)
                if target in stack:
                    low[name] = min(low[name], low[target])
            if low[name] == number[name]:
                cut = stack.index(name)
                components.append(set(stack[cut:]))
                del stack[cut:]

        for name in self.trees:
            if name not in number:
                visit(name)
        return components

    def rooms(self) -> list[str]:
        """The public packages directly inside the package."""
        inner = (name.removeprefix(f"{self.package}.") for name in self._packages - {self.package})
        return sorted(name for name in inner if "." not in name and not name.startswith("_"))

    def private_imports(self) -> Private:
        """Imports, anywhere in a file, of a private module or name of another room.

        Private modules of the package root are for every room and do not count.
        """
        statements = names = 0
        for name, tree in self.trees.items():
            for node in ast.walk(tree):
                reached = [1 for module, imported in _imported(node) if self._is_private(_room(name), module, imported)]
                statements += bool(reached)
                names += len(reached)
        return Private(statements, names)

    def _is_private(self, room: str, module: str, name: str | None) -> bool:
        parts = [*module.split("."), *([] if name is None else [name])]
        if parts[0] != self.package or len(parts) < 3 or parts[1] == room or parts[1].startswith("_"):
            return False
        return any(part.startswith("_") and not part.startswith("__") for part in parts[2:])

    def public_names(self) -> dict[str, int]:
        """How many names each room lists in `__all__`."""
        return {room: _length_of_all(self.trees[f"{self.package}.{room}"]) for room in self.rooms()}


def _room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def _imported(node: ast.AST) -> Iterator[tuple[str, str | None]]:
    """(module, name) of everything that an import statement imports; no name for `import module`."""
    if isinstance(node, ast.ImportFrom):
        yield from ((node.module or "", alias.name) for alias in node.names)
    elif isinstance(node, ast.Import):
        yield from ((alias.name, None) for alias in node.names)


def _statements(tree: ast.AST, inside_functions: bool) -> Iterator[ast.AST]:
    """The statements that run when a module is imported, and those inside functions if `inside_functions`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and not inside_functions:
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from _statements(node, inside_functions)


def _length_of_all(tree: ast.Module) -> int:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            return len(ast.literal_eval(node.value))
    return 0
