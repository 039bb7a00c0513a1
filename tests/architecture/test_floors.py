"""The house's floors: imports go down the stairs only, and there is no way round."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "recbias"
TESTS = Path(__file__).parents[1]

FLOORS: dict[str, set[str]] = {
    "core": set(),
    "numerics": {"core"},
    "statistics": {"core"},
    "config": {"core"},
    "files": {"core"},
    "data": {"core", "numerics", "files"},
    "language": {"core", "numerics"},
    "models": {"core", "numerics", "statistics", "language", "files"},
    "metrics": {"core", "numerics", "statistics"},
    "detectors": {"core", "numerics", "statistics", "language"},
    "debiasing": {"core", "numerics", "statistics", "language"},
    "plugins": {"core"},
    "runner": {"core", "config", "statistics"},
    "testing": {"core", "config", "statistics", "plugins"},
    "reports": {"core", "numerics"},
    "api": {"core", "config", "statistics", "data", "plugins", "runner", "reports"},
    "cli": {"core", "config", "data", "plugins", "runner", "reports", "api"},
}
"""Each package or module of the top level, and what it may import of the others."""

HEAVY = {
    *("torch", "transformers", "implicit", "lenskit", "sklearn", "optuna", "matplotlib", "ray"),
    "numba",
}
HEAVY_FLOORS = {"data", "language", "models", "metrics", "detectors", "debiasing"}
HEAVY_ROOMS = (
    (("runner", "ray.py"), "ray"),
    (("runner", "studies.py"), "optuna"),
    (("reports", "pictures"), "matplotlib"),
)
CORE_PACKAGES = {"numpy", "pandas", "scipy"}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room(path: Path) -> str:
    parts = path.relative_to(SOURCE).parts
    return parts[0].removesuffix(".py")


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_go_down_the_stairs_only(path: Path) -> None:
    here = room(path)
    if here in {"__init__", "__main__"}:
        return
    assert here in FLOORS, f"{path} is in no room of the house"
    for module, line in imported(ast.parse(path.read_text(encoding="utf-8"))):
        parts = module.split(".")
        if parts[0] == "recbias" and len(parts) > 1 and parts[1] != here:
            assert parts[1] in FLOORS[here], f"{path.name}:{line}: {here} imports {parts[1]}"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_heavy_packages_stay_on_their_floors(path: Path) -> None:
    for module, line in imported(ast.parse(path.read_text(encoding="utf-8"))):
        top = module.split(".")[0]
        if top in HEAVY:
            allowed = (path.relative_to(SOURCE).parts[:2], top) in HEAVY_ROOMS
            assert allowed or room(path) in HEAVY_FLOORS, f"{path.name}:{line}: imports {top}"


@pytest.mark.parametrize("path", sorted((SOURCE / "core").glob("*.py")), ids=name_of)
def test_core_needs_numpy_pandas_and_scipy_only(path: Path) -> None:
    import sys

    for module, line in imported(ast.parse(path.read_text(encoding="utf-8"))):
        top = module.split(".")[0]
        allowed = top in CORE_PACKAGES | {"recbias", "__future__"}
        assert allowed or top in sys.stdlib_module_names, f"{path.name}:{line}: imports {top}"


def test_there_is_no_import_cycle() -> None:
    graph: dict[str, set[str]] = {}
    names = {name_of(path): path for path in modules()}
    for name, path in names.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found = {module for module, _ in imported(tree)}
        graph[name] = {each for each in found if each in names and each != name}
    done: set[str] = set()

    def walk(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join([*above, name])
        if name not in done:
            for each in sorted(graph[name]):
                walk(each, (*above, name))
            done.add(name)

    for name in graph:
        walk(name, ())


def public_definitions(path: Path) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                for each in node.body:
                    if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
                        yield each


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_public_names_are_documented(path: Path) -> None:
    for node in public_definitions(path):
        assert ast.get_docstring(node), f"{path.name}:{node.lineno}: {node.name}"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_source_has_no_assert_print_or_bare_exception(path: Path) -> None:
    boundary = path.relative_to(SOURCE).as_posix() == "runner/boundary.py"
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        where = f"{path.name}:{getattr(node, 'lineno', 0)}"
        assert not isinstance(node, ast.Assert), f"{where}: assert"
        if isinstance(node, ast.ExceptHandler) and not boundary:
            broad = node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"}
            assert not broad, f"{where}: broad except"
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = ast.unparse(node.exc)
            assert not raised.startswith(("Exception(", "BaseException(")), f"{where}: {raised}"
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print":
            assert room(path) == "cli", f"{where}: print outside cli"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_every_source_file_has_its_test_file(path: Path) -> None:
    if path.name in {"__init__.py", "__main__.py"}:
        return
    relative = path.relative_to(SOURCE)
    twin = TESTS / relative.parent / f"test_{relative.name}"
    assert twin.is_file(), f"no {twin.relative_to(TESTS.parent)}"
