"""Names to plug-in classes, each module imported only when its name is asked for."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from recbias.core.digests import file_digest
from recbias.core.errors import BrokenContract, MissingExtra, MissingFile, UnknownName
from recbias.core.suggestions import did_you_mean, plain


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
        spelling = {plain(each): each for each in self.table}
        found = spelling.get(plain(name))
        if found is None:
            found = {plain(each): each for each in self._outside()}.get(plain(name))
        if found is None:
            message = f"no {self.kind} is called {name!r}"
            raise UnknownName(message, remedy=did_you_mean(name, self.names()))
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
            missing = (error.name or "a package").partition(".")[0]
            message = f"{found} needs the package {missing!r}, which is not installed"
            raise MissingExtra(message, remedy=f"pip install {missing}") from error
        return loaded

    def _outside(self) -> dict[str, str]:
        return {
            f"{point.dist.name if point.dist else '?'}/{point.name}": point.value
            for point in entry_points(group=self.group)
        }


def is_file(name: str) -> bool:
    """Return whether a name is ``./file.py:Name``."""
    return ".py:" in name


def source_digest(name: str, *, base: Path | None = None) -> str:
    """Return the digest of the file of ``./file.py:Name``, blank for other names."""
    if not is_file(name):
        return ""
    path = (base or Path()) / name.rpartition(":")[0]
    return file_digest(path)


def _from_file(name: str, base: Path) -> type:
    file_name, _, attribute = name.rpartition(":")
    path = (base / file_name).resolve()
    if not path.is_file():
        raise MissingFile(f"no file {file_name!r}", remedy=f"it is looked for at {path}")
    module_name = f"_recbias_file_{path.stem}_{file_digest(path)[:12]}"
    module = sys.modules.get(module_name)
    if module is None:
        spec = importlib.util.spec_from_file_location(module_name, path)
        if spec is None or spec.loader is None:
            raise BrokenContract(f"{file_name} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        spec.loader.exec_module(module)
    if not hasattr(module, attribute):
        classes = [each for each in vars(module) if isinstance(getattr(module, each), type)]
        message = f"{file_name} has no class {attribute!r}"
        raise BrokenContract(message, remedy=did_you_mean(attribute, classes))
    found: type = getattr(module, attribute)
    return found
