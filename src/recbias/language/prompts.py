"""Prompts that ask a language model for items, mitigations by prompt, and rubrics of judges."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import count
from pathlib import Path
from string import Formatter
from typing import Literal, TypeAlias, TypeVar, cast

from recbias.core.errors import Contradiction, NothingLeft, OutOfRange, UnknownName
from recbias.core.files import has_file
from recbias.core.text import make_printable, normalize_name, suggest
from recbias.formats.yaml import MarkedValue, read_marked
from recbias.language.endpoints import Message
from recbias.language.terms import find_packaged

P = TypeVar("P")


@dataclass(frozen=True)
class _Template:
    """A prompt with slots.

    Args:
        name: The packaged name or the file.
        about: What it asks for, in one sentence.
        source: Where it comes from.
        lines: The lines of the template, in which slots are written as for ``str.format``.
    """

    name: str
    about: str
    source: str
    lines: tuple[str, ...]

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


def _parse_line(text: str, marked: MarkedValue, names: Iterable[str], place: str) -> str:
    """Return a line as a format string with known slots only."""
    line, remedy = "", "write {{ and }} for braces"
    try:
        parts = [*Formatter().parse(text)]
    except ValueError as error:
        raise marked.fault(f"{place} has a single brace: {text!r}", remedy=remedy) from error
    for literal, slot, form, conversion in parts:
        line += literal.replace("{", "{{").replace("}", "}}")
        if slot is None:
            continue
        if slot not in names or form or conversion:
            remedy = f"{suggest(slot, names)}; {remedy}"
            raise marked.fault(f"{place} has the unknown slot {{{slot}}}", remedy=remedy)
        line += f"{{{slot}}}"
    return line


def _parse_lines(
    marked: MarkedValue, names: Iterable[str], once: str, *needed: str
) -> tuple[str, ...]:
    """Return the lines of a template with the slot ``once``, and those that are ``needed``."""
    written = enumerate(marked.text("the template").splitlines(), 1)
    lines = tuple(
        _parse_line(line, marked, names, f"line {number} of the template")
        for number, line in written
    )
    counts = Counter(_list_slots(lines))
    for slot in (once, *needed):
        if not counts[slot] or counts[once] > 1:
            message = f"the template has the slot {{{slot}}} {counts[slot]} times"
            others = "".join(f", and {{{other}}}" for other in needed)
            raise marked.fault(message, remedy=f"write {{{once}}} once{others}")
    return lines


def _read_head(tree: MarkedValue, *others: str) -> tuple[str, str, MarkedValue]:
    """Return ``about``, ``source`` and the template of a file, which may have other keys."""
    top = tree.mapping("the file", ("about", "source", "template", *others))
    if "template" not in top:
        raise tree.fault("there is no template", remedy="write template: |- and the text below it")
    about, source = (top[key].text(key) if key in top else "" for key in ("about", "source"))
    return about, source, top["template"]


def _load_folder(folder: str, parse: Callable[[MarkedValue, str], P]) -> dict[str, P]:
    """Return what the YAML files of a packaged folder hold, by name."""
    paths = sorted(find_packaged(folder).glob("*.yaml"))
    return {path.stem: parse(read_marked(path), path.stem) for path in paths}


def _find(
    packaged: Mapping[str, P], name: str, parse: Callable[[MarkedValue, str], P], kind: str
) -> P:
    """Return what a name means: a packaged prompt, or else a file.

    Raises:
        UnknownName: It is neither.
    """
    for spelling, prompt in packaged.items():
        if normalize_name(spelling) == normalize_name(name):
            return prompt
    if has_file(Path(name)):
        return parse(read_marked(Path(name)), name)
    message = f"{name!r} is neither a packaged {kind} nor a file"
    raise UnknownName(message, where=kind.split(maxsplit=1)[0], remedy=suggest(name, packaged))


_MAX_TITLE_LENGTH = 200  # the longest title in a prompt; a longer one is shown without its middle

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
    order: Literal["oldest_first", "newest_first"] = "oldest_first"
    max_items: int | None = None

    def select(self, history: Sequence[HistoryItem]) -> list[HistoryItem]:
        """Return the items that are shown, in the order of the prompt."""
        start = 0 if self.max_items is None else max(0, len(history) - self.max_items)
        displayed = list(history[start:])
        return displayed if self.order == "oldest_first" else displayed[::-1]

    def write(self, items: Sequence[HistoryItem]) -> str:
        """Return the lines of items; control characters in a title are escaped."""
        return "\n".join(
            (self.undated_item if year is None else self.item).format(
                title=_write_title(title), year=year
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

    history: _HistoryFormat
    mitigations: Mapping[str, str]

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
        self._require_candidates(are_given=bool(candidates))
        displayed = self.history.select(history)
        values |= {"history": self.history.write(displayed), "mitigation": mitigation or ""}
        values["candidates"] = self.history.write(candidates)
        message = replace(self, lines=self._select_lines(values)).fill(values)
        return RenderedPrompt((message,), len(displayed), len(history) - len(displayed))

    def _require_stated(self, slot: str, value: str) -> None:
        """Raise Contradiction if the text has neither the slot nor the number."""
        text = "\n".join(line.format_map(dict.fromkeys(self.slots, "")) for line in self.lines)
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

    def _select_lines(self, values: Mapping[str, str]) -> tuple[str, ...]:
        lines = list(self.lines)
        if values["mitigation"] and "mitigation" not in self.slots:
            bullets = [row for row, line in enumerate(lines) if line.startswith("- ")]
            lines.insert(bullets[-1] + 1 if bullets else len(lines), "- {mitigation}")
        unused = {slot for slot in ("year_limit", "mitigation") if not values[slot]}
        return tuple(line for line in lines if unused.isdisjoint(_list_slots([line])))


def _write_title(title: str) -> str:
    return make_printable(" ".join(title.split()), _MAX_TITLE_LENGTH)


_SLOTS = ("history", "candidates", "n_items", "year_limit", "mitigation")
"""The slots of a template."""

_ITEM_SLOTS = ("title", "year")  # the slots of the line of an item

_DEFAULT_ITEM = "- {title} ({year})"
"""The line of an item in a file that does not say how to write it."""

_YEAR_WITH_BRACKETS = re.compile(r"\s*[(\[]\{year\}[)\]]|[\s,]*\{year\}")


def load_packaged() -> dict[str, RecommendationPrompt]:
    """Return the packaged prompts by name."""
    return _load_folder("prompts", _parse_prompt)


def find_prompt(name: str) -> RecommendationPrompt:
    """Return the prompt of a file, or a packaged one.

    Raises:
        UnknownName: The name is neither.
        MalformedLine: The file is not a prompt; see ``read_prompt``.
    """
    return _find(load_packaged(), name, _parse_prompt, "prompt")


def read_prompt(path: Path) -> RecommendationPrompt:
    """Return the prompt of a file.

    The file has ``template`` and may have ``about``, ``source``, ``history`` (with ``order``,
    ``max_items`` and ``item``) and ``mitigations`` (name to sentence).

    Raises:
        MissingFile: The file does not exist.
        BadYaml: The file is not YAML.
        MalformedLine: The template lacks the slot of the history, or has an unknown slot or a
            single brace; or a key or value is invalid.
    """
    return _parse_prompt(read_marked(path), str(path))


def _parse_prompt(tree: MarkedValue, name: str) -> RecommendationPrompt:
    about, source, template = _read_head(tree, "history", "mitigations")
    top = tree.mapping("the file")
    written = top["mitigations"].mapping("mitigations") if "mitigations" in top else {}
    mitigations = {key: value.text("a mitigation") for key, value in written.items()}
    history = _parse_history(top.get("history", MarkedValue({}, tree.where)))
    lines = _parse_lines(template, _SLOTS, "history")
    return RecommendationPrompt(name, about, source, lines, history, mitigations)


def _parse_history(marked: MarkedValue) -> _HistoryFormat:
    settings = marked.mapping("the history", ("order", "max_items", "item"))
    item = settings.get("item", MarkedValue(_DEFAULT_ITEM, marked.where))
    text = item.text("item")
    dated = _parse_line(text, item, _ITEM_SLOTS, "the item")
    if "title" not in _list_slots([dated]) or "\n" in text:
        raise item.fault(
            "the item must be one line with {title}", remedy=f"write {_DEFAULT_ITEM!r}"
        )
    undated = _parse_line(_YEAR_WITH_BRACKETS.sub("", text), item, _ITEM_SLOTS, "the item")
    return _HistoryFormat(dated, undated, _parse_order(settings), _parse_maximum(settings))


def _parse_order(settings: Mapping[str, MarkedValue]) -> Literal["oldest_first", "newest_first"]:
    if "order" not in settings:
        return "oldest_first"
    order = settings["order"].text("order")
    if order not in {"oldest_first", "newest_first"}:
        message = f"the order is oldest_first or newest_first, not {order!r}"
        raise settings["order"].fault(message)
    return cast("Literal['oldest_first', 'newest_first']", order)


def _parse_maximum(settings: Mapping[str, MarkedValue]) -> int | None:
    marked = settings.get("max_items")
    if marked is None or not marked.value:
        return None
    text = marked.text("max_items")
    if not re.fullmatch(r"[1-9]\d{0,8}", text):
        raise marked.fault(f"max_items is a whole number from 1, or null, not {text!r}")
    return int(text)


_REQUEST_SLOTS = ("request", "n_items")  # the slots of a template


@dataclass(frozen=True)
class RequestPrompt(_Template):
    """A prompt with slots for the text of a query and the number of items."""

    def render(self, request: str, n_items: int) -> RenderedPrompt:
        """Return the messages for one query; braces in its text are text."""
        message = self.fill({"request": request, "n_items": str(n_items)})
        return RenderedPrompt((message,), 0, 0)


def load_request_prompts() -> dict[str, RequestPrompt]:
    """Return the packaged prompts by name."""
    return _load_folder("prompts/requests", _parse_request)


def find_request_prompt(name: str) -> RequestPrompt:
    """Return the prompt of a file, or a packaged one.

    Raises:
        UnknownName: The name is neither.
        MalformedLine: The template does not have each slot once.
    """
    return _find(load_request_prompts(), name, _parse_request, "prompt of requests")


def _parse_request(tree: MarkedValue, name: str) -> RequestPrompt:
    about, source, template = _read_head(tree)
    lines = _parse_lines(template, _REQUEST_SLOTS, "request", "n_items")
    return RequestPrompt(name, about, source, lines)


_MAX_SENTENCE_LENGTH = 2000  # the longest sentence of a mitigation in characters
_OWN = "own"  # the name of a mitigation that is a sentence of the user


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
    entries = read_marked(find_packaged("mitigations.yaml")).entries("the mitigations")
    mitigations = [_parse_mitigation(entry) for entry in entries]
    return {mitigation.name: mitigation for mitigation in mitigations}


def _parse_mitigation(entry: MarkedValue) -> _Mitigation:
    settings = entry.mapping("a mitigation", _Mitigation.__dataclass_fields__)
    return _Mitigation(**{key: marked.text(key) for key, marked in settings.items()})


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
        return _Mitigation(_OWN, "A sentence of the user.", "", _make_sentence(text))
    name = normalize_name(text)
    for spelling, sentence in prompt.mitigations.items():
        if normalize_name(spelling) == name:
            return _Mitigation(spelling, "", prompt.source, _make_sentence(sentence))
    packaged = load_mitigations()
    mitigation = next((packaged[key] for key in packaged if normalize_name(key) == name), None)
    if mitigation is None:
        names = [*prompt.mitigations, *(key for key in packaged if packaged[key].sentence)]
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


_RUBRIC_SLOTS = ("text", "marker", "kinds", "answer")  # the slots of a template


@dataclass(frozen=True)
class Rubric(_Template):
    """A prompt with slots for a text and the kinds of label.

    Args:
        words: The words by which a reply may name each kind, in lower case.
    """

    words: Mapping[str, tuple[str, ...]]

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


def load_rubrics() -> dict[str, Rubric]:
    """Return the packaged rubrics by name."""
    return _load_folder("prompts/rubrics", _parse_rubric)


def load_all_prompts() -> Mapping[str, RecommendationPrompt | RequestPrompt | Rubric]:
    """Return all packaged prompts by name: of histories, of requests, and rubrics."""
    return {**load_packaged(), **load_request_prompts(), **load_rubrics()}


def find_rubric(name: str) -> Rubric:
    """Return the rubric of a file, or a packaged one.

    Raises:
        UnknownName: The name is neither.
        MalformedLine: The file has no kinds or no template, or the template lacks the text.
    """
    return _find(load_rubrics(), name, _parse_rubric, "rubric")


def _parse_rubric(tree: MarkedValue, name: str) -> Rubric:
    about, source, template = _read_head(tree, "kinds")
    top = tree.mapping("the file")
    if "kinds" not in top:
        raise tree.fault("there are no kinds", remedy="write kinds: {age: [age, old, young]}")
    lines = _parse_lines(template, _RUBRIC_SLOTS, "text")
    return Rubric(name, about, source, lines, _parse_kinds(top["kinds"]))


def _parse_kinds(marked: MarkedValue) -> dict[str, tuple[str, ...]]:
    """Return the words of each kind; its name is one of them."""
    kinds = marked.mapping("kinds")
    if not kinds:
        raise marked.fault("there are no kinds", remedy="write kinds: {age: [age, old, young]}")
    words: dict[str, tuple[str, ...]] = {}
    for kind, entries in kinds.items():
        listed = (entry.text("a word") for entry in entries.entries(f"the words of {kind}"))
        spellings = (kind, kind.replace("_", " "), *listed)
        words[kind] = tuple(dict.fromkeys(word.strip().casefold() for word in spellings))
    return words
