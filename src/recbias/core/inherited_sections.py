"""Plug-ins of one family document their common settings, errors and source once."""

from __future__ import annotations

import inspect
import re

_SECTION = re.compile(r"^(Args|Raises|Range|Source):\n((?: .*\n|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^    (\w+):.*(?:\n {5}.*)*", re.MULTILINE)


class InheritsSections:
    """A plug-in whose docstring is completed by that of its base class.

    A class gets the entries of its bases' sections on settings and errors that it does not
    describe itself, and the sections on range and source if it has none.
    """

    def __init_subclass__(cls) -> None:
        """Complete the docstring."""
        super().__init_subclass__()
        body, sections = _split_sections(cls)
        bases = [section for base in cls.__bases__ for section in _split_sections(base)[1].items()]
        for title, inherited in bases:
            own = sections.get(title, "")
            if title in {"Args", "Raises"}:
                entries = {match[1]: match[0] for match in _ENTRY.finditer(f"{inherited}\n{own}")}
                own = "\n".join(entries.values())
            sections[title] = own or inherited
        order = sorted(sections, key=["Args", "Raises", "Range", "Source"].index)
        cls.__doc__ = "\n\n".join([body, *(f"{title}:\n{sections[title]}" for title in order)])


def _split_sections(cls: type | None) -> tuple[str, dict[str, str]]:
    """Return the docstring of a class without these sections, and their texts by title."""
    doc = inspect.cleandoc(vars(cls).get("__doc__") or "") + "\n"
    sections = {title: text.rstrip() for title, text in _SECTION.findall(doc)}
    return _SECTION.sub("", doc).rstrip(), sections
