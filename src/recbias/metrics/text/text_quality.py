"""Quality and diversity of the responses of a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import track_progress, warn
from recbias.metrics.resampled_estimates import build_estimate, estimate_from_totals
from recbias.metrics.text.response_metrics import (
    ResponseMetric,
    get_responses,
    get_texts_and_references,
    measure_mean,
    warn_of_undivided_texts,
)
from recbias.metrics.text.text_libraries import (
    compute_bleu,
    count_bleu_statistics,
    rouge_l,
)
from recbias.numerics.texts.text_overlap import Tokens, count_ngrams, tokenize, unigram_f1
from recbias.statistics.bootstrap.set_bootstrap import sample_jackknife

Tokenizer: TypeAlias = Literal["13a", "zh", "char", "intl", "none"]
"""The name of a tokenizer of sacrebleu."""

BLOCK = 500
"""Number of responses between two progress reports."""


@dataclass(frozen=True, kw_only=True)
class BLEU(ResponseMetric):
    """The n-gram overlap of all responses with their references.

        BLEU = 100 · min(1, exp(1 - r/c)) · exp( (1/n) Σ_{m ≤ n} ln p_m )

    p_m is the share of the m-grams of the responses that also occur in their reference, each
    counted at most as often as in the reference; c is the number of tokens of all responses and r
    of all references. It is the corpus BLEU of sacrebleu with ``exp`` smoothing: an order without
    a match gets a precision that is halved with each such order.

    A response without a reference is excluded and counted in ``undefined``; an empty response has
    no n-gram and lowers c. Undefined where no response has a reference. The interval and the tests
    come from bootstrap samples of the responses, the same for every model.

    Args:
        n: The maximum n-gram order: 4 for BLEU-4, 2 for BLEU-2.
        tokenize: The tokenizer of sacrebleu: ``13a`` for European languages, ``zh`` for Chinese,
            ``char`` for characters, ``intl``, or ``none`` to split at white space only. References
            in Chinese, Japanese or Thai of which a clause is one token are counted in a warning.

    Range:
        0 to 100; undefined where no response has a reference.

    Source:
        Papineni, Roukos, Ward and Zhu, "BLEU", ACL 2002; Post, "A call for clarity in reporting
        BLEU scores", WMT 2018.
    """

    libraries: ClassVar[tuple[str, ...]] = ("sacrebleu",)
    direction: ClassVar[Direction] = "higher"
    unit = ""

    n: Annotated[int, Gt(0)] = 4
    tokenize: Tokenizer = "13a"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate with its bootstrap samples."""
        from scipy.sparse import csr_array

        texts, references, has_reference = get_texts_and_references(evidence)
        statistics = count_bleu_statistics(
            texts[has_reference], references[has_reference], n=self.n, tokenize=self.tokenize
        )
        remedy = "for Chinese use tokenize: zh, for other such scripts tokenize: char"
        warn_of_undivided_texts(evidence, references[has_reference], statistics[:, -1], remedy)
        return estimate_from_totals(
            evidence,
            csr_array(statistics),
            lambda sums: np.apply_along_axis(compute_bleu, -1, sums, self.n),
            n_excluded=int(np.count_nonzero(~has_reference)),
        )


