"""Labels by a chat model that reads a text of each item: judgements, and their agreement."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from annotated_types import Ge, Interval, MinLen

from recbias.core.context import record_fact, warn
from recbias.core.dataset import AnyArray, Attributes, BoolArray, FloatArray, Ids
from recbias.core.errors import NothingLeft, OutOfRange, UnknownName, at_setting
from recbias.core.plugins import InputFile, PlannedRequest
from recbias.core.text import make_printable, suggest
from recbias.detectors.names import read_cells
from recbias.language.client import complete, plan_requests
from recbias.language.endpoints import ChatReply, ChatRequest, LanguageModel
from recbias.language.prompts import Rubric
from recbias.language.reply_labels import READ, Form, make_label_schema, read_labels
from recbias.statistics.agreement import krippendorff_alpha

_ROUNDING = 1e-12
_SHOWN = 80
"""The length of a reply in an error."""


@dataclass(frozen=True, eq=False)
class _ItemTexts:
    """The texts of items, each distinct one once.

    Args:
        texts: The distinct texts, cut to a length.
        codes: The text of each item, -1 without one, ``int64[n_items]``.
        is_cut: Whether the text of the item was cut, ``bool[n_items]``.
    """

    texts: tuple[str, ...]
    codes: AnyArray
    is_cut: BoolArray


def _cut_texts(column: pd.Series[Any], max_chars: int | None) -> _ItemTexts:
    """Return the texts of a column; blank cells are missing.

    Args:
        column: The text of each item.
        max_chars: The length at which a text is cut, at the end of a word; None for no limit.

    >>> texts = _cut_texts(pd.Series(["A long journey", None, " ", "A quiet"]), 8)
    >>> texts.texts, texts.codes.tolist(), texts.is_cut.tolist()
    (('A long', 'A quiet'), [0, -1, -1, 1], [True, False, False, False])
    """
    full = column.astype("object").reset_index(drop=True)
    stripped = full.map(lambda cell: str(cell).strip() or None, na_action="ignore")
    cut = stripped.map(lambda text: _cut(text, max_chars), na_action="ignore")
    codes, texts = pd.factorize(cut)
    is_cut = (cut.str.len() < stripped.str.len()).to_numpy(dtype=np.bool_) & (codes >= 0)
    return _ItemTexts(tuple(texts), codes, is_cut)


def _cut(text: str, max_chars: int | None) -> str:
    if max_chars is None or len(text) <= max_chars:
        return text
    words = text[: max_chars + 1].rsplit(maxsplit=1)
    return words[0] if len(words) > 1 else text[:max_chars]


@dataclass(frozen=True, eq=False)
class _Judgements:
    """What a chat model replied about texts.

    Args:
        replies: The replies, all texts of the first sample before those of the second.
        readings: How each reply was read, or why not, ``object[samples, texts]``.
        probabilities: Those of each kind, NaN where a reply was not read or does not state one
            value of the kind, ``float64[samples, texts]``.
    """

    replies: Sequence[ChatReply]
    readings: AnyArray
    probabilities: Mapping[str, FloatArray]

    def scores(self, kind: str) -> FloatArray:
        """Return the mean probability of a kind over the samples that were read, NaN if none."""
        values = self.probabilities[kind]
        n_read = (~np.isnan(values)).sum(axis=0)
        total = np.nansum(values, axis=0)
        scores: FloatArray = np.divide(
            total, n_read, out=np.full(total.size, np.nan), where=n_read > 0
        )
        return scores

    def report(self, threshold: float, *, unread: str) -> None:
        """Record the readings and agreement as facts, and warn of replies that were not read.

        Args:
            threshold: The least probability that is labelled 1.
            unread: What becomes of items without a reply that was read.

        Raises:
            NothingLeft: No reply was read.
        """
        counts = Counter(self.readings.ravel().tolist())
        for reading, n in sorted(counts.items()):
            record_fact(f"readings.{reading}", n)
        causes = {reading: n for reading, n in counts.most_common() if reading not in READ}
        described = ", ".join(f"{n:,} {reading}" for reading, n in causes.items())
        if not counts.keys() - causes.keys():
            example = make_printable(self.replies[0].text, _SHOWN)
            message = f"none of {len(self.replies):,} replies can be read ({described}): {example}"
            remedy = "use reading: lenient, a rubric that says how to answer, or another model"
            raise NothingLeft(message, where="llm", remedy=remedy)
        if causes:
            n_without = int((~np.isin(self.readings, READ)).all(axis=0).sum())
            replies = f"{sum(causes.values()):,} of {len(self.replies):,} replies"
            outcome = f"texts without another reply: {n_without:,}, {unread}"
            warn(f"{replies} cannot be read ({described}); {outcome}")
        n_read = sum(counts[reading] for reading in READ)
        for kind, values in self.probabilities.items():
            n_unstated = n_read - int(np.count_nonzero(~np.isnan(values)))
            record_fact(f"unstated.{kind}", n_unstated)
            if n_unstated:
                replies = f"{n_unstated:,} of {n_read:,} replies that were read"
                n_without = int(np.isnan(self.scores(kind)).sum())
                outcome = f"texts without another value, of all texts: {n_without:,}, {unread}"
                warn(f"{replies} do not state one value of {kind}; {outcome}")
            labels = _mark_labelled(values, threshold)
            record_fact(
                f"labelled.{kind}", int((self.scores(kind) >= threshold - _ROUNDING).sum())
            )
            if len(values) > 1:
                _record(f"agreement.{kind}.share", _share_equal(labels))
                _record(f"agreement.{kind}.alpha", krippendorff_alpha(labels))
                _record(
                    f"agreement.{kind}.alpha_of_probabilities",
                    krippendorff_alpha(values, "interval"),
                )

    def tabulate(self, texts: _ItemTexts, ids: Ids, threshold: float) -> pd.DataFrame:
        """Return a row for each item with a text and each sample, in the order of the items."""
        n_samples, n_texts = self.readings.shape
        items = np.repeat(np.flatnonzero(texts.codes >= 0), n_samples)
        samples = np.tile(np.arange(n_samples), items.size // n_samples)
        at = samples * n_texts + texts.codes[items]
        columns = {
            "item_id": ids[items],
            "sample": samples,
            "reply": np.array([reply.text for reply in self.replies], dtype=object)[at],
            "outcome": np.array([reply.outcome for reply in self.replies], dtype=object)[at],
            "reading": self.readings.ravel()[at],
            "cut": texts.is_cut[items],
            "cached": np.array([reply.cached for reply in self.replies])[at],
        }
        for kind, values in self.probabilities.items():
            columns[f"probability.{kind}"] = values.ravel()[at]
            columns[f"label.{kind}"] = _mark_labelled(values, threshold).ravel()[at]
        return pd.DataFrame(columns)


def _read_judgements(
    replies: Sequence[ChatReply], words: Mapping[str, Sequence[str]], form: Form, samples: int
) -> _Judgements:
    """Read replies about texts.

    Args:
        replies: The replies, all texts of the first sample before those of the second.
        words: The words by which a reply may name each kind.
        form: The replies that are read.
        samples: How many replies there are about each text.
    """
    shape = (samples, len(replies) // samples)
    readings = np.empty(len(replies), dtype=object)
    probabilities = {kind: np.full(len(replies), np.nan) for kind in words}
    for at, reply in enumerate(replies):
        if reply.outcome != "complete":
            readings[at] = reply.outcome
            continue
        stated = read_labels(reply.answer, words, form)
        readings[at] = stated.reading
        for kind, probability in stated.probabilities.items():
            probabilities[kind][at] = probability
    return _Judgements(
        replies,
        readings.reshape(shape),
        {kind: values.reshape(shape) for kind, values in probabilities.items()},
    )


def _mark_labelled(scores: FloatArray, threshold: float) -> FloatArray:
    """Return 1 where a score is at least the threshold, else 0; NaN stays.

    >>> _mark_labelled(np.array([0.69, 0.7, np.nan]), 0.7).tolist()
    [0.0, 1.0, nan]
    """
    return np.where(np.isnan(scores), np.nan, scores >= threshold - _ROUNDING)


def _share_equal(labels: FloatArray) -> float:
    """Return the share of pairs of samples of one text whose labels are equal.

    Args:
        labels: ``float64[samples, texts]``, NaN where a reply was not read.

    >>> round(_share_equal(np.array([[1.0, 0.0, 1.0], [1.0, 1.0, np.nan]])), 2)
    0.5
    """
    pairs = [(a == b, ~np.isnan(a + b)) for a, b in combinations(labels, 2)]
    n_pairs = sum(int(both.sum()) for _, both in pairs)
    return sum(int(equal.sum()) for equal, _ in pairs) / n_pairs if n_pairs else math.nan


def _record(name: str, value: float) -> None:
    record_fact(name, None if math.isnan(value) else value)


_TEXT = 1000
"""The number of characters of the text of an item where it is not known."""

_OUTCOMES = {"zero": "labelled 0", "undefined": "given no label"}


@dataclass(frozen=True, kw_only=True)
class LLMJudge:
    """Label items by the probabilities that a chat model states after reading a text of each.

        score = mean of p_s over the samples s that can be read,  label = 1 if score ≥ threshold

    Each text is sent by itself, between two lines with a marker that does not occur in it, so that
    an instruction in a text can change the reply about that item only. Beside the label of each
    kind there is its grade, ``gender_score``. Items without a text, texts that were cut, and
    replies that cannot be read are counted by cause in a warning. Each reply is stored like those
    of models, and asked for once. ``label_replies.jsonl`` of the run has every reply with how it
    was read and the label that follows.

    With several samples, the facts of the stage hold their agreement for each kind: the mean share
    of equal labels, and Krippendorff's alpha of labels and of probabilities. A reply states no
    certainty in a statistical sense: compare the labels with those of people on a sample of the
    items, by ``label_accuracy``, ``cohen_kappa`` and ``krippendorff_alpha``.

    Args:
        from_: The column of texts.
        llm: The chat model: ``{provider, model, base_url, temperature, max_tokens, ...}``.
        rubric: The packaged rubric ``stereotypes``, or a file with ``kinds`` and ``template``.
        kinds: The kinds of the rubric to ask for and to label.
        threshold: The least probability that is labelled 1.
        reading: Replies that are read: ``strict`` for a line ``kind: probability`` for each kind,
            the same as JSON, lines ``Stereotype: label, Probability: probability``, or 0 for none;
            ``lenient`` also for such lines within other text and with other words and numbers.
        samples: How often each text is sent.
        max_chars: The length at which a text is cut at the end of a word; null for no limit.
        unread: The label of an item none of whose replies can be read, because they are prose, a
            refusal, cut off or empty, or none of whose replies states one value of the kind:
            ``zero`` as in the thesis, or ``undefined``.
        missing: The label of an item without a text: ``zero`` or ``undefined``.

    Raises:
        UnknownColumn: The items have no such column, or it holds numbers.
        UnknownName: There is no such rubric, or the rubric has no such kind.
        OutOfRange: A kind is named twice.
        MalformedLine: The rubric has no kinds, or its template lacks the slot of the text.
        NothingLeft: No item has a text, or no reply can be read.
        RequestRefused: There is no key, or the server refuses all requests.
        MissingReplies: Replies are missing, and the network may not be used.
        BudgetSpent: The budget does not allow all requests.

    Source:
        The protocol: Al Nahadi, "Exploring children's exposure to stereotypes via recommender
        systems", MSc thesis, TU Delft 2023, section 3.3.3; the words of the rubric are our own.
    """

    libraries: ClassVar[tuple[str, ...]] = ()

    from_: str
    llm: LanguageModel
    rubric: Literal["stereotypes"] | InputFile = "stereotypes"
    kinds: Annotated[tuple[str, ...], MinLen(1)] = ("gender", "race", "religion")
    threshold: Annotated[float, Interval(ge=0, le=1)] = 0.7
    reading: Form = "lenient"
    samples: Annotated[int, Ge(1)] = 1
    max_chars: Annotated[int, Ge(1)] | None = 8000
    unread: Literal["zero", "undefined"] = "zero"
    missing: Literal["zero", "undefined"] = "zero"

    def __post_init__(self) -> None:
        """Refuse an invalid rubric and unknown kinds before any data is read."""
        with at_setting("rubric"):
            words = self.load_rubric().words
        for position, kind in enumerate(self.kinds):
            if kind not in words:
                message = f"the rubric has no kind {kind!r}"
                remedy = f"{suggest(kind, words)}: write kinds: [{', '.join(words)}]"
                raise UnknownName(message, where="kinds", remedy=remedy)
            if kind in self.kinds[:position]:
                raise OutOfRange(f"the kind {kind!r} is named twice", where="kinds")

    def model_files(self) -> tuple[Path, ...]:
        """Return the files of a model that runs in the process."""
        return self.llm.list_files()

    def load_rubric(self) -> Rubric:
        """Return the rubric."""
        return Rubric.find(str(self.rubric))

    def plan_label_requests(self, items: Attributes) -> list[PlannedRequest]:
        """Return the requests of ``label``, without sending any."""
        return plan_requests(self._build_requests(self._read_texts(items)), self.llm)

    def label(self, items: Attributes, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return the labels and grades of each kind; ``rng`` is unused: the model samples."""
        return self.label_with_replies(items)[0]

    def label_with_replies(
        self, items: Attributes
    ) -> tuple[Mapping[str, FloatArray], pd.DataFrame]:
        """Return the labels and grades of each kind, and a row for each item and sample."""
        texts = self._read_texts(items)
        self._report_texts(texts)
        replies = complete(self._build_requests(texts), self.llm)
        words = self.load_rubric().words
        judged = {kind: words[kind] for kind in self.kinds}
        judgements = _read_judgements(replies, judged, self.reading, self.samples)
        judgements.report(self.threshold, unread=_OUTCOMES[self.unread])
        columns: dict[str, FloatArray] = {}
        for kind in self.kinds:
            scores = judgements.scores(kind)
            unread = np.isnan(scores)
            fill = 0.0 if self.unread == "zero" else np.nan
            labels = np.where(unread, fill, _mark_labelled(scores, self.threshold))
            columns[kind] = self._spread(labels, texts)
            columns[f"{kind}_score"] = self._spread(np.where(unread, fill, scores), texts)
        return columns, judgements.tabulate(texts, items.ids.ids, self.threshold)

    def _read_texts(self, items: Attributes) -> _ItemTexts:
        texts = _cut_texts(read_cells(items, self.from_), self.max_chars)
        if not texts.texts:
            raise NothingLeft(f"no item has a text in {self.from_!r}", where="from")
        return texts

    def _report_texts(self, texts: _ItemTexts) -> None:
        n_items, n_missing = texts.codes.size, int(np.count_nonzero(texts.codes < 0))
        n_cut = int(np.count_nonzero(texts.is_cut))
        record_fact("items_without_text", n_missing)
        record_fact("texts_cut", n_cut)
        if n_missing:
            outcome = _OUTCOMES[self.missing]
            warn(f"{n_missing:,} of {n_items:,} items have no {self.from_!r}: {outcome}")
        if n_cut:
            warn(f"{n_cut:,} of {n_items:,} texts are cut to {self.max_chars:,} characters")
        if self.samples > 1 and self.llm.temperature == 0:
            warn(f"{self.samples} samples at temperature 0 differ little: set llm: temperature")

    def _build_requests(self, texts: _ItemTexts) -> list[ChatRequest]:
        """Return the requests, all texts of the first sample before those of the second."""
        rubric = self.load_rubric()
        schema = make_label_schema(self.kinds)
        messages = [rubric.render(text, self.kinds) for text in texts.texts]
        return [
            self.llm.build_request([message], sample=sample, response_schema=schema)
            for sample in range(self.samples)
            for message in messages
        ]

    def _spread(self, values: FloatArray, texts: _ItemTexts) -> FloatArray:
        """Return the value of the text of each item, ``float64[n_items]``."""
        fill = 0.0 if self.missing == "zero" else np.nan
        return np.append(values, fill)[texts.codes]
