"""Names to plug-in classes, each module imported only when its name is asked for."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from recbias.core.digests import digest_file
from recbias.core.errors import (
    BrokenContract,
    MissingExtra,
    MissingFile,
    PluginError,
    UnknownName,
)
from recbias.core.input_files import has_file
from recbias.core.suggestions import normalize_name, suggest

CODE_FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    EOFError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    StopIteration,
    SyntaxError,
    SystemExit,
    TypeError,
    ValueError,
)
"""What the code of a plug-in may raise while it is imported, or a plug-in of it is made."""


@dataclass(frozen=True)
class Registry:
    """The plug-ins of one kind.

    Args:
        kind: What they are, singular: ``model``.
        table: The built-in names, each with ``module:Class``.
        group: The entry-point group of other packages: ``recbias.models``.
    """

    kind: str
    table: Mapping[str, str]
    group: str

    def names(self) -> list[str]:
        """Return the built-in names, then those of other packages as ``package/Name``."""
        return [*self.table, *sorted(self._outside())]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self.names())

    def canonical(self, name: str) -> str:
        """Return a name in its published spelling.

        Raises:
            UnknownName: Nothing is called so.
        """
        if is_file(name):
            return name
        spelling = {normalize_name(each): each for each in self.table}
        found = spelling.get(normalize_name(name))
        if found is None:
            found = {normalize_name(each): each for each in self._outside()}.get(
                normalize_name(name)
            )
        if found is None:
            message = f"no {self.kind} is called {name!r}"
            raise UnknownName(message, remedy=suggest(name, self.names()))
        return found

    def load(self, name: str, *, base: Path | None = None) -> type:
        """Return the class of a name; ``./file.py:Name`` is relative to ``base``.

        Raises:
            UnknownName: Nothing is called so.
            MissingExtra: Its module needs a package that is not installed.
            MissingFile: The file of ``./file.py:Name`` is not there.
            BrokenContract: The file has no such class, or cannot be imported.
        """
        if is_file(name):
            return _from_file(name, base or Path())
        found = self.canonical(name)
        target = self.table.get(found) or self._outside()[found]
        module, _, attribute = target.partition(":")
        try:
            loaded: type = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            raise _missing(found, error) from error
        except AttributeError as error:
            raise BrokenContract(f"{found}: {error}", remedy="mend its entry point") from error
        except CODE_FAULTS as error:
            raise _unimportable(found, error, "mend its package, or install it anew") from error
        return loaded

    def _outside(self) -> dict[str, str]:
        return {
            f"{point.dist.name if point.dist else '?'}/{point.name}": point.value
            for point in entry_points(group=self.group)
        }


_FILE_MODULE = "_recbias_file_"


def is_file(name: str) -> bool:
    """Return whether a name is ``./file.py:Name``."""
    return ".py:" in name


def source_digest(name: str, *, base: Path | None = None) -> str:
    """Return the digest of the file of ``./file.py:Name``, blank for other names."""
    if not is_file(name):
        return ""
    path = (base or Path()) / name.rpartition(":")[0]
    return digest_file(path)


def in_words(error: BaseException) -> str:
    """Return an error of a plug-in's code in words: its type, and what it says."""
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _unimportable(name: str, error: BaseException, remedy: str) -> BrokenContract:
    return BrokenContract(f"{name} cannot be imported: {in_words(error)}", remedy=remedy)


def _missing(name: str, error: ModuleNotFoundError) -> PluginError:
    missing = (error.name or "a package").partition(".")[0]
    if missing in sys.modules:
        return BrokenContract(f"{name} cannot be imported: {error}")
    message = f"{name} needs the package {missing!r}, which is not installed"
    return MissingExtra(message, remedy=f"pip install {missing}")


def _from_file(name: str, base: Path) -> type:
    file_name, _, attribute = name.rpartition(":")
    path = (base / file_name).absolute()
    if not has_file(path):
        raise MissingFile(f"no file {file_name!r}", remedy=f"it is looked for at {path}")
    module = _imported(path, file_name)
    if not hasattr(module, attribute):
        classes = [each for each in vars(module) if isinstance(getattr(module, each), type)]
        message = f"{file_name} has no class {attribute!r}"
        raise BrokenContract(message, remedy=suggest(attribute, classes))
    found: type = getattr(module, attribute)
    return found


def list_imported_files() -> list[Path]:
    """Return the files of ``./file.py:Name`` plug-ins that this process has imported."""
    held = [module for name, module in sys.modules.items() if name.startswith(_FILE_MODULE)]
    return [Path(module.__file__) for module in held if module.__file__]


def import_files(paths: Iterable[Path]) -> None:
    """Import plug-in files of another process, so that what it sends can be read.

    Raises:
        BrokenContract: A file cannot be imported.
    """
    for path in paths:
        _imported(path, path.name)


def _imported(path: Path, file_name: str) -> ModuleType:
    module_name = f"{_FILE_MODULE}{path.stem}_{digest_file(path)[:12]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise BrokenContract(f"{file_name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    with ExitStack() as undo:
        sys.modules[module_name] = module
        undo.callback(sys.modules.pop, module_name)
        try:
            spec.loader.exec_module(module)
        except ModuleNotFoundError as error:
            raise _missing(file_name, error) from error
        except CODE_FAULTS as error:
            raise _unimportable(file_name, error, "mend the file") from error
        undo.pop_all()
    return module
