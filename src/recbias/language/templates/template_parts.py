"""Groups of words and sentences, the content of template files of every format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.formats.yaml import MarkedValue
from recbias.language.templates.template_sets import Kind, WordList, find_slots

_RESERVED = ("kind", "template", "id", "text")
_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Group:
    """Words of a file with the same labels."""

    words: tuple[MarkedValue, ...]
    labels: Mapping[str, str]


def merge_groups(slot: str, groups: Iterable[Group], node: MarkedValue) -> WordList:
    """Return the words of a slot without repetition, with the labels of all their groups.

    MalformedLine if there are no words, or a word has two values of one label.
    """
    if slot in _RESERVED:
        raise node.fault(f"no slot can be named {slot!r}", remedy="choose another name")
    words: dict[str, dict[str, str]] = {}
    repeated: list[str] = []
    for marked, new_labels in _iterate_words(slot, groups, node):
        word = marked.text("a word").strip()
        if word not in words:
            words[word] = dict(new_labels)
            continue
        labels = words[word]
        _refuse_two_values(marked, word, labels, new_labels)
        if new_labels.keys() <= labels.keys():
            repeated.append(word)
        labels.update(new_labels)
    if not words:
        raise node.fault(f"the slot {slot!r} has no words")
    if repeated:
        warn(f"repeated words of the slot {slot} are used once: {', '.join(repeated)}")
    names = dict.fromkeys(name for labels in words.values() for name in labels)
    columns = {name: tuple(labels.get(name) for labels in words.values()) for name in names}
    return WordList(tuple(words), columns)


def _iterate_words(
    slot: str, groups: Iterable[Group], node: MarkedValue
) -> Iterator[tuple[MarkedValue, Mapping[str, str]]]:
    for group in groups:
        if not group.words:
            raise node.fault(f"a list of words of the slot {slot!r} is empty")
        yield from ((word, group.labels) for word in group.words)


def _refuse_two_values(
    marked: MarkedValue, word: str, labels: Mapping[str, str], new: Mapping[str, str]
) -> None:
    for name, value in new.items():
        if labels.get(name, value) != value:
            message = f"the word {word!r} is both {labels[name]} and {value} ({name})"
            raise marked.fault(message, remedy="keep it in one of the lists")


def parse_kinds(
    node: MarkedValue, word_lists: Mapping[str, WordList], renamed: Mapping[str, str]
) -> tuple[Kind, ...]:
    """Return the kinds of a mapping to sentences, whose slots are ``renamed``.

    MalformedLine if a sentence has no slot, has a slot without words, or occurs twice.
    """
    kinds = node.mapping("templates")
    if not kinds:
        raise node.fault("there are no templates")
    return tuple(parse_kind(name, kind, word_lists, renamed) for name, kind in kinds.items())


def parse_kind(
    name: str, node: MarkedValue, word_lists: Mapping[str, WordList], renamed: Mapping[str, str]
) -> Kind:
    """Return one kind from a list of sentences; otherwise as ``parse_kinds``."""
    sentences: dict[str, list[str]] = {}
    for marked in node.entries(f"the templates {name!r}"):
        sentence = _BRACES.sub(r"[\1]", marked.text("a template").strip())
        for old, new in renamed.items():
            sentence = sentence.replace(f"[{old}]", f"[{new}]")
        if sentence in sentences:
            raise marked.fault("this template occurs twice", remedy="remove one of them")
        sentences[sentence] = find_slots(sentence)
        _refuse_missing_words(marked, sentences[sentence], word_lists)
    if not sentences:
        raise node.fault(f"the kind {name!r} has no templates")
    slots = dict.fromkeys(slot for used in sentences.values() for slot in used)
    return Kind(name, tuple(sentences), {slot: word_lists[slot] for slot in slots})


def _refuse_missing_words(
    sentence: MarkedValue, slots: list[str], word_lists: Mapping[str, WordList]
) -> None:
    if not slots:
        raise sentence.fault("this template has no slot", remedy="write a slot as [name]")
    for slot in slots:
        if slot not in word_lists:
            remedy = suggest(slot, word_lists)
            raise sentence.fault(f"there are no words for the slot [{slot}]", remedy=remedy)
