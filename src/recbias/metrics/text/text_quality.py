"""Quality and diversity of the responses of a language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.measurements.scores import Direction, Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.sentences import Responses
from recbias.core.stage_context import track_progress, warn
from recbias.metrics.text.text_libraries import (
    compute_bleu,
    count_bleu_statistics,
    require_package,
    rouge_l,
)
from recbias.numerics.text_overlap import Tokens, count_ngrams, tokenize, unigram_f1
from recbias.statistics.bootstrap.jackknife import sample_jackknife
from recbias.statistics.bootstrap.query_bootstrap import resample_sums
from recbias.statistics.intervals import normal_interval

Tokenizer: TypeAlias = Literal["13a", "zh", "char", "intl", "none"]
"""How sacrebleu cuts a text."""

_NEEDS = frozenset({"responses"})


@dataclass(frozen=True, kw_only=True)
class BLEU:
    """The n-gram overlap of all responses with their references.

        BLEU = 100 · min(1, exp(1 - r/c)) · exp( (1/n) Σ_{m ≤ n} ln p_m )

    p_m is the share of the m-grams of the responses that stand in their references (each at most
    as often as there), c the length of all responses and r of all references. It is sacrebleu's
    corpus BLEU with its smoothing ``exp``: where no m-gram is right, p_m is halved in turn.

    A response without a reference is left out and counted in ``undefined``; an empty response has
    no n-gram and lowers c. Undefined where no response has a reference. Interval and tests come
    from bootstrap samples of the responses, the same for every model.

    Args:
        n: The longest n-grams: 4 for BLEU-4, 2 for BLEU-2.
        tokenize: How sacrebleu cuts a text: ``13a`` for European languages, ``zh`` for Chinese,
            ``char`` for characters, ``intl``, or ``none`` for white space only.

    Raises:
        MissingExtra: sacrebleu is not installed.

    Range:
        0 to 100; undefined where no response has a reference.

    Source:
        Papineni, Roukos, Ward and Zhu, "BLEU", ACL 2002; Post, "A call for clarity in reporting
        BLEU scores", WMT 2018.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = ""

    n: Annotated[int, Gt(0)] = 4
    tokenize: Tokenizer = "13a"

    def __post_init__(self) -> None:
        """Refuse to start without sacrebleu."""
        require_package("sacrebleu", "BLEU")

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate with its bootstrap samples."""
        texts, references, held = _held(evidence)
        if not held.any():
            return [_whole(np.full(1 + evidence.n_bootstrap, np.nan), held)]
        found = count_bleu_statistics(
            texts[held], references[held], n=self.n, tokenize=self.tokenize
        )
        return [
            _whole(_with_samples(found, evidence, lambda sums: compute_bleu(sums, self.n)), held)
        ]


@dataclass(frozen=True, kw_only=True)
class Distinct:
    """The diversity of the responses: the share of distinct n-grams.

        Dist-n = distinct n-grams / all n-grams,    over all responses together

    Undefined where no response has n tokens. Responses too short for an n-gram are counted in
    ``undefined``. It falls with the number of responses, so compare equally many. The interval and
    tests come from what the figure is without each response (the jackknife): a bootstrap sample
    holds some responses twice, and so says less of n-grams that several share than it should.

    Args:
        n: How many tokens in a row: 1 for Dist-1, 2 for Dist-2.
        tokens: ``words`` between white space, or ``characters`` (for Chinese), as written.

    Range:
        0 to 1; undefined where no response has n tokens.

    Source:
        Li, Galley, Brockett, Gao and Dolan, "A diversity-promoting objective function for neural
        conversation models", NAACL 2016.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = ""

    n: Annotated[int, Gt(0)] = 2
    tokens: Tokens = "words"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate with its bootstrap samples."""
        counts: Any = count_ngrams(_cut(_responses(evidence).texts, self.tokens), self.n)
        held = counts.sum(axis=1) > 0
        if not held.any():
            return [_whole(np.full(1 + evidence.n_bootstrap, np.nan), held)]
        distinct, without = _distinct(counts)
        samples = sample_jackknife(distinct, without, evidence.n_bootstrap, evidence.rng())
        return [_whole(np.append(distinct, samples), held)]


@dataclass(frozen=True, kw_only=True)
class RougeL:
    """The longest common subsequence of a response and its reference.

        ROUGE-L = 2 P R / (P + R),    P = LCS(x, y) / |x|,    R = LCS(x, y) / |y|

    x is the response, y its reference, LCS the length of their longest common subsequence of
    tokens. 0 for an empty response. Undefined where the reference is missing or has no token.

    Args:
        tokens: ``rouge`` for rouge-score's own (small letters and digits of ASCII, all else parts
            them), ``words`` between white space, or ``characters`` (for Chinese), as written.

    Raises:
        MissingExtra: rouge-score is not installed.

    Range:
        0 to 1; undefined where the reference has no token.

    Source:
        Lin, "ROUGE: a package for automatic evaluation of summaries", ACL workshop 2004,
        section 3.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "response"

    tokens: Literal["rouge"] | Tokens = "rouge"

    def __post_init__(self) -> None:
        """Refuse to start without rouge-score."""
        require_package("rouge_score", "ROUGE-L")

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the mean over the responses."""
        texts, references, held = _held(evidence)
        values = np.full(texts.size, np.nan)
        rows = np.flatnonzero(held)
        for block in track_progress(np.array_split(rows, rows.size // BLOCK + 1), "ROUGE-L"):
            values[block] = rouge_l(texts[block], references[block], self.tokens)
        lost = int(np.isnan(values[held]).sum())
        if lost:
            found = f"{lost:,} references have no token of tokens: {self.tokens}"
            warn(f"{evidence.metric}: {found}; for other than Latin letters take characters")
        return [_of_units(evidence, values)]


@dataclass(frozen=True, kw_only=True)
class UnigramF1:
    """The overlap of the tokens of a response and its reference, in any order.

        F1 = 2 |x ∩ y| / (|x| + |y|)

    x are the tokens of the response and y those of its reference, as multisets. 0 for an empty
    response. Undefined where the reference is missing or has no token.

    Args:
        tokens: ``words`` between white space, or ``characters`` (for Chinese), as written.

    Range:
        0 to 1; undefined where the reference has no token.

    Source:
        van Rijsbergen, "Information Retrieval", 2nd edition, 1979, chapter 7; for dialogue: Zhao
        et al., CHBias, ACL 2023, section 5.3.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "response"

    tokens: Tokens = "words"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the mean over the responses."""
        texts, references, held = _held(evidence)
        sides = (_cut(np.where(held, each, ""), self.tokens) for each in (texts, references))
        return [_of_units(evidence, unigram_f1(*sides))]


BLOCK = 500
"""Responses between two reports of progress."""


def _responses(evidence: Evidence) -> Responses:
    evidence.need("responses")
    return evidence.responses  # type: ignore[return-value]  # it is here


def _held(evidence: Evidence) -> tuple[AnyArray, AnyArray, BoolArray]:
    """Return the texts, their references, and which have one."""
    responses = _responses(evidence)
    held = np.array([each is not None for each in responses.references], dtype=bool)
    if not held.all():
        lacking = int((~held).sum())
        warn(f"{evidence.metric}: {lacking:,} of {held.size:,} responses have no reference")
    return responses.texts, responses.references, held


def _cut(texts: AnyArray, tokens: Tokens) -> list[list[str]]:
    return [tokenize(each, tokens) for each in texts]


def _of_units(evidence: Evidence, values: FloatArray) -> Measurement:
    return Measurement.from_units(UnitScores("response", _responses(evidence).ids, values))


def _distinct(counts: Any) -> tuple[float, FloatArray]:
    """Return the share of distinct n-grams of all responses, and without each, ``float64[m]``."""
    totals, own = counts.sum(axis=0), counts.sum(axis=1)
    nowhere_else = counts.copy()
    nowhere_else.data = (counts.data == totals[counts.indices]).astype(np.int64)
    n, n_distinct = int(totals.sum()), int(np.count_nonzero(totals))
    rest = n - own
    undefined = np.full(own.shape, np.nan)
    distinct = n_distinct - nowhere_else.sum(axis=1)
    return n_distinct / n, np.divide(distinct, rest, out=undefined, where=rest > 0)


def _with_samples(
    statistics: AnyArray, evidence: Evidence, figure: Callable[[AnyArray], float]
) -> FloatArray:
    """Return the figure of the sums of all rows, then of those of each bootstrap sample."""
    from scipy.sparse import csr_array

    samples = resample_sums(csr_array(statistics), evidence.n_bootstrap, evidence.bootstrap_seed)
    rows = [statistics.sum(axis=0), *(row for block in samples for row in block)]
    return np.array([figure(row) for row in rows])


def _whole(values: FloatArray, held: BoolArray) -> Measurement:
    """Return a figure of all responses together; its samples stand behind it."""
    low, high = normal_interval(values[0], values[1:])
    n = 0 if np.isnan(values[0]) else int(held.sum())
    return Measurement(
        value=float(values[0]),
        n=n,
        undefined=held.size - n,
        ci_low=float(low),
        ci_high=float(high),
        replicates=values[1:],
    )
