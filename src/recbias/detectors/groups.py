"""Labels from a column, from sentences, or from a language model's choice among groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from annotated_types import Gt, Interval, MinLen

from recbias.core.context import record_fact, report_progress, warn
from recbias.core.dataset import AnyArray, Attributes, BoolArray, FloatArray, Ids
from recbias.core.errors import MalformedLine, NothingLeft, OutOfRange, at_setting
from recbias.core.plugins import EXECUTION, Device, InputFile, ModelName, label_texts
from recbias.detectors.names import read_cells
from recbias.formats.delimited import Table
from recbias.formats.identifiers import check_ids
from recbias.formats.ratings import YES_NO
from recbias.formats.tables import read_text_table
from recbias.kernels.devices import OnDevice
from recbias.language.groups import (
    Candidates,
    GroupScore,
    GroupWords,
    MaskedGroups,
    Mentions,
    Neutral,
    certainty_factor,
    load_group_words,
    report_part,
    score_groups,
)
from recbias.language.local_models import load_model
from recbias.language.model_files import list_model_files
from recbias.statistics.agreement import Level, krippendorff_alpha

_CHARACTERS_PER_BLOCK = 2**20
"""The number of characters of the texts that are evaluated before their values are stored."""

_DECIMALS = 6
"""Of a stored value: the sums of a model differ in later ones with the company of a text."""

_ROUNDING = 1e-9


def _grade(
    detector: Any, kind: str, certainty: FloatArray, is_empty: BoolArray, rounding: float
) -> dict[str, FloatArray]:
    """Return the labels and grades of a kind by the certainty of each item."""
    labels = (
        certainty > detector.threshold + (rounding if detector.strict else -rounding)
    ).astype(np.float64)
    grades = np.maximum(certainty, 0.0)
    labels[is_empty] = grades[is_empty] = 0.0 if detector.missing == "zero" else np.nan
    return {kind: labels, f"{kind}_score": grades}


@dataclass(frozen=True, kw_only=True)
class Column:
    """Take labels from a column of the items.

        label = 1 if value ≥ threshold else 0

    Without a threshold the column must hold 0 and 1, and is used unchanged. An item with a missing
    value has no label.

    Args:
        from_: The column.
        threshold: The least value that is labelled 1.
        kind: What the labels describe; with it the labels called ``mine`` are ``mine.stereotype``.

    Raises:
        UnknownColumn: The items have no such column, or it is not numeric.
        OutOfRange: There is no threshold, and a value is neither 0 nor 1.
        NothingLeft: The column is empty.

    >>> import pandas as pd
    >>> from recbias.core.dataset import Vocabulary
    >>> table = pd.DataFrame({"votes": [3.0, 8.0, np.nan]})
    >>> items = Attributes(Vocabulary.of(["1", "2", "3"]), table)
    >>> labels = Column(from_="votes", threshold=5).label(items, np.random.default_rng(0))
    >>> labels["stereotype"].tolist()
    [0.0, 1.0, nan]
    """

    libraries: ClassVar[tuple[str, ...]] = ()

    from_: str
    threshold: float | None = None
    kind: str = "stereotype"

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the one kind."""
        return (self.kind,)

    def label(self, items: Attributes, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return the labels; ``rng`` is unused: the labels are deterministic."""
        values = self._read_values(items)
        if self.threshold is None:
            return {self.kind: values}
        is_labelled = (values >= self.threshold).astype(np.float64)
        return {self.kind: np.where(np.isnan(values), np.nan, is_labelled)}

    def _read_values(self, items: Attributes) -> FloatArray:
        with at_setting("from"):
            values = items.numbers(self.from_)
        if np.isnan(values).all():
            raise NothingLeft(f"column {self.from_!r} of the items is empty", where="from")
        not_binary = np.flatnonzero(~np.isnan(values) & (values != 0) & (values != 1))
        if self.threshold is None and not_binary.size:
            row = not_binary[0]
            message = f"{self.from_!r} of item {items.ids.ids[row]!r} is {values[row]:g}"
            remedy = "set a threshold: the least value that is labelled 1"
            raise OutOfRange(f"{message}, neither 0 nor 1", where="from", remedy=remedy)
        return values


@dataclass(frozen=True, kw_only=True)
class HumanLabels:
    """Take labels that people gave to some of the items, with the error of their raters.

        label = mean of the ratings of the item,    or 1 if most of them are 1, else 0

    ``audited: labels.csv`` in the entry of another detector, ``judge`` say, makes these labels,
    ``judge.audited``, by which metrics correct the values of its labels (``corrected``). The file
    has a row for each rating: ``item_id``, a column of 0, 1 or grades in between (or of yes and
    no, or true and false) for each of ``columns``, and perhaps ``probability``, that with which
    the item was chosen for the sample. Rows of one item are ratings by several people: their
    number and Krippendorff's alpha are said. The variance of the mean of r ratings is s²/r, with
    s² the variance within the items that have several; that of a majority is q(1 - q), with q
    its probability if r ratings were drawn from those of the item. A tie is 0.5. Items without a
    rating have no label.

    Args:
        path: The file; one with a single column of labels may call it ``label``.
        columns: The kinds of labels: those of the detector.
        raters: Whether the label is the ``mean`` of the ratings or their ``majority``.

    Raises:
        UnknownColumn: The file has none of the columns.
        OutOfRange: A rating, or a probability, is not within 0 and 1.
        NothingLeft: No item of the dataset is in the file.

    Source:
        Krippendorff, "Content Analysis: An Introduction to its Methodology", 2nd edition, 2004,
        chapter 11.
    """

    libraries: ClassVar[tuple[str, ...]] = ()

    path: InputFile
    columns: Annotated[tuple[str, ...], MinLen(1)]
    raters: Literal["mean", "majority"] = "mean"

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the labels, their variances, and the probability of the items."""
        variances = (f"{name}_variance" for name in self.columns)
        return (*self.columns, *variances, "probability")

    def label(self, items: Attributes, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return the labels; ``rng`` is unused: they are deterministic."""
        table, n_items = read_text_table(self.path), len(items.ids)
        table.need("item_id")
        rows = items.ids.find(table.ids("item_id"))
        if not (rows >= 0).any():
            raise NothingLeft(f"no item of {self.path.name} is in the dataset", where="path")
        if n_other := len(dict.fromkeys(table.ids("item_id")[rows < 0])):
            warn(f"{n_other:,} items of {self.path.name} are not in the dataset")
        names = {name: name for name in self.columns if name in table.columns}
        if not names and len(self.columns) == 1 and "label" in table.columns:
            names = {self.columns[0]: "label"}
        if not names:
            table.need(self.columns[0])
        columns = dict.fromkeys(self.kinds, np.full(n_items, np.nan))
        for kind, name in names.items():
            ratings = _read_ratings(table, name)
            used = (rows >= 0) & ~np.isnan(ratings)
            columns[kind], columns[f"{kind}_variance"] = self._summarize(
                kind, rows[used], ratings[used], n_items
            )
        if "probability" in table.columns:
            values = _read_ratings(table, "probability")
            columns["probability"] = columns["probability"].copy()
            columns["probability"][rows[rows >= 0]] = values[rows >= 0]
        return columns

    def _summarize(
        self, kind: str, rows: AnyArray, ratings: FloatArray, n_items: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return the label of each item and its variance."""
        n = np.bincount(rows, minlength=n_items)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.bincount(rows, ratings, minlength=n_items) / n
            within = float(((ratings - means[rows]) ** 2).sum()) / max((n[n > 1] - 1).sum(), 1)
            labels, variance = means, within / n
        if self.raters == "majority":
            from scipy.stats import binom

            labels = np.where(n > 0, (np.sign(means - 0.5) + 1.0) / 2.0, np.nan)
            most, half = binom.sf(n / 2.0, n, means), binom.pmf(n / 2.0, n, means) / 2.0
            variance = (most + half) * (1.0 - most - half)
        record_fact(f"audited.{kind}", int((n > 0).sum()))
        if (n > 1).any():
            several, order = int((n > 1).sum()), np.argsort(rows, kind="stable")
            table = np.full((int(n.max()), n_items), np.nan)
            turn = np.arange(rows.size) - np.repeat(np.cumsum(n) - n, n)
            table[turn, rows[order]] = ratings[order]
            level: Level = "nominal" if np.isin(ratings, (0.0, 1.0)).all() else "interval"
            alpha = krippendorff_alpha(table, level)
            record_fact(f"agreement.{kind}.alpha", alpha)
            used = f"the {self.raters} of the ratings is used, and its error counts"
            agreement = f"their agreement is {alpha:.2f} (Krippendorff's alpha)"
            warn(f"{several:,} items have several ratings of {kind}: {agreement}; {used}")
        return labels, variance


def _read_ratings(table: Table, name: str) -> FloatArray:
    cells = [cell.strip().lower() for cell in table.texts(name).tolist()]
    if {*cells} <= {"", *YES_NO}:
        return np.array([YES_NO.get(cell, np.nan) for cell in cells])
    values = table.numbers(name)
    if (wrong := np.flatnonzero((values < 0) | (values > 1))).size:
        row = int(wrong[0])
        message = f"{name} is {values[row]:g}, not within 0 and 1"
        raise OutOfRange(message, where=table.place(row), remedy="write 0, 1 or a share")
    return values


@dataclass(frozen=True, kw_only=True)
class MaskedLM(OnDevice):
    """Label items whose text names the groups that a masked language model expects (BiasMeter).

        p(g) = softmax over the groups of ln P(g | the sentence, with the word masked)
        score of a word = p(named group) - max p(other group)
        score of a sentence = mean of its words
        label = 1 if the certainty factor of all sentences > threshold else 0

    Each occurrence of a group word is masked alone; the others stay. The model gives each group a
    probability there: that of its name, or the sum over its words. Words are found in upper and
    lower case and, with the packaged list, in the plural. Sentences without a group word are
    skipped, and negative scores (against the stereotype) lower the result. The rule for scores of
    opposite signs is 0/0 for a sentence of exactly 1 and one of exactly -1; the certainty of such
    an item is 0 here, whatever its other sentences are. Beside the label of
    each kind there is its grade, ``gender_score``: the combined score, 0 if it is negative. Words
    that the tokenizer divides have no probability at one mask: they are found in texts, but not
    summed, and counted in a warning. In a sentence longer than the model reads, the tokens around
    the mask are read.

    Args:
        model: A masked language model: a folder, an installed package, or a model of the Hugging
            Face hub.
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
        candidates: What stands for a group: ``names``, its name, as BiasMeter's released code
            has it, or ``words``, the sum over its words.
        neutral: Divides the probability of a group by its mean q in the neutral sentences of the
            word list: ``ratio`` by q, ``log_ratio`` by ln(1 + q) as in the released code.

    Raises:
        MissingFile: The model or the word list is not found, or the model has no head: all weights
            that are missing are named.
        MalformedLine: The word list is invalid.
        UnknownName: The word list does not have a kind.
        UnknownColumn: The items have no such column, or it holds numbers.
        NothingLeft: The column is empty.
        Contradiction: The tokenizer has no mask token, or one token for two groups.
        OutOfRange: The tokenizer divides every candidate of a group.

    Source:
        Al Nahadi, "Exploring children's exposure to stereotypes via recommender systems", MSc
        thesis, TU Delft 2023, section 3.3.2; Gaci et al. 2022 (BiasMeter).
    """

    libraries: ClassVar[tuple[str, ...]] = ("torch", "transformers", "tokenizers")
    after_evaluation: ClassVar[frozenset[str]] = frozenset(
        {"from", "threshold", "strict", "missing", "tokens_per_batch"}
    )

    model: ModelName = "bert-base-uncased"
    from_: str
    kinds: tuple[str, ...] = ()
    groups: InputFile | None = None
    score: GroupScore = "difference"
    threshold: Annotated[float, Interval(ge=-1, le=1)] = 0.7
    strict: bool = True
    missing: Literal["zero", "undefined"] = "zero"
    revision: str | None = None
    device: Device = "auto"
    tokens_per_batch: Annotated[int, Gt(0), EXECUTION] = 4096
    max_group_words: Annotated[int, Gt(0)] = 100
    candidates: Candidates = "names"
    neutral: Neutral = "none"

    def __post_init__(self) -> None:
        """Select all kinds of the word list by default; see ``load_group_words`` for errors."""
        words = load_group_words(self.groups)
        kinds = words.select(self.kinds).kinds if self.kinds else words.kinds
        object.__setattr__(self, "kinds", kinds)

    def model_files(self) -> Sequence[Path]:
        """Return the files of a local model; none for one of the hub."""
        return list_model_files(self.model)

    def label(self, items: Attributes, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return the labels and grades of each kind; ``rng`` is unused."""
        return label_texts(self, None, items)

    def texts(self, items: Attributes) -> Ids:
        """Return the text of each item, None where there is none.

        Raises:
            UnknownColumn: The items have no such column, or it holds numbers.
            NothingLeft: No item has a text.
        """
        column = read_cells(items, self.from_)
        is_text = column.map(lambda cell: isinstance(cell, str) and bool(cell.strip()))
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
        model = load_model(self.model, self.revision, kind="masked", device=self.device)
        scorer = MaskedGroups(model, words, self.candidates, self.neutral, self.tokens_per_batch)
        scorer.check()
        start = 0
        report_progress("texts", start, len(texts))
        while start < len(texts):
            sizes = np.cumsum([len(text) for text in texts[start : start + 4096]])
            n = max(1, int(np.searchsorted(sizes, _CHARACTERS_PER_BLOCK, side="right")))
            with report_part("texts", start, start + n, len(texts)):
                values = self._evaluate_block(texts[start : start + n], words, scorer)
            yield values
            start += n

    def _evaluate_block(
        self, texts: Sequence[str], words: GroupWords, scorer: MaskedGroups
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
        return np.asarray(values.round(_DECIMALS))

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
        columns: dict[str, FloatArray] = {}
        for at, kind in enumerate(self.kinds):
            certainty, n_sentences = values[:, 2 * at], values[:, 2 * at + 1]
            columns |= _grade(self, kind, certainty, ~(n_sentences > 0), _ROUNDING)
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


_ROUNDING_SENTENCES = 1e-12


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """Label items by the scores of their sentences, from any model that scores sentences.

        x and y together:  x + y - x y  (both ≥ 0),  x + y + x y  (both ≤ 0),
                           (x + y) / (1 - min(|x|, |y|))  (opposite signs)
        label = 1 if the scores of all sentences together > threshold else 0

    The file (CSV, TSV or JSON lines, also with ``.gz``, or Parquet) has one row per sentence:
    ``item_id``, ``score`` from -1 (against the stereotype) to 1 (a stereotype) and, if there are
    several stereotypes, ``kind`` (gender, race, ...); other columns are ignored. The order of the
    rows does not matter. The rule is 0/0 for a sentence of exactly 1 and one of exactly -1: their
    combined score is 0 here, whatever the others are. Beside the label of each kind there is its
    grade, ``gender_score``: the combined score, 0 if it is negative. Rows of items that the
    dataset lacks are excluded; they and items without a sentence are counted in a warning.

    Args:
        path: The file.
        threshold: The combined score from which an item is labelled.
        strict: Label above the threshold only, not at it. Scores closer than 1e-12 are at it.
        kind: What the scores describe if the file has no column ``kind``.
        missing: The label of an item without a sentence: ``zero`` as in the paper, or
            ``undefined``.

    Raises:
        MissingFile: The file does not exist.
        UnknownColumn: A column is missing.
        WrongType: The file is of another type.
        MalformedLine: A line does not fit, a score is not a number from -1 to 1, or a cell is
            empty.
        UnknownIdentifier: None of its items is in the dataset.

    Source:
        Al Nahadi, "Exploring children's exposure to stereotypes via recommender systems", MSc
        thesis, TU Delft 2023, section 3.3.2; Shortliffe and Buchanan, "A model of inexact
        reasoning in medicine", Mathematical Biosciences 1975.
    """

    libraries: ClassVar[tuple[str, ...]] = ()

    path: InputFile
    threshold: Annotated[float, Interval(ge=-1, le=1)] = 0.7
    strict: bool = True
    kind: str = "stereotype"
    missing: Literal["zero", "undefined"] = "zero"

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds in the file, sorted."""
        return tuple(sorted(set(read_scores(self.path, self.kind)["kind"])))

    def label(self, items: Attributes, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return the labels and grades of each kind; ``rng`` is unused."""
        table = read_scores(self.path, self.kind)
        ids = table["item_id"].to_numpy(dtype=object)
        check_ids(pd.unique(ids), items.ids, "items", str(self.path))
        codes = items.ids.find(ids)
        in_dataset = codes >= 0
        n_items = len(items.ids)
        columns: dict[str, FloatArray] = {}
        for kind in sorted(set(table["kind"])):
            of_kind = in_dataset & (table["kind"] == kind).to_numpy()
            item_codes = codes[of_kind]
            certainty = certainty_factor(table["score"].to_numpy()[of_kind], item_codes, n_items)
            is_empty = np.bincount(item_codes, minlength=n_items) == 0
            columns |= _grade(self, kind, certainty, is_empty, _ROUNDING_SENTENCES)
            if is_empty.any():
                outcome = "labelled 0" if self.missing == "zero" else "given no label"
                counts = f"{int(is_empty.sum()):,} of {n_items:,} items"
                warn(f"{self.path.name}: {counts} have no sentence on {kind}: {outcome}")
        return columns


def read_scores(path: Path, kind: str) -> pd.DataFrame:
    """Return a table of sentence scores: ``item_id`` and ``kind`` as text, ``score`` float64.

    Args:
        path: The file.
        kind: What the scores describe if the file has no column ``kind``.

    Raises:
        MissingFile: The file does not exist.
        UnknownColumn: ``item_id`` or ``score`` is missing.
        WrongType: The file is of another type.
        MalformedLine: A line does not fit, a score is not a number from -1 to 1, or a cell is
            empty.
    """
    table = read_text_table(path)
    table.need("item_id", "score")
    cells = pd.Series(table.texts("score"))
    scores = pd.to_numeric(cells, errors="coerce").astype(np.float64)
    invalid = np.flatnonzero(~scores.between(-1, 1))
    if invalid.size:
        row = int(invalid[0])
        message = f"score is not a number from -1 to 1: {cells.iloc[row]!r}"
        raise MalformedLine(message, where=table.place(row))
    kinds = table.ids("kind") if "kind" in table.columns else kind
    return pd.DataFrame({"item_id": table.ids("item_id"), "kind": kinds, "score": scores})