@dataclass(frozen=True, kw_only=True)
class Distinct(ResponseMetric):
    """The diversity of the responses: the share of distinct n-grams.

        Dist-n = distinct n-grams / all n-grams,    over all responses together

    Undefined where no response has n tokens. Responses too short for an n-gram are counted in
    ``undefined``. The value decreases with the number of responses, so compare models on equally
    many. The interval and the tests come from the jackknife, the values without each response in
    turn: a bootstrap sample repeats responses, which biases the number of distinct n-grams.

    Args:
        n: The n-gram order: 1 for Dist-1, 2 for Dist-2.
        tokens: ``words`` split at white space, or ``characters`` (for Chinese); case is kept.

    Range:
        0 to 1; undefined where no response has n tokens.

    Source:
        Li, Galley, Brockett, Gao and Dolan, "A diversity-promoting objective function for neural
        conversation models", NAACL 2016.
    """

    direction: ClassVar[Direction] = "higher"
    unit = ""

    n: Annotated[int, Gt(0)] = 2
    tokens: Tokens = "words"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate with samples from the jackknife."""
        texts = [tokenize(text, self.tokens) for text in get_responses(evidence).texts]
        counts: Any = count_ngrams(texts, self.n)
        has_ngram = counts.sum(axis=1) > 0
        distinct, samples = np.nan, np.full(evidence.n_bootstrap, np.nan)
        if has_ngram.any():
            distinct, without = _count_distinct(counts)
            samples = sample_jackknife(distinct, without, evidence.n_bootstrap, evidence.rng())
        return [build_estimate(distinct, samples, int(has_ngram.sum()), has_ngram.size)]


@dataclass(frozen=True, kw_only=True)
class RougeL(ResponseMetric):
    """The longest common subsequence of a response and its reference.

        ROUGE-L = 2 P R / (P + R),    P = LCS(x, y) / |x|,    R = LCS(x, y) / |y|

    x is the response, y its reference, LCS the length of their longest common subsequence of
    tokens. 0 for an empty response. Undefined where the reference is missing or has no token.

    Args:
        tokens: ``rouge`` for the tokens of rouge-score (lower-case ASCII letters and digits, split
            at all other characters), ``words`` split at white space, or ``characters`` (for
            Chinese); the last two keep case.

    Range:
        0 to 1; undefined where the reference has no token.

    Source:
        Lin, "ROUGE: a package for automatic evaluation of summaries", ACL workshop 2004,
        section 3.
    """

    libraries: ClassVar[tuple[str, ...]] = ("rouge-score",)
    direction: ClassVar[Direction] = "higher"

    tokens: Literal["rouge"] | Tokens = "rouge"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the mean over the responses."""
        texts, references, has_reference = get_texts_and_references(evidence)
        values = np.full(texts.size, np.nan)
        rows = np.flatnonzero(has_reference)
        for block in track_progress(np.array_split(rows, rows.size // BLOCK + 1), "ROUGE-L"):
            values[block] = rouge_l(texts[block], references[block], self.tokens)
        if n_empty := int(np.isnan(values[rows]).sum()):
            message = f"{n_empty:,} references have no token of tokens: {self.tokens}"
            warn(f"{evidence.metric}: {message}; for other than Latin letters use characters")
        return [measure_mean(evidence, values)]


@dataclass(frozen=True, kw_only=True)
class UnigramF1(ResponseMetric):
    """The overlap of the tokens of a response and its reference, in any order.

        F1 = 2 |x ∩ y| / (|x| + |y|)

    x are the tokens of the response and y those of its reference, as multisets. Case and
    punctuation count: ``street.`` is neither ``street`` nor ``Street.``, unlike in ``ROUGE-L``,
    whose default tokens are in lower case and without punctuation. 0 for an empty response.
    Undefined where the reference is missing or has no token. References in Chinese, Japanese or
    Thai of which a clause is one token are counted in a warning.

    Args:
        tokens: ``words`` split at white space, or ``characters`` (for Chinese), as in
            ``distinct``.

    Range:
        0 to 1; undefined where the reference has no token.

    Source:
        van Rijsbergen, "Information Retrieval", 2nd edition, 1979, chapter 7; for dialogue: Zhao
        et al., CHBias, ACL 2023, section 5.3.
    """

    direction: ClassVar[Direction] = "higher"

    tokens: Tokens = "words"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the mean over the responses."""
        texts, references, has_reference = get_texts_and_references(evidence)
        tokens_of_responses, tokens_of_references = (
            [tokenize(text, self.tokens) for text in np.where(has_reference, column, "")]
            for column in (texts, references)
        )
        n_tokens = np.array([len(tokens) for tokens in tokens_of_references])[has_reference]
        remedy = "use tokens: characters"
        warn_of_undivided_texts(evidence, references[has_reference], n_tokens, remedy)
        return [measure_mean(evidence, unigram_f1(tokens_of_responses, tokens_of_references))]


def _count_distinct(counts: Any) -> tuple[float, FloatArray]:
    """Return the share of distinct n-grams in all responses, and without each, ``float64[m]``."""
    totals, lengths = counts.sum(axis=0), counts.sum(axis=1)
    only_there = counts.copy()
    only_there.data = (counts.data == totals[counts.indices]).astype(np.int64)
    n, n_distinct = int(totals.sum()), int(np.count_nonzero(totals))
    n_without = n - lengths
    undefined = np.full(lengths.shape, np.nan)
    distinct = n_distinct - only_there.sum(axis=1)
    return n_distinct / n, np.divide(distinct, n_without, out=undefined, where=n_without > 0)
