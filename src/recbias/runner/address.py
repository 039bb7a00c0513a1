"""The address of a stored result, which decides whether it is reused: its code and settings."""

from __future__ import annotations

import ast
import atexit
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import cache_from_source, resolve_name
from pathlib import Path
from typing import Any

from recbias.core.files import compute_digest, digest_file
from recbias.core.plugins import is_cuda
from recbias.runner.plan import Stage

_DATA_SUFFIXES = frozenset({".yaml", ".txt", ".csv", ".json"})
"""The files of a package besides its modules that can change a result."""


def digest_sources(work: object) -> str:
    """Return the digest of the source code that the work of a stage can run.

    It covers the modules of the work's class and of each dataclass instance among its fields; the
    modules of recbias and of their own top-level package (or folder, for ``./file.py``) that these
    import, at any depth; and the data files of the packages of these modules.
    """
    return _digest_modules(frozenset(_iterate_modules(work)))


def digest_own_sources(works: Iterable[object]) -> str:
    """Return the digest of the modules outside recbias that the work of stages can run."""
    names = {name for work in works for name in _iterate_modules(work)}
    own = (name for name in names if name.partition(".")[0] != _RECBIAS.top)
    modules = set[_Module]().union(*map(_list_modules, own))
    return compute_digest(
        sorted((each.place, _digest(each)[0]) for each in modules if each.tree != _RECBIAS)
    )


@cache
def digest_package() -> str:
    """Return the digest of all modules and data of recbias, as they are."""
    base = _RECBIAS.base / _RECBIAS.top
    paths = sorted(
        path for path in base.rglob("*") if path.is_file() and path.parent.name != "__pycache__"
    )
    return compute_digest(
        [(path.relative_to(base).as_posix(), digest_file(path)) for path in paths]
    )


@dataclass(frozen=True)
class _Tree:
    """The modules among which imports are followed: a package, or a folder if ``top`` is blank."""

    base: Path
    top: str = ""


@dataclass(frozen=True, eq=False)
class _Module:
    tree: _Tree
    name: str
    path: Path
    content: bytes | None = None  # As it was imported, if its loader kept that

    @cached_property
    def place(self) -> str:
        """The path in its tree."""
        return self.path.relative_to(self.tree.base).as_posix()

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def package(self) -> str:
        return self.name if self.is_package else self.name.rpartition(".")[0]


_RECBIAS = _Tree(Path(__file__).parents[2], "recbias")


def _iterate_modules(value: object) -> Iterator[str]:
    """Yield the modules of the dataclass instances that a value consists of."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        for element in value:
            yield from _iterate_modules(element)
    elif is_dataclass(value) and not isinstance(value, type):
        yield type(value).__module__
        for field in fields(value):
            yield from _iterate_modules(getattr(value, field.name))


@cache
def _digest_modules(names: frozenset[str]) -> str:
    """Return the digest of the source and data files that modules depend on."""
    modules = set[_Module]().union(*map(_list_modules, names))
    folders = {(each.path.parent, each.tree.base) for each in modules}
    data = (_digest_data(folder, base) for folder, base in folders if folder != base)
    return compute_digest(
        sorted({(each.place, _digest(each)[0]) for each in modules}.union(*data))
    )


@cache
def _list_modules(name: str) -> frozenset[_Module]:
    """Return a module and those that it imports, at any depth."""
    modules: set[_Module] = set()
    waiting = [*_locate(name)]
    while waiting:
        module = waiting.pop()
        if module not in modules:
            modules.add(module)
            waiting += _list_imports(module) - modules
    return frozenset(modules)


def _locate(name: str) -> tuple[_Module, ...]:
    """Return an imported module and its parent packages, nothing where it has no file."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        return ()
    path = Path(file)
    parts = name.split(".")
    stem = path.parent if path.name == "__init__.py" else path.with_suffix("")
    if stem.name != parts[-1]:  # imported by its path: ./file.py
        content = getattr(sys.modules[name].__loader__, "content", None)
        return (_Module(_Tree(path.parent), path.stem, path, content),)
    return _find(name, _Tree(stem.parents[len(parts) - 1], parts[0]))


@cache
def _list_imports(module: _Module) -> frozenset[_Module]:
    """Return the modules that a module imports from recbias and from its own tree."""
    trees = {_RECBIAS, module.tree}
    return frozenset(
        imported for tree in trees for name in _digest(module)[1] for imported in _find(name, tree)
    )


@cache
def _find(name: str, tree: _Tree) -> tuple[_Module, ...]:
    """Return the module of a name and its parent packages, as far as a tree has them."""
    # ``recbias`` itself imports the interface for users only when that is used.
    package, _, last = name.rpartition(".")
    if not last or name == "recbias" or (tree.top and name.partition(".")[0] != tree.top):
        return ()
    parents = _find(package, tree)
    if parents and parents[0].name == package and not parents[0].is_package:
        return parents
    stem = os.path.join(tree.base, *name.split("."))  # noqa: PTH118  faster, and there are many
    paths = (f"{stem}/__init__.py", f"{stem}.py")
    modules = [_Module(tree, name, Path(path)) for path in paths if os.path.isfile(path)]  # noqa: PTH113
    return (*modules[:1], *parents)


