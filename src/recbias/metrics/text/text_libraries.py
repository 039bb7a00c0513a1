"""BLEU from sacrebleu and ROUGE-L from rouge-score, the extra ``recbias[text]``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Ids
from recbias.numerics.texts.text_overlap import Tokens, tokenize


def count_bleu_statistics(texts: Ids, references: Ids, *, n: int, tokenize: str) -> AnyArray:
    """Return the counts that BLEU sums over responses, one row per response.

    Returns:
        ``int64[r, 2 n + 2]``: the matching m-grams for m = 1 to n, all m-grams, and the lengths of
        the response and of its reference.
    """
    from sacrebleu.metrics import BLEU

    scorer = BLEU(tokenize=tokenize, max_ngram_order=n, effective_order=True, force=True)
    rows = []
    for text, reference in zip(texts, references, strict=True):
        score = scorer.sentence_score(text, [reference])
        rows.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
    return np.array(rows, dtype=np.int64).reshape(len(rows), 2 * n + 2)


def compute_bleu(sums: AnyArray, n: int) -> float:
    """Return BLEU from the sums of these counts, 0 to 100.

    >>> round(compute_bleu(np.array([3, 1, 4, 3, 4, 4]), 2), 2)  # 100 * sqrt(3/4 * 1/3)
    50.0
    """
    from sacrebleu.metrics import BLEU

    counts = [int(count) for count in sums]
    score = BLEU.compute_bleu(
        counts[:n],
        counts[n : 2 * n],
        counts[2 * n],
        counts[2 * n + 1],
        smooth_method="exp",
        max_ngram_order=n,
    )
    return min(float(score.score), 100.0)  # rounding can exceed 100 in the last digit


def rouge_l(
    texts: Iterable[str], references: Iterable[str], tokens: Literal["rouge"] | Tokens
) -> FloatArray:
    """Return ROUGE-L (F1) of each response, ``float64[r]``; NaN where a reference has no token.

    >>> rouge_l(["the cat sat"], ["the dog sat"], "words").round(4).tolist()
    [0.6667]
    """
    from rouge_score import rouge_scorer
    from rouge_score.tokenizers import DefaultTokenizer

    tokenizer = DefaultTokenizer() if tokens == "rouge" else _Tokenizer(tokens)
    scorer = rouge_scorer.RougeScorer(["rougeL"], tokenizer=tokenizer)
    return np.array(
        [
            scorer.score(reference, text)["rougeL"].fmeasure
            if tokenizer.tokenize(reference)
            else np.nan
            for text, reference in zip(texts, references, strict=True)
        ],
        dtype=np.float64,
    )


class _Tokenizer:
    """The tokens of recbias through the interface of a tokenizer of rouge-score."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens

    def tokenize(self, text: str) -> list[str]:
        return tokenize(text, self.tokens)
