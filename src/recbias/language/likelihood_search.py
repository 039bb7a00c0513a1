"""The most probable of many texts, found without evaluating all tokens of all texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.language.likelihood import Context, TextScorer
from recbias.language.prefix_trees import MAX_NODES, build_prefix_trees

LENGTHS = (3, 6)
"""The numbers of first tokens by which texts are excluded."""

TOLERANCES = {"float32": 1e-4, "bfloat16": 0.05}
"""By how much an upper bound may be below the score for lack of precision."""


@dataclass(frozen=True, eq=False)
class TextSearch:
    """Finds the texts with the highest scores after any number of contexts.

        score(text) = (1/m) Σ_j ln p(token j) ≤ (1/m) Σ_(j ≤ l) ln p(token j)    for l ≤ m

    since no logarithm of a probability exceeds 0. The first 3, then 6, tokens of texts give upper
    bounds of their scores; a text whose bound is below the k-th highest score so far is excluded.

    Args:
        scorer: The texts and the model.
    """

    scorer: TextScorer

    def score_best(
        self, context: str, k: int, *, excluded: BoolArray, offsets: FloatArray | None = None
    ) -> FloatArray:
        """Return the scores of the ``k`` best texts, ``float64[n]``.

        Of the other texts, those that had to be scored have their scores, and all others -inf.

        Args:
            context: The text before.
            k: The number of texts.
            excluded: Texts that are not searched, ``bool[n]``.
            offsets: What is subtracted from the score of each text, ``float64[n]``.

        Raises:
            OutOfRange: As ``TextScorer.score``.
        """
        n_tokens = np.array([len(text) for text in self.scorer.texts])
        penalties = np.zeros(n_tokens.size) if offsets is None else offsets
        evaluated = self.scorer.read_context(context)
        scores = np.full(n_tokens.size, -np.inf)
        rows, threshold = np.flatnonzero(~excluded), -np.inf

        def score_rows(block: AnyArray) -> float:
            totals = self._sum_first_tokens(block, None, evaluated)
            scores[block] = totals / n_tokens[block] - penalties[block]
            return _select_kth_largest(scores, k) - self._tolerance

        for length in LENGTHS:
            totals = self._sum_first_tokens(rows, length, evaluated)
            guesses = totals / np.minimum(length, n_tokens[rows]) - penalties[rows]
            bounds = totals / n_tokens[rows] - penalties[rows]
            order = np.argsort(-guesses, kind="stable")
            best = next(self._divide(rows[order]), rows[:0])
            threshold = score_rows(best)
            rows = rows[(bounds >= threshold) & np.isneginf(scores[rows])]
        for block in self._divide(rows):
            score_rows(block)
        return scores

    @property
    def _tolerance(self) -> float:
        return TOLERANCES[str(self.scorer.model.network.dtype).removeprefix("torch.")]

    def _sum_first_tokens(
        self, rows: AnyArray, length: int | None, context: Context
    ) -> FloatArray:
        """Return the log-probability of the first tokens of some texts; None for all tokens."""
        texts = [self.scorer.texts[row][:length] for row in rows]
        scorer = replace(self.scorer, texts=texts, trees=build_prefix_trees(texts))
        return scorer.sum_trees(scorer.trees, context)

    def _divide(self, rows: AnyArray) -> Iterator[AnyArray]:
        """Yield rows in blocks of about one tree."""
        if rows.size:
            n_nodes = np.cumsum([len(self.scorer.texts[row]) - 1 for row in rows])
            yield from np.split(rows, np.flatnonzero(np.diff(n_nodes // MAX_NODES)) + 1)


def _select_kth_largest(scores: FloatArray, k: int) -> float:
    return float(np.partition(scores, -k)[-k]) if scores.size >= k else -np.inf
