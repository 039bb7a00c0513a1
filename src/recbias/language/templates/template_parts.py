"""What all files of templates hold, whatever their format: groups of words, and sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.formats.yaml.marked_text import MarkedValue
from recbias.language.templates.template_sets import Kind, WordList, slots_of

RESERVED = ("kind", "template", "id", "text")
"""What no slot may be called: the queries have such columns."""

_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Group:
    """Words that share their labels, as they stand in a file."""

    words: tuple[MarkedValue, ...]
    labels: Mapping[str, str]


def word_list(slot: str, groups: Iterable[Group], node: MarkedValue) -> WordList:
    """Return the words of a slot, each once, with the labels of all groups that it stands in.

    Raises:
        MalformedLine: There are none, or a word carries two values of one label.
    """
    if slot in RESERVED:
        raise node.fault(f"no slot can be called {slot!r}", remedy="give it another name")
    known: dict[str, dict[str, str]] = {}
    repeated: list[str] = []
    for group in groups:
        if not group.words:
            raise node.fault(f"a list of words of the slot {slot!r} is empty")
        for each in group.words:
            word = each.text("a word").strip()
            _add(known, repeated, each, (word, group.labels))
    if not known:
        raise node.fault(f"the slot {slot!r} has no words")
    if repeated:
        warn(f"words of the slot {slot} that stand twice count once: {', '.join(repeated)}")
    names = dict.fromkeys(name for labels in known.values() for name in labels)
    labels = {name: tuple(each.get(name) for each in known.values()) for name in names}
    return WordList(tuple(known), labels)


def _add(
    known: dict[str, dict[str, str]],
    repeated: list[str],
    place: MarkedValue,
    entry: tuple[str, Mapping[str, str]],
) -> None:
    word, labels = entry
    have = known.get(word)
    if have is None:
        known[word] = dict(labels)
        return
    for name, value in labels.items():
        if have.get(name, value) != value:
            found = f"the word {word!r} is both {have[name]} and {value} ({name})"
            raise place.fault(found, remedy="keep it in one of the lists")
    if labels.keys() <= have.keys():
        repeated.append(word)
    have.update(labels)


def kinds_of(
    node: MarkedValue, lists: Mapping[str, WordList], renamed: Mapping[str, str]
) -> tuple[Kind, ...]:
    """Return the kinds of a mapping of sentences.

    Args:
        node: The sentences of each kind.
        lists: The words of each slot.
        renamed: Slots that are called otherwise in the sentences, and what they are called here.

    Raises:
        MalformedLine: A sentence has no slot, or one without words, or stands twice.
    """
    found = node.mapping("templates")
    if not found:
        raise node.fault("there are no templates")
    return tuple(kind_of(name, each, lists, renamed) for name, each in found.items())


def kind_of(
    name: str, node: MarkedValue, lists: Mapping[str, WordList], renamed: Mapping[str, str]
) -> Kind:
    """Return one kind, from the list of its sentences."""
    sentences: dict[str, None] = {}
    for each in node.entries(f"the templates {name!r}"):
        sentence = _named(each.text("a template").strip(), renamed)
        if sentence in sentences:
            raise each.fault("this template stands twice", remedy="leave one of them out")
        _check_slots(each, slots_of(sentence), lists)
        sentences[sentence] = None
    if not sentences:
        raise node.fault(f"the kind {name!r} has no templates")
    used = dict.fromkeys(slot for each in sentences for slot in slots_of(each))
    return Kind(name, tuple(sentences), {slot: lists[slot] for slot in used})


def _named(sentence: str, renamed: Mapping[str, str]) -> str:
    """Return a sentence with its slots in square brackets, under the names used here."""
    sentence = _BRACES.sub(r"[\1]", sentence)
    for before, after in renamed.items():
        sentence = sentence.replace(f"[{before}]", f"[{after}]")
    return sentence


def _check_slots(place: MarkedValue, slots: list[str], lists: Mapping[str, WordList]) -> None:
    if not slots:
        raise place.fault("this template has no slot", remedy="write a slot as [name]")
    for slot in slots:
        if slot not in lists:
            remedy = suggest(slot, lists)
            raise place.fault(f"there are no words for the slot [{slot}]", remedy=remedy)
