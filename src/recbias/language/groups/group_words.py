"""Word lists: kinds of groups of people, the groups of each kind, and the words that name them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path

from recbias.core.errors import UnknownName
from recbias.core.suggestions import suggest
from recbias.formats.yaml import MarkedValue, read_marked

MASK_SLOT = "[MASK]"
"""Where the word of a group stands in a neutral sentence."""

_KEYS = ("about", "source", "plurals", "neutral", "kinds")

_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
"""The beginnings of the Unicode names of letters in scripts that join words."""


@dataclass(frozen=True)
class Group:
    """A group of people.

    Args:
        kind: What the groups of its kind differ in: gender, race.
        name: Its name, which is also one of its words.
        words: The words that name it or its members.
    """

    kind: str
    name: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class GroupWords:
    """A word list.

    Args:
        groups: The groups, kind by kind.
        english_plurals: Whether the plurals of the words name the groups, too.
        neutral: Sentences with ``[MASK]`` that say nothing about a group.
    """

    groups: tuple[Group, ...]
    english_plurals: bool = False
    neutral: tuple[str, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds, in the order of the list."""
        return tuple(dict.fromkeys(group.kind for group in self.groups))

    def select(self, kinds: Sequence[str]) -> GroupWords:
        """Return the list of some kinds only.

        Raises:
            UnknownName: The list does not have a kind.
        """
        for kind in kinds:
            if kind not in self.kinds:
                message = f"the word list has no kind {kind!r}"
                raise UnknownName(message, where="kinds", remedy=suggest(kind, self.kinds))
        groups = tuple(group for kind in kinds for group in self.groups if group.kind == kind)
        return GroupWords(groups, self.english_plurals, self.neutral)

    def find(self, text: str) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """Yield the start, end and groups of each group word in a text; the longest word counts.

        Upper and lower case are equal. A word in a script that separates words by blanks must be a
        whole word.

        >>> words = GroupWords((Group("age", "old", ("old", "senior")),), english_plurals=True)
        >>> list(words.find("Seniors told an old joke"))
        [(0, 7, (0,)), (16, 19, (0,))]
        """
        for match in self._pattern.finditer(text):
            groups = self._forms.get(match.group().casefold())
            if groups:  # not of a letter like the Turkish İ, whose lower case has two
                yield match.start(), match.end(), groups

    @cached_property
    def _forms(self) -> Mapping[str, tuple[int, ...]]:
        """The groups of each word, case folded; plurals included."""
        forms: dict[str, set[int]] = {}
        for index, group in enumerate(self.groups):
            for word in group.words:
                forms.setdefault(word.casefold(), set()).add(index)
        if self.english_plurals:
            kinds = [group.kind for group in self.groups]
            for word, groups in list(forms.items()):
                for plural in _form_plurals(word):
                    known = {kinds[index] for index in forms.get(plural, ())}
                    added = {index for index in groups if kinds[index] not in known}
                    forms.setdefault(plural, set()).update(added)
        return {word: tuple(sorted(groups)) for word, groups in forms.items() if groups}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        words = sorted(self._forms, key=lambda word: (-len(word), word))
        joined = [word for word in words if _is_unspaced(word[0]) or _is_unspaced(word[-1])]
        whole = _match_any(word for word in words if word not in set(joined))
        pattern = "|".join([rf"(?<!\w){whole}(?!\w)", *map(re.escape, joined)])
        return re.compile(pattern, re.IGNORECASE)


def load_group_words(path: Path | None = None) -> GroupWords:
    """Return the word list of a YAML or JSON file, or the packaged one of BiasMeter.

    The file maps ``kinds`` to kinds, their groups, and the words of each group. ``plurals`` is
    ``english`` (``boys`` is in the group of ``boy``) or ``none``, the default; ``neutral`` is a
    list of sentences with ``[MASK]``.

    Raises:
        MissingFile: The file does not exist.
        BadYaml: It is not YAML.
        MalformedLine: A key is unknown, a kind has fewer than two groups, a group has no word, or
            a word is in two groups of one kind.
    """
    if path is not None:
        return _parse(read_marked(path))
    packaged = files("recbias.language.groups").joinpath("packaged", "biasmeter.yaml")
    with as_file(packaged) as file:
        return _parse(read_marked(file))


def _parse(tree: MarkedValue) -> GroupWords:
    top = tree.mapping("the file", _KEYS)
    if "kinds" not in top:
        raise tree.fault("there are no kinds", remedy="write kinds: {gender: {man: [he], ...}}")
    plurals = top["plurals"].text("plurals") if "plurals" in top else "none"
    if plurals not in {"english", "none"}:
        raise top["plurals"].fault(f"plurals is {plurals!r}", remedy="write english or none")
    kinds = top["kinds"].mapping("kinds")
    groups = tuple(group for kind in kinds for group in _parse_kind(kind, kinds[kind]))
    return GroupWords(groups, plurals == "english", tuple(_parse_neutral(top)))


def _parse_kind(kind: str, marked: MarkedValue) -> Iterator[Group]:
    groups = marked.mapping(f"the kind {kind}")
    if len(groups) < 2:
        remedy = "list the groups that are compared: gender: {man: [he], woman: [she]}"
        raise marked.fault(f"the kind {kind} has fewer than two groups", remedy=remedy)
    owners: dict[str, str] = {}
    for name, value in groups.items():
        entries = value.entries(f"the group {name}")
        if not entries:
            raise value.fault(f"the group {name} has no words")
        written = [(entry, entry.text("a word").strip()) for entry in entries]
        for entry, word in [(value, name), *written]:
            if owners.setdefault(word.casefold(), name) != name:
                message = (
                    f"{word!r} is in two groups of {kind}: {owners[word.casefold()]} and {name}"
                )
                raise entry.fault(message, remedy="remove it from one")
        words = dict.fromkeys([name, *(word for _, word in written)])
        yield Group(kind, name, tuple(unicodedata.normalize("NFC", word) for word in words))


def _parse_neutral(top: Mapping[str, MarkedValue]) -> Iterator[str]:
    for entry in top["neutral"].entries("neutral") if "neutral" in top else ():
        sentence = entry.text("a neutral sentence")
        if sentence.count(MASK_SLOT) != 1:
            raise entry.fault(f"a neutral sentence needs {MASK_SLOT} once: {sentence!r}")
        yield sentence


def _form_plurals(word: str) -> Iterator[str]:
    """Yield the regular English plurals of a word."""
    if word.endswith("y") and word[-2:-1] not in set("aeiou"):
        yield f"{word[:-1]}ies"
    yield f"{word}es" if word.endswith(("s", "x", "z", "ch", "sh")) else f"{word}s"


def _match_any(words: Iterable[str]) -> str:
    """Return a pattern of any of the words, which are tried by their first letter."""
    by_letter: dict[str, list[str]] = {}
    for word in words:
        by_letter.setdefault(word[0], []).append(re.escape(word[1:]))
    alternatives = (f"{re.escape(a)}(?:{'|'.join(ends)})" for a, ends in by_letter.items())
    return f"(?:{'|'.join(alternatives)})"


def _is_unspaced(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(_UNSPACED)
