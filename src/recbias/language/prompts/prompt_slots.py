"""Slots in the text of a prompt: ``{history}``; ``{{`` and ``}}`` are braces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from recbias.core.suggestions import suggest
from recbias.formats.yaml import MarkedValue

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


@dataclass(frozen=True)
class SlottedText:
    """One line of text with slots.

    Args:
        texts: The text before, between and after the slots: one more than there are slots.
        slots: The names of the slots in order.
    """

    texts: tuple[str, ...]
    slots: tuple[str, ...]

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the line with the value of each slot; braces in a value are text."""
        pairs = zip(self.slots, self.texts[1:], strict=True)
        return self.texts[0] + "".join(values[slot] + text for slot, text in pairs)

    def show_slots(self) -> str:
        """Return the line with the name of each slot in braces."""
        return self.fill({slot: f"{{{slot}}}" for slot in self.slots})


def parse_slots(
    text: str, marked: MarkedValue, names: Mapping[str, str], line: str
) -> SlottedText:
    """Return a line of text with its slots.

    Args:
        text: The line.
        marked: The value of the file that contains it, for errors.
        names: The name of each valid slot, by its spellings.
        line: The line in errors: ``line 3 of the template``.

    Raises:
        MalformedLine: A slot is unknown, or a brace is not part of a slot.
    """
    texts, slots = [""], []
    end = 0
    for match in _TOKEN.finditer(text):
        texts[-1] += text[end : match.start()]
        end = match.end()
        if match[0] in {"{{", "}}"}:
            texts[-1] += match[0][0]
        elif match[0] in {"{", "}"}:
            message = f"{line} has a single {match[0]!r}: {text.strip()!r}"
            raise marked.fault(message, remedy="write {{ and }} for braces")
        else:
            slots.append(_name_slot(match[1], marked, names, line))
            texts.append("")
    texts[-1] += text[end:]
    return SlottedText(tuple(texts), tuple(slots))


def _name_slot(spelling: str, marked: MarkedValue, names: Mapping[str, str], line: str) -> str:
    if spelling not in names:
        message = f"{line} has the unknown slot {{{spelling}}}"
        raise marked.fault(message, remedy=_suggest_slot(spelling, names))
    return names[spelling]


def _suggest_slot(spelling: str, names: Iterable[str]) -> str:
    return f"{suggest(spelling, names)}; write {{{{ and }}}} for braces"
