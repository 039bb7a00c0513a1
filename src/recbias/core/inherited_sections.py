"""Plug-ins of one family document their common settings, errors and source once."""

from __future__ import annotations

import inspect
import re
import textwrap

from recbias.core.docstrings import EXAMPLE, split_sections

_TITLES = ("Args", "Raises", "Range", "Source")
_ENTRY = re.compile(r"^(\w+):.*(?:\n +.*)*", re.MULTILINE)


class InheritsSections:
    """A plug-in whose docstring is completed by that of its base class.

    A class gets the entries of its bases' sections on settings and errors that it does not
    describe itself, and the sections on range and source if it has none.
    """

    def __init_subclass__(cls) -> None:
        """Complete the docstring."""
        super().__init_subclass__()
        own = _split(cls)
        for base in cls.__bases__:
            for title, inherited in _split(base).items():
                text = own.get(title, "")
                if title in {"Args", "Raises"}:
                    entries = {
                        match[1]: match[0] for match in _ENTRY.finditer(f"{inherited}\n{text}")
                    }
                    text = "\n".join(entries.values())
                if title in _TITLES:
                    own[title] = text or inherited
        parts = [own[title] for title in ("", EXAMPLE) if title in own]
        parts += [
            f"{title}:\n{textwrap.indent(own[title], '    ')}" for title in _TITLES if title in own
        ]
        cls.__doc__ = "\n\n".join(parts)


def _split(cls: type) -> dict[str, str]:
    return split_sections(inspect.cleandoc(vars(cls).get("__doc__") or ""))
