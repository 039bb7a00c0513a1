"""Prompts that ask a language model for items from the history of a user."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from recbias.core.errors import Contradiction, NothingLeft, OutOfRange
from recbias.core.printable import make_printable
from recbias.language.chat.requests import Message
from recbias.language.prompts.prompt_slots import SlottedText

MAX_TITLE_LENGTH = 200
"""The longest title in a prompt; a longer one is shown without its middle."""

HistoryItem: TypeAlias = tuple[str, int | None]
"""The title of an item without year, and its year."""


@dataclass(frozen=True)
class RenderedPrompt:
    """The messages for one query.

    Args:
        messages: The messages.
        n_shown: How many items of the history they contain.
        n_cut: How many items of the history were left out, the oldest.
    """

    messages: tuple[Message, ...]
    n_shown: int
    n_cut: int


@dataclass(frozen=True)
class HistoryFormat:
    """How a history is written, one item a line.

    Args:
        item: A line with the slots ``title`` and ``year``.
        undated_item: The same line for an item without year.
        order: Whether the oldest or the newest item comes first.
        max_items: The largest number of items: the newest are kept; None for all.
    """

    item: SlottedText
    undated_item: SlottedText
    order: Literal["oldest_first", "newest_first"] = "oldest_first"
    max_items: int | None = None

    def select(self, history: Sequence[HistoryItem]) -> list[HistoryItem]:
        """Return the items that are shown, in the order of the prompt.

        Args:
            history: The items, the oldest first.
        """
        start = 0 if self.max_items is None else max(0, len(history) - self.max_items)
        displayed = list(history[start:])
        return displayed if self.order == "oldest_first" else displayed[::-1]

    def write(self, items: Sequence[HistoryItem]) -> str:
        """Return the lines of items; control characters in a title are escaped."""
        return "\n".join(
            self.undated_item.fill({"title": _write_title(title)})
            if year is None
            else self.item.fill({"title": _write_title(title), "year": str(year)})
            for title, year in items
        )


@dataclass(frozen=True)
class RecommendationPrompt:
    """A prompt with slots: history, candidates, number of items, year limit and mitigation.

    A line with ``{year_limit}`` or ``{mitigation}`` is left out if there is none. If there is a
    mitigation and no slot for it, it is added as one more bullet after the last line that starts
    with ``- ``, or at the end if there is no such line.

    Args:
        name: The packaged name or the file.
        about: What it asks for, in one sentence.
        source: Where it comes from.
        lines: The lines of the template.
        history: How the history is written.
        mitigations: The sentences of the file's own mitigations, by name.
    """

    name: str
    about: str
    source: str
    lines: tuple[SlottedText, ...]
    history: HistoryFormat
    mitigations: Mapping[str, str]

    @property
    def slots(self) -> frozenset[str]:
        """The slots that occur."""
        return frozenset(slot for line in self.lines for slot in line.slots)

    @property
    def content(self) -> str:
        """The template, and how the history is written."""
        lines = [line.show_slots() for line in self.lines]
        n_items = self.history.max_items or "all"
        order = self.history.order.replace("_", " ")
        item = self.history.item.show_slots()
        return "\n".join([*lines, "", f"{{history}}: {n_items} items, {order}: {item}"])

    def render(
        self,
        history: Sequence[HistoryItem],
        *,
        n_items: int,
        candidates: Sequence[HistoryItem] = (),
        year_limit: int | None = None,
        mitigation: str | None = None,
    ) -> RenderedPrompt:
        """Return the messages for one query.

        Args:
            history: The items that the user has watched, the oldest first.
            n_items: The number of items to ask for.
            candidates: The items to choose from, in the order in which they are shown; none if
                any item may be recommended.
            year_limit: The latest year to ask for; None for no limit.
            mitigation: A sentence that is added to the instructions; None for the plain prompt.

        Raises:
            NothingLeft: The history is empty.
            OutOfRange: The number of items is not positive.
            Contradiction: The template has no slot for the number of items or the year limit,
                and does not contain the number itself; or it has a slot for candidates and there
                are none, or the other way round.
        """
        if not history:
            remedy = "leave out queries without training interactions"
            raise NothingLeft("the history is empty", where=self.name, remedy=remedy)
        if n_items < 1:
            raise OutOfRange(f"{n_items} items cannot be asked for", where=self.name)
        values = {"n_items": str(n_items), "year_limit": str(year_limit or "")}
        for slot, value in values.items():
            self._require_stated(slot, value)
        self._require_candidates(are_given=bool(candidates))
        displayed = self.history.select(history)
        values |= {"history": self.history.write(displayed), "mitigation": mitigation or ""}
        values["candidates"] = self.history.write(candidates)
        content = "\n".join(line.fill(values) for line in self._select_lines(values))
        return RenderedPrompt(
            (Message("user", content),), len(displayed), len(history) - len(displayed)
        )

    def _require_stated(self, slot: str, value: str) -> None:
        """Raise Contradiction if the text has neither the slot nor the number."""
        text = "\n".join(text for line in self.lines for text in line.texts)
        if value and slot not in self.slots and not re.search(rf"(?<!\d){value}(?!\d)", text):
            message = f"the template has no slot {{{slot}}} and does not contain {value}"
            remedy = f"add {{{slot}}} to the template"
            raise Contradiction(message, where=self.name, remedy=remedy)

    def _require_candidates(self, *, are_given: bool) -> None:
        """Raise Contradiction unless candidates are given where the template shows them."""
        if are_given == ("candidates" in self.slots):
            return
        message, remedy = "the template has no slot {candidates}", "add {candidates} to it"
        if not are_given:
            message = "the template has the slot {candidates}, but this model shows none"
            remedy = "use a prompt without it, or the model LMRerank"
        raise Contradiction(message, where=self.name, remedy=remedy)

    def _select_lines(self, values: Mapping[str, str]) -> list[SlottedText]:
        optional = [slot for slot in ("year_limit", "mitigation") if not values[slot]]
        lines = list(self.lines)
        if values["mitigation"] and "mitigation" not in self.slots:
            bullets = [row for row, line in enumerate(lines) if line.texts[0].startswith("- ")]
            row = bullets[-1] + 1 if bullets else len(lines)
            lines.insert(row, SlottedText(("- ", ""), ("mitigation",)))
        return [line for line in lines if not set(line.slots) & set(optional)]


def _write_title(title: str) -> str:
    return make_printable(" ".join(title.split()), MAX_TITLE_LENGTH)
