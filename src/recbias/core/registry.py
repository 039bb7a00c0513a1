"""Registries of plug-ins by name; a module is imported only when its plug-in is loaded."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import entry_points
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

from recbias.core.docstrings import read_docstring
from recbias.core.errors import (
    CODE_FAULTS,
    BrokenContract,
    MissingExtra,
    MissingFile,
    PluginError,
    RecbiasError,
    UnknownName,
    describe_exception,
)
from recbias.core.files import digest_file, has_file, read_input
from recbias.core.machine import raise_shortage
from recbias.core.packages import describe_missing
from recbias.core.text import find_nearest, normalize_name, suggest

_PACKAGE = Path(__file__).parents[1]
_STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))
_FILE_MODULE = "_recbias_file_"  # Prefix of the module names of plug-in files


@dataclass(frozen=True)
class Registry:
    """The plug-ins of one kind (``model``): a table of built-in ``module:Class`` by name.

    Other packages add to it by the entry-point group (``recbias.models``).
    """

    kind: str
    table: Mapping[str, str]
    group: str

    def names(self) -> list[str]:
        """Return the built-in names, then those of other packages as ``package/Name``."""
        return [*self.table, *sorted(self._list_entry_points())]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self.names())

    def find_name(self, cls: type) -> str | None:
        """Return the name under which a class is registered, None if it is not."""
        target = f"{cls.__module__}:{cls.__qualname__}"
        targets = {**self._list_entry_points(), **self.table}
        return next((name for name, listed in targets.items() if listed == target), None)

    def resolve_name(self, name: str) -> str:
        """Return the registered spelling of a name; ``./file.py:Name`` stays as it is."""
        if is_file(name):
            return name
        if spelling := self.find_spelling(name):
            return spelling
        remedy = suggest(name, self.names())
        if self.kind == "metric" and not find_nearest(name, self.names()):
            remedy = self.describe_mentions(name) or remedy
        raise UnknownName(f"no {self.kind} is called {name!r}", remedy=remedy)

    def describe_mentions(self, word: str) -> str:
        """Return the plug-ins whose documentation has a word: self_information for ``novelty``."""
        pattern = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE)
        found = [name for name in self.table if pattern.search(read_docstring(self.load(name)))]
        text = f"these {self.kind}s have the word in their description: {', '.join(found)}"
        return text if found else ""

    def find_spelling(self, name: str) -> str | None:
        """Return the registered spelling of a name, None if there is no such plug-in."""
        wanted = normalize_name(name)
        for list_names in (self.table.keys, self._list_entry_points):  # which takes a while
            for spelling in list_names():
                if normalize_name(spelling) == wanted:
                    return spelling
        return None

    def load(self, name: str, *, base: Path | None = None) -> type:
        """Return the class of a name; ``./file.py:Name`` is relative to ``base``.

        Raises:
            UnknownName: No plug-in is registered under the name.
            MissingExtra: Its module needs a package that is not installed.
            MissingFile: The file of ``./file.py:Name`` does not exist.
            BrokenContract: The file has no such class, or cannot be imported.
        """
        if is_file(name):
            return _load_from_file(name, base or Path())
        spelling = self.resolve_name(name)
        target = self.table.get(spelling) or self._list_entry_points()[spelling]
        module_name, _, attribute = target.partition(":")
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            raise _make_missing_error(spelling, error) from error
        except CODE_FAULTS as error:
            raise _make_import_error(spelling, error, "install its package again") from error
        if not hasattr(module, attribute):
            message = f"{spelling}: the module {module_name} has no class {attribute!r}"
            raise BrokenContract(message, remedy="correct its entry point")
        return cast("type", getattr(module, attribute))

    def _list_entry_points(self) -> dict[str, str]:
        return _read_entry_points(self.group, tuple(sys.path))


@lru_cache(maxsize=64)
def _read_entry_points(group: str, _folders: tuple[str, ...]) -> dict[str, str]:
    """Return the plug-ins of the packages that are installed in the folders of ``sys.path``."""
    return {
        f"{point.dist.name if point.dist else '?'}/{point.name}": point.value
        for point in entry_points(group=group)
    }


def is_file(name: str) -> bool:
    """Return whether a name has the form ``./file.py:Name``."""
    return ".py:" in name


def digest_source(name: str, *, base: Path | None = None) -> str:
    """Return the digest of the file of ``./file.py:Name``, blank for other names."""
    return digest_file((base or Path()) / name.rpartition(":")[0]) if is_file(name) else ""


def locate_code(code: Any) -> str:
    """Return the file and line of a class or function of another author: ``my_metric.py:12``."""
    try:
        path = inspect.getsourcefile(code)
        if not path or Path(path).is_relative_to(_PACKAGE):
            return ""
        return f"{Path(path).name}:{inspect.getsourcelines(code)[1]}"
    except (OSError, TypeError):
        return ""


def locate_failure(error: BaseException) -> str:
    """Return the file, line and text of the innermost call in the code of a plug-in's author.

    That is neither recbias nor an installed package; blank if no such code was running.
    """
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        is_installed = {"site-packages", "dist-packages"} & {*path.parts}
        is_ours = any(path.is_relative_to(folder) for folder in (_PACKAGE, _STANDARD_LIBRARY))
        if path.is_absolute() and not is_installed and not is_ours:
            return f"{path.name}:{frame.lineno}: {frame.line}".removesuffix(": ")
    return ""


def list_imported_files() -> list[tuple[Path, bytes]]:
    """Return the ``./file.py:Name`` files that this process has imported, as they were then."""
    loaders = [sys.modules[name].__loader__ for name in sys.modules if _FILE_MODULE in name]
    return [(Path(each.path), each.content) for each in loaders if isinstance(each, _Loader)]


def import_files(files: Iterable[tuple[Path, bytes]]) -> None:
    """Import the plug-in files of another process, so that its objects can be unpickled."""
    for path, content in files:
        _import_file(path, path.name, content)


def _make_import_error(name: str, error: BaseException, remedy: str) -> BrokenContract:
    if isinstance(error, RecbiasError):
        raise error
    raise_shortage(error)
    place = f" ({place})" if (place := locate_failure(error)) else ""
    message = f"{name} cannot be imported: {describe_exception(error)}{place}"
    return BrokenContract(message, remedy=remedy)


def _make_missing_error(
    name: str, error: ModuleNotFoundError, folder: Path | None = None
) -> PluginError:
    package = (error.name or "a package").partition(".")[0]
    if folder and ((folder / f"{package}.py").exists() or (folder / package).is_dir()):
        message = f"{name} imports {package!r}, which stands beside it, where Python does not look"
        remedy = f"add the folder to Python's path: PYTHONPATH={folder}; or write one file"
        return BrokenContract(message, remedy=remedy)
    if package in sys.modules:
        return BrokenContract(f"{name} cannot be imported: {error}")
    message, remedy = describe_missing([name], [package])
    return MissingExtra(message, remedy=remedy)


def _load_from_file(name: str, base: Path) -> type:
    file_name, _, attribute = name.rpartition(":")
    path = (base / file_name).absolute()
    if not has_file(path):
        raise MissingFile(f"no file {file_name!r}", remedy=f"recbias looked at {path}")
    module = _import_file(path, file_name, read_input(path))
    if not hasattr(module, attribute):
        classes = [key for key, value in vars(module).items() if isinstance(value, type)]
        message = f"{file_name} has no class {attribute!r}"
        raise BrokenContract(message, remedy=suggest(attribute, classes))
    return cast("type", getattr(module, attribute))


class _Loader(SourceFileLoader):  # compiles what was digested: the file may change meanwhile
    content = b""

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.content, self.path, "exec", dont_inherit=True)


def _import_file(path: Path, file_name: str, content: bytes) -> ModuleType:
    module_name = f"{_FILE_MODULE}{path.stem}_{hashlib.sha256(content).hexdigest()[:12]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    loader = _Loader(module_name, str(path))
    loader.content = content
    spec = ModuleSpec(module_name, loader, origin=str(path))
    spec.has_location = True
    module = importlib.util.module_from_spec(spec)
    with ExitStack() as undo:
        sys.modules[module_name] = module
        undo.callback(sys.modules.pop, module_name)
        try:
            loader.exec_module(module)
        except ModuleNotFoundError as error:
            raise _make_missing_error(file_name, error, path.parent) from error
        except CODE_FAULTS as error:
            raise _make_import_error(file_name, error, "correct the file") from error
        undo.pop_all()
    return module
