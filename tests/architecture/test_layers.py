"""The architecture as data: layers, heavy imports, and rules for every module."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "recbias"
TESTS = Path(__file__).parents[1]
DOCS = Path(__file__).parents[2] / "docs"

LAYERS: dict[str, set[str]] = {
    "core": set(),
    "formats": {"core"},
    "kernels": {"core"},
    "statistics": {"core"},
    "config": {"core", "formats"},
    "data": {"core", "formats", "kernels", "statistics"},
    "language": {"core", "formats", "kernels", "statistics"},
    "models": {"core", "formats", "kernels", "statistics", "language"},
    "metrics": {"core", "formats", "kernels", "statistics", "language"},
    "detectors": {"core", "formats", "kernels", "statistics", "language"},
    "rerankers": {"core", "kernels", "statistics"},
    "registry": {"core"},
    "runner": {"core", "config", "formats", "statistics"},
    "testing": {"core", "config", "statistics", "registry"},
    "reports": {"core", "formats", "kernels", "statistics", "registry", "runner"},
    "plugin": {"core", "config", "formats", "kernels", "statistics", "language", "models"},
    "progress": {"core", "runner", "live"},
    "live": {"core", "runner"},
    "runs": {"core", "config", "formats", "statistics", "runner", "reports"},
    "api": {
        *("core", "config", "statistics", "data", "registry", "runner", "reports"),
        *("runs", "progress", "live"),
    },
    "claims": {
        *("core", "config", "formats", "statistics", "registry"),
        *("runner", "reports", "runs", "progress", "api"),
    },
    "audits": {
        *("core", "config", "formats", "statistics", "language", "metrics"),
        *("runner", "reports", "runs"),
    },
    "cli": {
        *("core", "config", "formats", "statistics", "data", "language", "registry"),
        *("runner", "reports", "runs", "progress", "live", "api", "claims", "audits"),
    },
}
"""Each package or module of the top level, with those that it may import."""

HEAVY = {
    *("torch", "transformers", "implicit", "lenskit", "sklearn", "optuna", "ray"),
    *("numba", "openai", "anthropic"),
}
HEAVY_LAYERS = {"data", "language", "models", "metrics", "detectors"}
HEAVY_MODULES = {
    "recbias.kernels.devices": "torch",
    "recbias.kernels": "numba",
    "recbias.runner.address": "torch",
    "recbias.runner.workers": "ray",
    "recbias.runner.tuning": "optuna",
}
"""Modules and packages of other layers that may import one heavy package in functions."""

CORE_PACKAGES = {"numpy", "pandas", "scipy"}


@functools.cache
def parse_modules() -> dict[str, ast.Module]:
    """Return the syntax tree of every module of the source, by its dotted name."""
    return {
        name_module(path): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
    }


def name_module(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def list_imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every imported module, also of ``from package import module``, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno
            for alias in node.names:
                if f"{node.module}.{alias.name}" in parse_modules():
                    yield f"{node.module}.{alias.name}", node.lineno


def get_layer(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_packages_import_lower_layers_only() -> None:
    faults = []
    for module, tree in parse_modules().items():
        layer = get_layer(module)
        if layer in {"", "__main__"}:
            continue
        assert layer in LAYERS, f"{module} belongs to no layer"
        for imported, line in list_imports(tree):
            target = get_layer(imported) if imported.startswith("recbias.") else layer
            if target != layer and target not in LAYERS[layer]:
                faults.append(f"{module}:{line} imports {imported}")
    assert not faults, "\n".join(faults)


def test_modules_have_no_import_cycle() -> None:
    modules = parse_modules()
    assert_no_cycle(
        {
            module: {name for name, _ in list_imports(tree) if name in modules and name != module}
            for module, tree in modules.items()
        }
    )


def assert_no_cycle(graph: dict[str, set[str]]) -> None:
    finished: set[str] = set()

    def visit(node: str, path: tuple[str, ...]) -> None:
        assert node not in path, " -> ".join([*path, node])
        if node not in finished:
            for target in sorted(graph[node]):
                visit(target, (*path, node))
            finished.add(node)

    for node in graph:
        visit(node, ())


def test_heavy_packages_are_imported_by_the_layers_that_use_them() -> None:
    faults = []
    for module, tree in parse_modules().items():
        for imported, line in list_imports(tree):
            package = imported.split(".")[0]
            prefix = next((name for name in HEAVY_MODULES if module.startswith(name)), "")
            allowed = get_layer(module) in HEAVY_LAYERS or HEAVY_MODULES.get(prefix) == package
            if package in HEAVY and not allowed:
                faults.append(f"{module}:{line} imports {imported}")
    assert not faults, "\n".join(faults)


def test_core_imports_numpy_pandas_and_scipy_only() -> None:
    allowed = CORE_PACKAGES | {"recbias", "__future__"} | sys.stdlib_module_names
    for module, tree in parse_modules().items():
        if get_layer(module) == "core":
            for imported, line in list_imports(tree):
                assert imported.split(".")[0] in allowed, f"{module}:{line} imports {imported}"


def list_public_definitions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                for method in node.body:
                    if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                        yield method


def test_public_names_are_documented() -> None:
    for module, tree in parse_modules().items():
        for node in list_public_definitions(tree):
            assert ast.get_docstring(node), f"{module}:{node.lineno}: {node.name}"


def test_source_has_no_assert_print_or_broad_exception() -> None:
    for module, tree in parse_modules().items():
        # plug-ins, and the readers of models (tokenizers), raise plain exceptions; a thread hands
        # what it raises to its caller
        boundary = module in {"recbias.language.local_models", "recbias.language.client"}
        for node in ast.walk(tree):
            location = f"{module}:{getattr(node, 'lineno', 0)}"
            assert not isinstance(node, ast.Assert), f"{location}: assert"
            if isinstance(node, ast.ExceptHandler) and not boundary:
                handled = node.type and ast.unparse(node.type)
                assert handled not in {None, "Exception", "BaseException"}, (
                    f"{location}: {handled}"
                )
            if isinstance(node, ast.Raise) and node.exc is not None:
                error = ast.unparse(node.exc)
                assert not error.startswith(("Exception(", "BaseException(")), location
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "print":
                assert get_layer(module) in {"cli", "progress"}, f"{location}: print"


def test_every_public_class_and_function_is_used() -> None:
    """Its name occurs in a test, in another module, or again in its own."""
    words: dict[str, set[str]] = defaultdict(set)
    for path in [*SOURCE.rglob("*.py"), *TESTS.rglob("*.py"), *DOCS.glob("*.py")]:
        for word in set(re.findall(r"[A-Za-z_]\w*", path.read_text(encoding="utf-8"))):
            words[word].add(name_module(path) if SOURCE in path.parents else str(path))
    for module, tree in parse_modules().items():
        text = (SOURCE.parent / Path(*module.split("."))).with_suffix(".py")
        doctests = text.read_text(encoding="utf-8") if text.is_file() else ""
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                used = words[node.name] - {module} or doctests.count(node.name) > 1
                assert used, f"{module}: {node.name} is not used"
