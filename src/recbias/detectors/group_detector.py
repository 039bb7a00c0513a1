"""Base of the detectors that compare groups where a text names one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Protocol

import numpy as np
from annotated_types import Gt, Interval

from recbias.core.arrays import AnyArray, BoolArray, FloatArray, Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import NothingLeft, UnknownColumn
from recbias.core.inherited_sections import InheritsSections
from recbias.core.labelled_texts import label_texts
from recbias.core.models.devices import Device
from recbias.core.protocols import InputFile, ModelName
from recbias.core.stage_context import record_fact, report_progress, warn
from recbias.language.groups.group_words import GroupWords, load_group_words
from recbias.language.groups.mentions import Mentions
from recbias.language.groups.partial_progress import report_part
from recbias.numerics.certainty_factor import certainty_factor
from recbias.numerics.devices import OnDevice
from recbias.numerics.group_scores import GroupScore, score_groups

CHARACTERS_PER_BLOCK = 2**20
"""The number of characters of the texts that are evaluated before their values are stored."""

DECIMALS = 6
"""Of a stored value: the sums of a model differ in later ones with the company of a text."""

_ROUNDING = 1e-9


class GroupScorer(Protocol):
    """A language model with the words of groups."""

    def check(self) -> None:
        """Refuse what can be seen without the weights; they are read when a text is scored."""

    def score(self, mentions: Mentions) -> tuple[FloatArray, BoolArray]:
        """Return ln p(group) at each occurrence, and which are in shortened sentences."""


@dataclass(frozen=True, kw_only=True)
class GroupDetector(InheritsSections, OnDevice):
    """Base class of the detectors ``masked_lm`` and ``causal_lm``.

    Args:
        from_: The column of texts.
        kinds: The kinds of groups in the word list that are compared; all of them by default.
        groups: A YAML file with a word list; BiasMeter's by default.
        score: The score of an occurrence: ``difference`` is the probability of the named group
            minus the largest of another group, ``mean_difference`` minus their mean, ``entropy``
            is ±(ln n - H), and ``normalized_entropy`` is that divided by ln n. The ``entropy`` of
            two groups is at most 0.69; of three or more it may exceed 1, which is certain.
        threshold: The combined score from which an item is labelled.
        strict: Label above the threshold only, not at it.
        missing: The label of an item without a word of a group, or without text: ``zero`` as in
            the thesis, or ``undefined``.
        revision: A commit, tag or branch of the hub; None for its main branch.
        device: Where the model computes.
        tokens_per_batch: The number of tokens in a pass of the model, padding included.
        max_group_words: The number of group words that are evaluated in a text, from its
            beginning; those after them are counted in a warning. It bounds the work for a text.

    Raises:
        MissingFile: The model or the word list is not found.
        MalformedLine: The word list is invalid.
        UnknownName: The word list does not have a kind.
        UnknownColumn: The items have no such column, or it holds numbers.
        NothingLeft: The column is empty.

    Source:
        Al Nahadi, "Exploring children's exposure to stereotypes via recommender systems", MSc
        thesis, TU Delft 2023, section 3.3.2; Gaci et al. 2022 (BiasMeter).
    """

    libraries: ClassVar[tuple[str, ...]] = ("torch", "transformers", "tokenizers")
    after_evaluation: ClassVar[frozenset[str]] = frozenset(
        {"from", "threshold", "strict", "missing", "tokens_per_batch"}
    )

    model: ModelName
    from_: str
    kinds: tuple[str, ...] = ()
    groups: InputFile | None = None
    score: GroupScore = "difference"
    threshold: Annotated[float, Interval(ge=-1, le=1)] = 0.7
    strict: bool = True
    missing: Literal["zero", "undefined"] = "zero"
    revision: str | None = None
    device: Device = "auto"
    tokens_per_batch: Annotated[int, Gt(0)] = 4096
    max_group_words: Annotated[int, Gt(0)] = 100

    def __post_init__(self) -> None:
        """Select all kinds of the word list by default; see ``load_group_words`` for errors."""
        words = load_group_words(self.groups)
        kinds = words.select(self.kinds).kinds if self.kinds else words.kinds
        object.__setattr__(self, "kinds", kinds)

    def load_scorer(self, words: GroupWords) -> GroupScorer:
        """Return the model with the words of groups."""
        raise NotImplementedError

    def label(self, items: Attributes, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return the labels and grades of each kind; ``rng`` is unused."""
        return label_texts(self, None, items)

    def texts(self, items: Attributes) -> Ids:
        """Return the text of each item, None where there is none.

        Raises:
            UnknownColumn: The items have no such column, or it holds numbers.
            NothingLeft: No item has a text.
        """
        try:
            column = items.column(self.from_)
        except UnknownColumn as error:
            raise UnknownColumn(error.message, where="from", remedy=error.remedy) from error
        is_text = column.map(lambda cell: isinstance(cell, str) and bool(cell.strip()))
        if column.notna().any() and column.dtype.kind == "f":
            message = f"column {self.from_!r} of the items holds numbers, not texts"
            raise UnknownColumn(message, where="from")
        if not is_text.any():
            raise NothingLeft(f"column {self.from_!r} of the items is empty", where="from")
        return np.array(column.where(is_text, None), dtype=object)

    def evaluate(self, texts: Sequence[str]) -> Iterator[FloatArray]:
        """Yield the certainty and the number of scored sentences of each kind, and four counts.

        The counts are the occurrences after ``max_group_words``, the occurrences that are
        evaluated, those in shortened sentences, and the sentences with a score beyond 1:
        ``float64[m, 2 kinds + 4]``.
        """
        words = load_group_words(self.groups).select(self.kinds)
        scorer = self.load_scorer(words)
        scorer.check()
        start = 0
        report_progress("texts", start, len(texts))
        while start < len(texts):
            sizes = np.cumsum([len(text) for text in texts[start : start + 4096]])
            n = max(1, int(np.searchsorted(sizes, CHARACTERS_PER_BLOCK, side="right")))
            with report_part("texts", start, start + n, len(texts)):
                values = self._evaluate_block(texts[start : start + n], words, scorer)
            yield values
            start += n

    def _evaluate_block(
        self, texts: Sequence[str], words: GroupWords, scorer: GroupScorer
    ) -> FloatArray:
        mentions = Mentions.find(texts, words, self.max_group_words)
        n_kinds = len(self.kinds)
        values = np.zeros((len(texts), 2 * n_kinds + 4))
        if not len(mentions):
            return values
        scores, is_shortened = scorer.score(mentions)
        for at, kind in enumerate(self.kinds):
            columns = [column for column, group in enumerate(words.groups) if group.kind == kind]
            of_sentence, sentences = self._score_sentences(mentions, scores, columns)
            of_text = mentions.text[sentences]
            values[:, 2 * at] = certainty_factor(of_sentence, of_text, len(texts))
            values[:, 2 * at + 1] = np.bincount(of_text, minlength=len(texts))
            is_beyond = np.abs(of_sentence) > 1
            values[:, -1] += np.bincount(of_text[is_beyond], minlength=len(texts))
        values[:, -4] = mentions.omitted
        of_mention = mentions.text[mentions.spans[:, 0]]
        values[:, -3] = np.bincount(of_mention, minlength=len(texts))
        values[:, -2] = np.bincount(of_mention[is_shortened], minlength=len(texts))
        return np.asarray(values.round(DECIMALS))

    def _score_sentences(
        self, mentions: Mentions, scores: FloatArray, columns: Sequence[int]
    ) -> tuple[FloatArray, AnyArray]:
        """Return the mean score of the words of some groups by sentence, and the sentences."""
        of_kind = np.isin(mentions.named[:, 1], columns)
        rows, groups = mentions.named[of_kind].T
        logarithms = scores[rows][:, columns]
        weights = np.exp(logarithms - logarithms.max(axis=1, keepdims=True, initial=-np.inf))
        shares = weights / weights.sum(axis=1, keepdims=True)
        values = score_groups(shares, np.searchsorted(np.array(columns), groups), self.score)
        sentences, inverse = np.unique(mentions.spans[rows, 0], return_inverse=True)
        sums = np.bincount(inverse, weights=values, minlength=sentences.size)
        return sums / np.bincount(inverse, minlength=sentences.size), sentences

    def label_values(self, values: FloatArray) -> Mapping[str, FloatArray]:
        """Return the labels and grades of each kind; count what could not be scored."""
        has_text = ~np.isnan(values[:, 0])
        self._report(values[has_text], len(values))
        threshold = self.threshold + (_ROUNDING if self.strict else -_ROUNDING)
        empty_label = 0.0 if self.missing == "zero" else np.nan
        columns: dict[str, FloatArray] = {}
        for at, kind in enumerate(self.kinds):
            certainty, n_sentences = values[:, 2 * at], values[:, 2 * at + 1]
            is_empty = ~(n_sentences > 0)
            labels = (certainty > threshold).astype(np.float64)
            grades = np.maximum(certainty, 0.0)
            labels[is_empty] = grades[is_empty] = empty_label
            columns |= {kind: labels, f"{kind}_score": grades}
        return columns

    def _report(self, values: FloatArray, n_items: int) -> None:
        counts = values[:, -4:].sum(axis=0).astype(int).tolist()
        n_omitted, n_mentions, n_shortened, n_beyond = counts
        record_fact("group_words", n_mentions)
        outcome = "labelled 0" if self.missing == "zero" else "given no label"
        if len(values) < n_items:
            warn(f"{n_items - len(values):,} of {n_items:,} items have no text: {outcome}")
        if not n_mentions:
            remedy = "is the word list in their language and script?"
            warn(f"no text of {self.from_!r} has a word of a group; {remedy}")
        for at, kind in enumerate(self.kinds if n_mentions else ()):
            n_empty = int(np.count_nonzero(values[:, 2 * at + 1] == 0))
            if n_empty:
                counts = f"{n_empty:,} of {len(values):,} texts"
                warn(f"{counts} have no word of a group of {kind}: {outcome}")
        if n_omitted:
            n_texts = int(np.count_nonzero(values[:, -4]))
            beyond = f"the first {self.max_group_words:,} of {n_texts:,} texts"
            warn(f"{n_omitted:,} group words after {beyond} were not evaluated: max_group_words")
        if n_shortened:
            words = f"{n_shortened:,} of {n_mentions:,} group words"
            warn(f"{words} are in sentences longer than the model reads, which were shortened")
        if n_beyond:
            warn(f"{n_beyond:,} sentences have an entropy score beyond 1, which counts as certain")