@cache
def _digest(module: _Module) -> tuple[str, Sequence[str]]:
    """Return the digest of the code of a module, and the names that it may import."""
    if module.tree != _RECBIAS:
        return _read_source(module)
    status = module.path.stat()
    version = [status.st_size, status.st_mtime_ns]
    known = _read_digests().get(module.name)
    if known is None or known[0] != version:
        known = _read_digests()[module.name] = [version, *_read_source(module)]
        atexit.register(_write_digests)  # once, however often it is registered
    return known[1], known[2]


def _read_source(module: _Module) -> tuple[str, list[str]]:
    """Return what ``_digest`` does, by the syntax tree; of what is no Python, by the bytes."""
    content = module.path.read_bytes() if module.content is None else module.content
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return hashlib.sha256(content).hexdigest(), []
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = node.module or ""
            if node.level and module.package:
                parent = resolve_name("." * node.level + parent, module.package)
            names.update([parent, *(f"{parent}.{alias.name}" for alias in node.names)])
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(node, block, None)
            if isinstance(statements, list):
                statements[:] = [each for each in statements if not _is_text(each)]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), sorted(names)


def _is_text(statement: ast.stmt) -> bool:
    """Return whether a statement is a string: a docstring, or one below a constant."""
    text = getattr(getattr(statement, "value", None), "value", None)
    return isinstance(statement, ast.Expr) and isinstance(text, str)


_DIGESTS = Path(cache_from_source(__file__)).with_name(f"modules-{sys.version_info.minor}.json")
"""What is known of modules of recbias by name, beside their bytecode: they change rarely."""


@cache
def _read_digests() -> dict[str, Any]:
    try:
        return dict(json.loads(_DIGESTS.read_bytes()))
    except (OSError, ValueError):
        return {}


def _write_digests() -> None:
    if not sys.dont_write_bytecode:
        with suppress(OSError):
            temporary = _DIGESTS.with_suffix(f".{os.getpid()}")
            temporary.write_text(json.dumps(_read_digests()), encoding="utf-8")
            temporary.replace(_DIGESTS)
    atexit.unregister(_write_digests)


@cache
def _digest_data(folder: Path, base: Path) -> frozenset[tuple[str, str]]:
    """Return the path and digest of the data files of a package and of its plain sub-folders."""
    digests: set[tuple[str, str]] = set()
    for entry in os.scandir(folder):
        path = Path(entry.path)
        if entry.is_file():
            if path.suffix in _DATA_SUFFIXES:
                digests.add((path.relative_to(base).as_posix(), digest_file(path)))
        elif entry.name != "__pycache__" and not any(path.glob("*.py")):
            digests |= _digest_data(path, base)
    return frozenset(digests)


_LIBRARIES = ("numpy", "scipy", "pandas")
"""Packages whose version is part of every address."""


def assign_address(
    stage: Stage,
    identity: Mapping[str, object],
    *,
    inputs: Iterable[Stage] | None = None,
    libraries: Iterable[str] = (),
) -> Stage:
    """Return a stage at the content address of its result.

    The modules of its work and of its plug-ins count, with all that they import.

    Args:
        stage: The stage.
        identity: The plug-ins with their settings, the seed, and so on.
        inputs: The inputs that count, if not all of the stage.
        libraries: Packages whose version matters besides ``_LIBRARIES``.
    """
    read = [source.digest for source in (stage.inputs if inputs is None else inputs)]
    facts = {"identity": identity, "inputs": read, "kind": stage.kind}
    return replace(stage, digest=_compute_address(stage.work, facts, libraries))


def address_values(
    plugin: object, identity: Mapping[str, object], libraries: Iterable[str]
) -> str:
    """Return the digest of what could change the values that a plug-in gives to a text."""
    return _compute_address(plugin, {"identity": identity}, libraries)


def _compute_address(work: object, facts: Mapping[str, object], libraries: Iterable[str]) -> str:
    versions = {name: _library_version(name) for name in (*_LIBRARIES, *libraries)}
    return compute_digest({**facts, "code": digest_sources(work), "libraries": versions})


@cache
def _library_version(name: str) -> str:
    """Return the installed version of a package, blank where it is absent."""
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return ""
    # its property parses the description and licences too
    found = _VERSION.search(package.read_text("METADATA") or "")
    return found[1] if found else package.version


_VERSION = re.compile(r"^Version: *(\S+)", re.MULTILINE)


_LIBRARIES_ENVIRONMENT = (
    *("numpy", "scipy", "pandas", "pyarrow", "pydantic", "scikit-learn"),
    *("implicit", "lenskit", "numba", "optuna", "torch", "transformers"),
)
"""Packages whose versions the manifest lists."""


@cache
def describe_environment() -> dict[str, Any]:
    """Return the versions, the commit and the platform of this run."""
    return {
        "recbias": _library_version("recbias"),
        "commit": _find_commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": {name: _library_version(name) for name in _LIBRARIES_ENVIRONMENT},
    }


def name_gpus(devices: Iterable[str]) -> dict[str, str]:
    """Return the product name of each device of CUDA, such as ``NVIDIA H200``."""
    cuda = sorted({device for device in devices if is_cuda(device)})
    if not cuda:
        return {}
    import torch

    return {device: torch.cuda.get_device_name(device) for device in cuda}


def _find_commit() -> str | None:
    """Return the git commit of the checkout that recbias runs from, None if it is installed."""
    checkout = Path(__file__).parents[3]
    if not (checkout / ".git").exists():
        return None
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=True, timeout=5)  # noqa: S603  fixed words
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip()
