"""Prompts that ask a language model for items, mitigations by prompt, and rubrics of judges."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from string import Formatter
from typing import Any, ClassVar, Self, TypeAlias

from recbias.core.errors import Contradiction, NothingLeft, OutOfRange, UnknownName
from recbias.core.text import make_printable, suggest
from recbias.formats.yaml import MarkedValue, read_marked
from recbias.language.endpoints import Message
from recbias.language.terms import find_by_name, find_packaged, find_packaged_or_read


@dataclass(frozen=True)
class _Template:
    """A prompt with slots, packaged or in a file.

    A subclass names the ``folder`` of the packaged ones, the setting that names one and
    what it is called, the slots that a template may have, those that it needs, of which the first
    occurs once, and the keys of a file beside ``about``, ``source`` and ``template``.

    Args:
        name: The packaged name or the file.
        about: What it asks for, in one sentence.
        source: Where it comes from.
        lines: The lines of the template, in which slots are written as for ``str.format``.
    """

    folder: ClassVar[str]
    named: ClassVar[tuple[str, ...]]
    slots_known: ClassVar[tuple[str, ...]]
    slots_needed: ClassVar[tuple[str, ...]]
    keys: ClassVar[tuple[str, ...]] = ()

    name: str
    about: str
    source: str
    lines: tuple[str, ...]

    @classmethod
    def load_packaged(cls) -> dict[str, Self]:
        """Return the packaged prompts by name."""
        paths = sorted(find_packaged(cls.folder).glob("*.yaml"))
        return {path.stem: cls._read(path, path.stem) for path in paths}

    @classmethod
    def find(cls, name: str) -> Self:
        """Return the prompt of a packaged name or of a file.

        Raises:
            UnknownName: The name is neither.
            BadYaml: The file is not YAML.
            MalformedLine: A key or value is invalid, or the template lacks a slot, has an unknown
                one or a single brace.
        """
        read = partial(cls._read, name=name)
        return find_packaged_or_read(cls.load_packaged(), name, read, *cls.named)

    @classmethod
    def _read(cls, path: Path, name: str) -> Self:
        tree = read_marked(path)
        keys = ("about", "source", "template", *cls.keys)
        top = tree.mapping("the file", keys, {"template": "template: |- and the text below it"})
        about, source = tree.texts("about", "source")
        lines = cls._parse_lines(top["template"])
        return cls(name, about, source, lines, **cls._parse_others(tree))

    @classmethod
    def _parse_lines(cls, marked: MarkedValue) -> tuple[str, ...]:
        lines = tuple(marked.text("the template").splitlines())
        for number, line in enumerate(lines, 1):
            _check_line(line, marked, cls.slots_known, f"line {number} of the template")
        counts = Counter(_list_slots(lines))
        once, *needed = cls.slots_needed
        for slot in cls.slots_needed:
            if not counts[slot] or counts[once] > 1:
                message = f"the template has the slot {{{slot}}} {counts[slot]} times"
                others = "".join(f", and {{{other}}}" for other in needed)
                raise marked.fault(message, remedy=f"write {{{once}}} once{others}")
        return lines

    @classmethod
    def _parse_others(cls, tree: MarkedValue) -> dict[str, Any]:  # noqa: ARG003  subclasses read it
        """Return the arguments of a subclass from the keys of a file that it adds."""
        return {}

    @property
    def slots(self) -> frozenset[str]:
        """The slots that occur."""
        return frozenset(_list_slots(self.lines))

    @property
    def content(self) -> str:
        """The template."""
        return "\n".join(map(_show_line, self.lines))

    def fill(self, values: Mapping[str, str]) -> Message:
        """Return the message with a value in each slot; braces in a value are text."""
        return Message("user", "\n".join(line.format_map(values) for line in self.lines))


def _list_slots(lines: Iterable[str]) -> list[str]:
    """Return the slots of lines, in order."""
    parts = (part for line in lines for part in Formatter().parse(line))
    return [name for _, name, _, _ in parts if name is not None]


def _show_line(line: str) -> str:
    """Return a line with the name of each slot in braces, and single braces."""
    return line.format_map({slot: f"{{{slot}}}" for slot in _list_slots([line])})


def _check_line(line: str, marked: MarkedValue, names: Iterable[str], place: str) -> None:
    """Refuse a line that is no format string, or has slots of other names."""
    remedy = "write {{ and }} for braces"
    try:
        parts = [*Formatter().parse(line)]
    except ValueError as error:
        raise marked.fault(f"{place} has a single brace: {line!r}", remedy=remedy) from error
    for _, slot, form, conversion in parts:
        if slot is not None and (slot not in names or form or conversion):
            remedy = f"{suggest(slot, names)}; {remedy}"
            raise marked.fault(f"{place} has the unknown slot {{{slot}}}", remedy=remedy)


_MAX_TITLE_LENGTH = 200  # the longest title in a prompt; a longer one is shown without its middle

HistoryItem: TypeAlias = tuple[str, int | None]
"""The title of an item without year, and its year."""


@dataclass(frozen=True)
class RenderedPrompt:
    """The messages for one query.

    Args:
        messages: The messages.
        n_cut: How many items of the history were left out, the oldest.
    """

    messages: tuple[Message, ...]
    n_cut: int


_DEFAULT_ITEM = "- {title} ({year})"
"""The line of an item in a file that does not say how to write it."""

_YEAR_WITH_BRACKETS = re.compile(r"\s*[(\[]\{year\}[)\]]|[\s,]*\{year\}")


@dataclass(frozen=True)
class _HistoryFormat:
    """How a history is written, one item a line.

    Args:
        item: A line with the slots ``title`` and ``year``.
        undated_item: The same line for an item without year.
        order: Whether the oldest or the newest item comes first.
        max_items: The largest number of items: the newest are kept; None for all.
    """

    item: str
    undated_item: str
    order: str = "oldest_first"
    max_items: int | None = None

    @classmethod
    def parse(cls, marked: MarkedValue) -> _HistoryFormat:
        """Return the format that a file describes."""
        settings = marked.mapping("the history", ("order", "max_items", "item"))
        item = settings.get("item", MarkedValue(_DEFAULT_ITEM, marked.where))
        dated = item.text("item")
        undated = _YEAR_WITH_BRACKETS.sub("", dated)
        for line in (dated, undated):
            _check_line(line, item, ("title", "year"), "the item")
        if "title" not in _list_slots([dated]) or "\n" in dated:
            remedy = f"write {_DEFAULT_ITEM!r}"
            raise item.fault("the item must be one line with {title}", remedy=remedy)
        (maximum,) = marked.texts("max_items")
        if maximum and not re.fullmatch(r"[1-9]\d{0,8}", maximum):
            message = f"max_items is a whole number from 1, or null, not {maximum!r}"
            raise settings["max_items"].fault(message)
        order = marked.choose("order", "oldest_first", "newest_first")
        return cls(dated, undated, order, int(maximum) if maximum else None)

    def select(self, history: Sequence[HistoryItem]) -> list[HistoryItem]:
        """Return the items that are shown, in the order of the prompt."""
        displayed = list(history if self.max_items is None else history[-self.max_items :])
        return displayed if self.order == "oldest_first" else displayed[::-1]

    def write(self, items: Sequence[HistoryItem]) -> str:
        """Return the lines of items; control characters in a title are escaped."""
        return "\n".join(
            (self.undated_item if year is None else self.item).format(
                title=make_printable(" ".join(title.split()), _MAX_TITLE_LENGTH), year=year
            )
            for title, year in items
        )


@dataclass(frozen=True)
class RecommendationPrompt(_Template):
    """A prompt with slots: history, candidates, number of items, year limit and mitigation.

    A line with ``{year_limit}`` or ``{mitigation}`` is left out if there is none. If there is a
    mitigation and no slot for it, it is added as one more bullet after the last line that starts
    with ``- ``, or at the end if there is no such line.

    Args:
        history: How the history is written.
        mitigations: The sentences of the file's own mitigations, by name.
    """

    folder = "prompts"
    named = ("prompt",)
    slots_known = ("history", "candidates", "n_items", "year_limit", "mitigation")
    slots_needed = ("history",)
    keys = ("history", "mitigations")

    history: _HistoryFormat
    mitigations: Mapping[str, str]

    @classmethod
    def _parse_others(cls, tree: MarkedValue) -> dict[str, Any]:
        top, none = tree.mapping("the file"), MarkedValue({}, tree.where)
        mitigations = top.get("mitigations", none).mapping("mitigations")
        return {
            "history": _HistoryFormat.parse(top.get("history", none)),
            "mitigations": {key: each.text("a mitigation") for key, each in mitigations.items()},
        }

    @property
    def content(self) -> str:
        """The template, and how the history is written."""
        n_items = self.history.max_items or "all"
        order = self.history.order.replace("_", " ")
        shown = f"{n_items} items, {order}: {_show_line(self.history.item)}"
        return f"{super().content}\n\n{{history}}: {shown}"

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
        if bool(candidates) != ("candidates" in self.slots):
            fault, remedy = "the template has no slot {candidates}", "add {candidates} to it"
            if not candidates:
                fault = "the template has the slot {candidates}, but this model shows none"
                remedy = "use a prompt without it, or the model LMRerank"
            raise Contradiction(fault, where=self.name, remedy=remedy)
        displayed = self.history.select(history)
        values |= {"history": self.history.write(displayed), "mitigation": mitigation or ""}
        values["candidates"] = self.history.write(candidates)
        message = replace(self, lines=self._select_lines(values)).fill(values)
        return RenderedPrompt((message,), len(history) - len(displayed))

    def _require_stated(self, slot: str, value: str) -> None:
        """Raise Contradiction if the text has neither the slot nor the number."""
        text = "\n".join(line.format_map(dict.fromkeys(self.slots, "")) for line in self.lines)
        if value and slot not in self.slots and not re.search(rf"(?<!\d){value}(?!\d)", text):
            message = f"the template has no slot {{{slot}}} and does not contain {value}"
            remedy = f"add {{{slot}}} to the template"
            raise Contradiction(message, where=self.name, remedy=remedy)

    def _select_lines(self, values: Mapping[str, str]) -> tuple[str, ...]:
        lines = list(self.lines)
        if values["mitigation"] and "mitigation" not in self.slots:
            bullets = [row for row, line in enumerate(lines) if line.startswith("- ")]
            lines.insert(bullets[-1] + 1 if bullets else len(lines), "- {mitigation}")
        unused = {slot for slot in ("year_limit", "mitigation") if not values[slot]}
        return tuple(line for line in lines if unused.isdisjoint(_list_slots([line])))


@dataclass(frozen=True)
class RequestPrompt(_Template):
    """A prompt with slots for the text of a query and the number of items."""

    folder = "prompts/requests"
    named = ("prompt", "prompt of requests")
    slots_known = slots_needed = ("request", "n_items")

    def render(self, request: str, n_items: int) -> RenderedPrompt:
        """Return the messages for one query; braces in its text are text."""
        message = self.fill({"request": request, "n_items": str(n_items)})
        return RenderedPrompt((message,), 0)


_MAX_SENTENCE_LENGTH = 2000  # the longest sentence of a mitigation in characters


@dataclass(frozen=True)
class _Mitigation:
    """A mitigation.

    Args:
        name: Its name.
        about: What it does, in one sentence.
        source: Where it comes from.
        sentence: What is added to a prompt; blank if it is a setting of an experiment.
        setting: The setting of an experiment; blank if it is added to a prompt.
    """

    name: str
    about: str
    source: str
    sentence: str = ""
    setting: str = ""

    @property
    def content(self) -> str:
        """What is added to a prompt, or set in an experiment."""
        return self.sentence or self.setting


def load_mitigations() -> dict[str, _Mitigation]:
    """Return the packaged mitigations by name."""
    names = tuple(_Mitigation.__dataclass_fields__)
    entries = read_marked(find_packaged("mitigations.yaml")).entries("the mitigations")
    mitigations = [_Mitigation(*entry.texts(*names)) for entry in entries]
    return {mitigation.name: mitigation for mitigation in mitigations}


def find_mitigation(text: str, prompt: RecommendationPrompt) -> _Mitigation:
    """Return the mitigation of a name, or a user's own sentence.

    Text of several words is a sentence. A name is looked up in the file of the prompt first, then
    among the packaged mitigations, so that the file of a paper brings the paper's own sentences.

    Args:
        text: The name or the sentence.
        prompt: The prompt that it is added to.

    Raises:
        UnknownName: No mitigation has the name, or it is not one that a prompt can hold.
        OutOfRange: The sentence is too long.
    """
    if len(text.split()) > 1:
        return _Mitigation("own", "A sentence of the user.", "", _make_sentence(text))
    own = {
        name: _Mitigation(name, "", prompt.source, sentence)
        for name, sentence in prompt.mitigations.items()
    }
    packaged = load_mitigations()
    if (mitigation := find_by_name(own, text)) is not None:
        return replace(mitigation, sentence=_make_sentence(mitigation.sentence))
    if (mitigation := find_by_name(packaged, text)) is None:
        names = [*own, *(name for name, each in packaged.items() if each.sentence)]
        remedy = f"{suggest(text, dict.fromkeys(names))}; or write a sentence"
        raise UnknownName(f"no mitigation is called {text!r}", where="mitigation", remedy=remedy)
    if not mitigation.sentence:
        message = f"{mitigation.name} is not a mitigation by prompt"
        raise UnknownName(message, where="mitigation", remedy=f"set {mitigation.setting}")
    return mitigation


def _make_sentence(text: str) -> str:
    """Return a sentence on one line."""
    if len(text) > _MAX_SENTENCE_LENGTH:
        message = f"the sentence is longer than {_MAX_SENTENCE_LENGTH:,} characters"
        raise OutOfRange(message, where="mitigation", remedy="shorten it")
    return make_printable(" ".join(text.split()), None)


@dataclass(frozen=True)
class Rubric(_Template):
    """A prompt with slots for a text and the kinds of label.

    Args:
        words: The words by which a reply may name each kind, in lower case; its name is one.
    """

    folder = "prompts/rubrics"
    named = ("rubric",)
    slots_known = ("text", "marker", "kinds", "answer")
    slots_needed = ("text",)
    keys = ("kinds",)

    words: Mapping[str, tuple[str, ...]]

    @classmethod
    def _parse_others(cls, tree: MarkedValue) -> dict[str, Any]:
        top = tree.mapping("the file", None, {"kinds": "kinds: {age: [age, old, young]}"})
        words: dict[str, tuple[str, ...]] = {}
        for kind, entries in top["kinds"].mapping("kinds").items():
            listed = (entry.text("a word") for entry in entries.entries(f"the words of {kind}"))
            spellings = (kind, kind.replace("_", " "), *listed)
            words[kind] = tuple(dict.fromkeys(word.strip().casefold() for word in spellings))
        return {"words": words}

    def render(self, text: str, kinds: Sequence[str]) -> Message:
        """Return the message about one text, which stands between two lines with its marker.

        The marker is made from the text and does not occur in it, so that no text can end itself;
        braces in the text are text.

        Args:
            text: The text.
            kinds: The kinds of label to ask for.
        """
        marker = _make_marker(text)
        values = {
            "text": f"{marker}\n{text}\n{marker}",
            "marker": marker,
            "kinds": ", ".join(kinds),
            "answer": "\n".join(f"{kind}: <probability>" for kind in kinds),
        }
        return self.fill(values)


def _make_marker(text: str) -> str:
    """Return a line that does not occur in a text; the same one for the same text.

    >>> _make_marker("A girl and her horse.")
    '=== ac5f3f2238af ==='
    """
    digests = (sha256(f"{n}{text}".encode("utf-8", "replace")).hexdigest() for n in count())
    return next(f"=== {digest[:12]} ===" for digest in digests if digest[:12] not in text)


def load_all_prompts() -> Mapping[str, _Template]:
    """Return all packaged prompts by name: of histories, of requests, and rubrics."""
    kinds = (RecommendationPrompt, RequestPrompt, Rubric)
    return {name: each for kind in kinds for name, each in kind.load_packaged().items()}
