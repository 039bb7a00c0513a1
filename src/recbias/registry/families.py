"""Plug-ins that serve many names: ``recbole/BPR`` is ``recbole`` with ``model: BPR``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recbias.core.registry import Registry
from recbias.core.suggestions import normalize_name


@dataclass(frozen=True)
class FamilyRegistry(Registry):
    """A registry some of whose plug-ins take a setting from the part of a name after the slash.

    Args:
        families: The setting, by the name of the plug-in.

    >>> models = FamilyRegistry("model", {"lib": "a:B"}, "none", {"lib": "model"})
    >>> models.resolve_name("LIB/Pop"), models.read_member("LIB/Pop"), models.read_member("lib")
    ('lib/Pop', {'model': 'Pop'}, {})
    """

    families: Mapping[str, str] = field(default_factory=dict)

    def find_spelling(self, name: str) -> str | None:
        """Return the registered spelling of a name; the member stays as it is."""
        family, member = self._split_name(name)
        return f"{family}/{member}" if family else super().find_spelling(name)

    def load(self, name: str, *, base: Path | None = None) -> type:
        """Return the class of a name, which all members of a family share."""
        return super().load(self._split_name(name)[0] or name, base=base)

    def read_member(self, name: str) -> dict[str, str]:
        """Return the setting in the name of a member of a family; else none."""
        family, member = self._split_name(name)
        return {self.families[family]: member} if family else {}

    def _split_name(self, name: str) -> tuple[str, str]:
        """Return the family and the member that a name consists of, blank for other names."""
        prefix, _, member = name.partition("/")
        families = {normalize_name(family): family for family in self.families}
        family = families.get(normalize_name(prefix), "") if member else ""
        return family, member if family else ""
