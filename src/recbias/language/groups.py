"""Words that name groups of people, and how probable each group is where one stands in a text.

Word lists give the kinds of groups, the groups of each and their words; a masked language model
gives the probability of each group, and the certainty factor combines them.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.context import get_context, stage_context, warn
from recbias.core.dataset import AnyArray, BoolArray, FloatArray
from recbias.core.errors import Contradiction, OutOfRange, UnknownName
from recbias.core.text import suggest
from recbias.formats.yaml import MarkedValue, read_marked
from recbias.language.local_models import LocalModel
from recbias.language.terms import find_packaged

_MASK_SLOT = "[MASK]"  # where the word of a group stands in a neutral sentence

_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
"""The beginnings of the Unicode names of letters in scripts that join words."""


@dataclass(frozen=True)
class _Group:
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

    groups: tuple[_Group, ...]
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

        >>> words = GroupWords((_Group("age", "old", ("old", "senior")),), english_plurals=True)
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
    tree = read_marked(path or find_packaged("groups", "biasmeter.yaml"))
    needed = {"kinds": "kinds: {gender: {man: [he], woman: [she]}}"}
    top = tree.mapping("the file", ("about", "source", "plurals", "neutral", "kinds"), needed)
    kinds = top["kinds"].mapping("kinds")
    neutral = top.get("neutral", MarkedValue((), tree.where)).entries("neutral")
    return GroupWords(
        tuple(group for kind, marked in kinds.items() for group in _parse_kind(kind, marked)),
        tree.choose("plurals", "none", "english") == "english",
        tuple(map(_parse_neutral, neutral)),
    )


def _parse_kind(kind: str, marked: MarkedValue) -> Iterator[_Group]:
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
        yield _Group(kind, name, tuple(unicodedata.normalize("NFC", word) for word in words))


def _parse_neutral(entry: MarkedValue) -> str:
    sentence = entry.text("a neutral sentence")
    if sentence.count(_MASK_SLOT) != 1:
        raise entry.fault(f"a neutral sentence needs {_MASK_SLOT} once: {sentence!r}")
    return sentence


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


_ABBREVIATIONS = frozenset(
    (  # noqa: SIM905  one abbreviation a line would be 40 lines
        "adm al apr aug ave capt cmdr co col corp dec dept dr ed esp est etc feb ft gen gov hon "
        "inc jan jr lt ltd maj messrs mr mrs ms mt no nov oct ph prof rep rev sen sep sept sgt sr "
        "st ste vol vs"
    ).split()
)
"""Words before a period that does not end a sentence, without their periods."""

_END = re.compile(
    r"""
    [.!?…]+["'”’»)\]]*(?=\s+["'“‘«(\[¿¡]*[^\W_a-z])   # before a capital or a digit
    | [。！？｡]+["'”’」』）]*                            # without a blank after it
    | \n+
    """,
    re.VERBOSE,
)

_LAST_WORD = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]+$")


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, without the blanks around them.

    A sentence ends at a period, an exclamation or a question mark before a capital letter, a digit
    or a letter of a script without capitals, at an ideographic full stop, and at a line's end. The
    period of an abbreviation (``Dr.``) or of initials (``J. R.``) does not end one.

    >>> split_sentences("Dr. No met J. R. Ewing. They left! Who won? The U.S. team.")
    ['Dr. No met J. R. Ewing.', 'They left!', 'Who won?', 'The U.S. team.']
    """
    sentences, start = [], 0
    for match in _END.finditer(text):
        if match.group() != "." or not _is_abbreviation(text[start : match.start()]):
            sentences.append(text[start : match.end()].strip())
            start = match.end()
    return [sentence for sentence in (*sentences, text[start:].strip()) if sentence]


def _is_abbreviation(before: str) -> bool:
    """Return whether the text before a period ends with an abbreviation or an initial."""
    match = _LAST_WORD.search(before[-20:])
    word = match.group() if match else ""
    is_initial = "." in word or (len(word) == 1 and word.isupper() and word != "I")
    return is_initial or word.lower() in _ABBREVIATIONS


@dataclass(frozen=True, eq=False)
class Mentions:
    """The occurrences of group words in the sentences of texts.

    Args:
        sentences: The sentences with an occurrence, in Unicode normalization form C.
        text: The text of each sentence, ``int64[s]``.
        spans: The sentence, start and end of each occurrence, ``int64[m, 3]``.
        named: The occurrence and the group of each pair of these, ``int64[p, 2]``: a word may name
            groups of several kinds.
        omitted: The number of occurrences of each text after its first ``limit``, ``int64[n]``.
    """

    sentences: list[str]
    text: AnyArray
    spans: AnyArray
    named: AnyArray
    omitted: AnyArray

    @classmethod
    def find(cls, texts: Sequence[str], words: GroupWords, limit: int = sys.maxsize) -> Mentions:
        """Return the first ``limit`` occurrences in each text, and how many more there are."""
        sentences: list[str] = []
        of_text: list[int] = []
        spans: list[tuple[int, int, int]] = []
        named: list[tuple[int, int]] = []
        omitted = np.zeros(len(texts), dtype=np.int64)
        for row, text in enumerate(texts):
            n_left = limit
            for sentence in split_sentences(unicodedata.normalize("NFC", text)):
                found = list(words.find(sentence))
                matches = found[:n_left]
                n_left -= len(matches)
                omitted[row] += len(found) - len(matches)
                if matches:
                    named += [
                        (len(spans) + at, group)
                        for at, (_, _, groups) in enumerate(matches)
                        for group in groups
                    ]
                    spans += [(len(sentences), start, end) for start, end, _ in matches]
                    sentences.append(sentence)
                    of_text.append(row)
        return cls(
            sentences,
            np.array(of_text, dtype=np.int64),
            np.array(spans, dtype=np.int64).reshape(-1, 3),
            np.array(named, dtype=np.int64).reshape(-1, 2),
            omitted,
        )

    def __len__(self) -> int:
        """Return the number of occurrences."""
        return len(self.spans)


Candidates: TypeAlias = Literal["names", "words"]
"""What stands for a group: its name, or all its words."""

Neutral: TypeAlias = Literal["none", "ratio", "log_ratio"]
"""How the probability of a group in neutral sentences is taken out."""


@dataclass(frozen=True, eq=False)
class MaskedGroups:
    """A masked language model and the words of groups.

    Args:
        model: The model.
        words: The groups.
        candidates: What stands for a group.
        neutral: ``ratio`` divides by the group's mean probability q in neutral sentences,
            ``log_ratio`` by ln(1 + q).
        tokens_per_batch: The number of tokens in a pass of the model.
    """

    model: LocalModel
    words: GroupWords
    candidates: Candidates = "names"
    neutral: Neutral = "none"
    tokens_per_batch: int = 4096

    def check(self) -> None:
        """Refuse groups that the tokenizer has no token for, and count divided words.

        Raises:
            OutOfRange: A group has no word that is one token.
            Contradiction: Two groups of a kind have a token in common, or there are no neutral
                sentences.
        """
        if self.neutral != "none" and not self.words.neutral:
            message = "the word list has no neutral sentences"
            remedy = "add neutral: ['It was a [MASK].'] to its file, or set neutral: none"
            raise Contradiction(message, where="neutral", remedy=remedy)
        words = [word for of_group in self._word_tokens for word in of_group.items()]
        divided = [word for word, tokens in words if not tokens]
        if self._tokens and divided:
            shown = ", ".join(divided[:5]) + (", ..." if len(divided) > 5 else "")
            message = f"{len(divided):,} group words are divided by the tokenizer and not summed"
            warn(f"{message}: {shown}")

    def score(self, mentions: Mentions) -> tuple[FloatArray, BoolArray]:
        """Return ln p(group) at each occurrence with its word masked, and which are shortened.

        The probabilities of the words of a group are summed. Each row has a constant of its own.

        Returns:
            ``float64[m, groups]``, and of each occurrence whether its sentence is longer than the
            model can read, ``bool[m]``.
        """
        scores, is_shortened = self._predict(mentions.sentences, mentions.spans)
        return scores - self._neutral_scores, is_shortened

    def _predict(
        self, sentences: Sequence[str], spans: AnyArray, *, is_normalized: bool = False
    ) -> tuple[FloatArray, BoolArray]:
        tokens = np.unique(np.concatenate(self._tokens))
        logarithms, is_shortened = self.model.predict(
            sentences,
            spans,
            tokens,
            tokens_per_batch=self.tokens_per_batch,
            is_normalized=is_normalized,
        )
        places = [np.searchsorted(tokens, of_group) for of_group in self._tokens]
        columns = [np.logaddexp.reduce(logarithms[:, place], axis=1) for place in places]
        return np.stack(columns, axis=1), is_shortened

    @cached_property
    def _neutral_scores(self) -> FloatArray:
        """The logarithm of what the probability of each group is divided by, ``float64[g]``."""
        if self.neutral == "none":
            return np.zeros(len(self.words.groups))
        sentences = self.words.neutral
        spans = [
            (row, text.index(_MASK_SLOT), text.index(_MASK_SLOT) + len(_MASK_SLOT))
            for row, text in enumerate(sentences)
        ]
        positions = np.array(spans, dtype=np.int64)
        scores, _ = self._predict(sentences, positions, is_normalized=True)
        q = np.exp(scores).mean(axis=0)
        return np.asarray(np.log(q if self.neutral == "ratio" else np.log1p(q)))

    @cached_property
    def _word_tokens(self) -> list[dict[str, set[int]]]:
        """The tokens of each candidate of each group: of its spellings that are one token."""

        def find_tokens(word: str) -> set[int]:
            found = map(self.model.find_token, (word, word[:1].upper() + word[1:]))
            return {token for token in found if token is not None}

        listed = (
            (group.name,) if self.candidates == "names" else group.words
            for group in self.words.groups
        )
        return [{word: find_tokens(word) for word in words} for words in listed]

    @cached_property
    def _tokens(self) -> list[AnyArray]:
        """The tokens of each group, ``int64[t]``."""
        tokens = [sorted(set().union(*words.values())) for words in self._word_tokens]
        owners: dict[tuple[str, int], str] = {}
        for group, of_group in zip(self.words.groups, tokens, strict=True):
            if not of_group:
                what = "the name" if self.candidates == "names" else "every word"
                message = f"the tokenizer divides {what} of the group {group.name!r}"
                remedy = "set candidates: words, or add a common word to the group"
                raise OutOfRange(message, where="groups", remedy=remedy)
            for token in of_group:
                other = owners.setdefault((group.kind, token), group.name)
                if other != group.name:
                    message = f"the groups {other!r} and {group.name!r} share a token"
                    raise Contradiction(message, where="groups", remedy="rename one of them")
        return [np.array(of_group, dtype=np.int64) for of_group in tokens]


@contextmanager
def report_part(task: str, start: int, stop: int, total: int) -> Iterator[None]:
    """Report what is completed inside the block as steps ``start`` to ``stop`` of a task.

    >>> from recbias.core.context import report_progress
    >>> def show(task: str, completed: int, total: int) -> None:
    ...     print(task, completed, total)
    >>> with stage_context(on_progress=show), report_part("texts", 40, 60, 100):
    ...     report_progress("tokens scored", 500, 1000)
    texts 50 100
    texts 60 100
    """
    listener = get_context().on_progress
    if listener is None:
        yield
        return

    def report(_: str, completed: int, n_steps: int) -> None:
        listener(task, start + (stop - start) * completed // max(n_steps, 1), total)

    with stage_context(on_progress=report):
        yield
    listener(task, stop, total)


def certainty_factor(
    scores: npt.ArrayLike, groups: npt.ArrayLike, n_groups: int | None = None
) -> FloatArray:
    """Return the combined certainty of each group of scores.

    Two scores x and y are combined by

        x + y - x y                         both at least 0
        x + y + x y                         both at most 0
        (x + y) / (1 - min(|x|, |y|))       opposite signs

    The rule is associative and commutative: with h(x) = -ln(1 - x) for x ≥ 0 and ln(1 + x) for
    x < 0, the combination is h⁻¹(h(x) + h(y)), which this function computes. 0 is no evidence, and
    the value of a group without scores. A score of 1 (certainly true) or -1 (certainly false)
    decides the group. The rule leaves a group with both undefined; its value here is 0.

    Args:
        scores: From -1 to 1, ``float64[n]``.
        groups: Group of each score, from 0, ``int[n]``.
        n_groups: Number of groups; by default the largest group plus one.

    >>> certainty_factor([0.5, 0.6, 0.6, -0.2], [0, 0, 1, 1]).round(3).tolist()
    [0.8, 0.5]

    Source:
        Shortliffe and Buchanan, "A model of inexact reasoning in medicine", Mathematical
        Biosciences 1975; the form for opposite signs: van Melle, "A domain-independent system
        that aids in constructing knowledge-based consultation programs", Stanford 1980.
    """
    values = np.asarray(scores, dtype=np.float64)
    codes = np.asarray(groups, dtype=np.intp)
    size = int(codes.max(initial=-1)) + 1 if n_groups is None else n_groups
    uncertain = np.abs(values) < 1
    evidence = -np.sign(values[uncertain]) * np.log1p(-np.abs(values[uncertain]))
    total = np.bincount(codes[uncertain], weights=evidence, minlength=size)
    factors = -np.sign(total) * np.expm1(-np.abs(total))
    certain_for = np.bincount(codes[values >= 1], minlength=size) > 0
    certain_against = np.bincount(codes[values <= -1], minlength=size) > 0
    factors = np.where(certain_for | certain_against, 0.0, factors)
    return np.asarray(factors + certain_for.astype(np.float64) - certain_against)


GroupScore: TypeAlias = Literal["difference", "mean_difference", "normalized_entropy", "entropy"]
"""A score of a distribution over groups; see ``score_groups``."""


def score_groups(probabilities: FloatArray, named: AnyArray, score: GroupScore) -> FloatArray:
    """Return the score of each distribution over n groups, ``float64[m]``.

    With p the distribution, g the group that the text names and H = -Σ p ln p:

        difference            p(g) - max of p(h) over the other groups h
        mean_difference       p(g) - mean of p(h) over the other groups h
        entropy               ±(ln n - H),  plus if p(g) > 1/n, else minus
        normalized_entropy    ±(ln n - H) / ln n

    All are from -1 (against the stereotype) to 1, except ``entropy``: from -ln n to ln n.

    Args:
        probabilities: Rows that sum to 1, ``float64[m, n]``.
        named: The group that the text names, ``int[m]``.
        score: The score.

    >>> score_groups(np.array([[0.9, 0.1]]), np.array([0]), "difference").round(3).tolist()
    [0.8]
    >>> score_groups(np.array([[0.9, 0.1]]), np.array([1]), "entropy").round(3).tolist()
    [-0.368]
    """
    n = probabilities.shape[1]
    p_named = np.take_along_axis(probabilities, named[:, None], axis=1)[:, 0]
    if score == "mean_difference":
        return np.asarray(p_named - (1 - p_named) / (n - 1))
    if score == "difference":
        others = probabilities.copy()
        np.put_along_axis(others, named[:, None], -np.inf, axis=1)
        return np.asarray(p_named - others.max(axis=1))
    logarithms = np.log(np.where(probabilities > 0, probabilities, 1))
    information = np.log(n) + (probabilities * logarithms).sum(axis=1)
    signed = np.where(p_named > 1 / n, 1, -1) * np.maximum(information, 0)
    return np.asarray(signed / np.log(n) if score == "normalized_entropy" else signed)
