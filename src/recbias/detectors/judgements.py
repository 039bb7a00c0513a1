"""Judgements of texts by a chat model: its replies, how they were read, and their agreement."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, BoolArray, FloatArray, Ids
from recbias.core.errors import NothingLeft
from recbias.core.printable import make_printable
from recbias.core.stage_context import record_fact, warn
from recbias.language.chat.requests import ChatReply
from recbias.language.replies.label_reading import READ, Form, read_labels
from recbias.statistics.rater_agreement import krippendorff_alpha

_ROUNDING = 1e-12
_SHOWN = 80
"""The length of a reply in an error."""


@dataclass(frozen=True, eq=False)
class ItemTexts:
    """The texts of items, each distinct one once.

    Args:
        texts: The distinct texts, cut to a length.
        codes: The text of each item, -1 without one, ``int64[n_items]``.
        is_cut: Whether the text of the item was cut, ``bool[n_items]``.
    """

    texts: tuple[str, ...]
    codes: AnyArray
    is_cut: BoolArray


def cut_texts(column: pd.Series[Any], max_chars: int | None) -> ItemTexts:
    """Return the texts of a column; blank cells are missing.

    Args:
        column: The text of each item.
        max_chars: The length at which a text is cut, at the end of a word; None for no limit.

    >>> texts = cut_texts(pd.Series(["A long journey", None, " ", "A quiet"]), 8)
    >>> texts.texts, texts.codes.tolist(), texts.is_cut.tolist()
    (('A long', 'A quiet'), [0, -1, -1, 1], [True, False, False, False])
    """
    full = column.astype("object").reset_index(drop=True)
    stripped = full.map(lambda cell: str(cell).strip() or None, na_action="ignore")
    cut = stripped.map(lambda text: _cut(text, max_chars), na_action="ignore")
    codes, texts = pd.factorize(cut)
    is_cut = (cut.str.len() < stripped.str.len()).to_numpy(dtype=np.bool_) & (codes >= 0)
    return ItemTexts(tuple(texts), codes, is_cut)


def _cut(text: str, max_chars: int | None) -> str:
    if max_chars is None or len(text) <= max_chars:
        return text
    words = text[: max_chars + 1].rsplit(maxsplit=1)
    return words[0] if len(words) > 1 else text[:max_chars]


@dataclass(frozen=True, eq=False)
class Judgements:
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
            labels = mark_labelled(values, threshold)
            record_fact(
                f"labelled.{kind}", int((self.scores(kind) >= threshold - _ROUNDING).sum())
            )
            if len(values) > 1:
                _record(f"agreement.{kind}.share", share_equal(labels))
                _record(f"agreement.{kind}.alpha", krippendorff_alpha(labels))
                _record(
                    f"agreement.{kind}.alpha_of_probabilities",
                    krippendorff_alpha(values, "interval"),
                )

    def tabulate(self, texts: ItemTexts, ids: Ids, threshold: float) -> pd.DataFrame:
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
            columns[f"label.{kind}"] = mark_labelled(values, threshold).ravel()[at]
        return pd.DataFrame(columns)


def read_judgements(
    replies: Sequence[ChatReply], words: Mapping[str, Sequence[str]], form: Form, samples: int
) -> Judgements:
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
    return Judgements(
        replies,
        readings.reshape(shape),
        {kind: values.reshape(shape) for kind, values in probabilities.items()},
    )


def mark_labelled(scores: FloatArray, threshold: float) -> FloatArray:
    """Return 1 where a score is at least the threshold, else 0; NaN stays.

    >>> mark_labelled(np.array([0.69, 0.7, np.nan]), 0.7).tolist()
    [0.0, 1.0, nan]
    """
    return np.where(np.isnan(scores), np.nan, scores >= threshold - _ROUNDING)


def share_equal(labels: FloatArray) -> float:
    """Return the share of pairs of samples of one text whose labels are equal.

    Args:
        labels: ``float64[samples, texts]``, NaN where a reply was not read.

    >>> round(share_equal(np.array([[1.0, 0.0, 1.0], [1.0, 1.0, np.nan]])), 2)
    0.5
    """
    pairs = [(a == b, ~np.isnan(a + b)) for a, b in combinations(labels, 2)]
    n_pairs = sum(int(both.sum()) for _, both in pairs)
    return sum(int(equal.sum()) for equal, _ in pairs) / n_pairs if n_pairs else math.nan


def _record(name: str, value: float) -> None:
    record_fact(name, None if math.isnan(value) else value)
