"""Quality and diversity of the responses of a language model, and ratings of them by people.

Tokens and n-grams of texts and their overlap, similarity by the vectors of tokens, BLEU from
sacrebleu and ROUGE-L from rouge-score (the extra ``recbias[text]``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
import pandas as pd
from annotated_types import Gt

from recbias.core.context import track_progress, warn
from recbias.core.dataset import AnyArray, BoolArray, FloatArray, Ids, Matrix, divide
from recbias.core.docstrings import InheritsSections
from recbias.core.errors import Contradiction, at_setting
from recbias.core.evidence import Evidence, Responses
from recbias.core.measures import Direction, Measurement, UnitScores
from recbias.core.plugins import InputFile, ModelName, OnlyWith
from recbias.formats.ratings import rating_shares, read_ratings
from recbias.formats.vectors import check_vector_file, read_word_vectors
from recbias.language.endpoints import find_answer
from recbias.language.local_models import check_model, embed_tokens
from recbias.language.model_files import list_model_files
from recbias.metrics.base import PerQuery, Totals, WholeSet
from recbias.metrics.perplexity import group_sentences, require_label
from recbias.statistics.agreement import Level, krippendorff_alpha, resample_alpha
from recbias.statistics.bootstrap import build_estimate
from recbias.statistics.intervals import rating_share_interval

_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
"""Letters of Thai, Lao, Japanese and Chinese, which have no blanks between words."""

_LONGEST_WORD = 2
"""Letters of these per token, above which a text is not divided into words: Chinese words have
fewer than two on average."""


class _ResponseMetric(PerQuery):
    """A metric with one value for each response of a model."""

    needs: ClassVar[frozenset[str]] = frozenset({"responses"})
    unit: ClassVar[str] = "response"


def get_responses(evidence: Evidence) -> Responses:
    """Return the responses; MissingEvidence if there are none."""
    evidence.need("responses")
    return evidence.responses  # type: ignore[return-value]  # need() raises on None


def _get_texts_and_references(evidence: Evidence) -> tuple[AnyArray, AnyArray, BoolArray]:
    """Return the texts, their references, and which texts have a reference."""
    responses = get_responses(evidence)
    has_reference = np.array([text is not None for text in responses.references], dtype=bool)
    if n_missing := int((~has_reference).sum()):
        total = has_reference.size
        warn(f"{evidence.metric}: {n_missing:,} of {total:,} responses have no reference")
    return _read_texts(responses), responses.references, has_reference


def _read_texts(responses: Responses) -> AnyArray:
    """Return the texts without the thought of the model; a text that ends within it is empty."""
    return np.array([find_answer(text) or "" for text in responses.texts], dtype=object)


def _warn_of_undivided_texts(
    evidence: Evidence, texts: AnyArray, n_tokens: AnyArray, remedy: str
) -> None:
    """Warn of texts in a script without blanks between words, of which clauses are one token.

    Args:
        evidence: What is measured.
        texts: The texts.
        n_tokens: The number of tokens of each text, ``int64[n]``.
        remedy: The setting that gives tokens to such texts.
    """
    letters = np.array([len(_UNSPACED.findall(text)) for text in texts], dtype=np.int64)
    if n_undivided := int(np.count_nonzero(letters > _LONGEST_WORD * n_tokens)):
        total = f"{n_undivided:,} of {len(texts):,} references"
        message = f"{total} have no blanks between words, so that a clause is one token"
        warn(f"{evidence.metric}: {message}; {remedy}")


_Tokens: TypeAlias = Literal["words", "characters"]
"""Unit of a token: words separated by white space, or characters other than white space."""


def tokenize(text: str, tokens: _Tokens) -> list[str]:
    """Split a text into tokens, case and punctuation unchanged.

    >>> tokenize("A cat,  a hat", "words"), tokenize("a b", "characters")
    (['A', 'cat,', 'a', 'hat'], ['a', 'b'])
    """
    words = text.split()
    return words if tokens == "words" else list("".join(words))


def count_ngrams(texts: Sequence[Sequence[str]], n: int) -> Matrix:
    """Count the n-grams of each text, CSR ``int32 (texts, n-grams)``.

    Texts are lists of tokens; one of fewer than ``n`` tokens has no n-gram.

    >>> count_ngrams([["a", "b", "a", "b"], ["b", "a"]], 2).toarray().tolist()
    [[2, 1], [0, 1]]
    """
    from scipy.sparse import csr_array

    words, rows = _list_tokens(texts)
    codes, _ = pd.factorize(words)
    grams, rows = _encode_ngrams(codes.astype(np.int64), rows, n)
    shape = (len(texts), int(grams.max(initial=-1)) + 1)
    ones = np.ones(grams.size, dtype=np.int32)
    counts = csr_array((ones, (rows, grams)), shape=shape)
    counts.sum_duplicates()
    return counts


def _list_tokens(texts: Sequence[Sequence[Any]]) -> tuple[AnyArray, AnyArray]:
    """Return all tokens, ``object[n]``, and the text of each."""
    lengths = np.array([len(tokens) for tokens in texts], dtype=np.int64)
    tokens = np.fromiter(chain.from_iterable(texts), dtype=object, count=int(lengths.sum()))
    return tokens, np.repeat(np.arange(lengths.size), lengths)


def _encode_ngrams(codes: AnyArray, rows: AnyArray, n: int) -> tuple[AnyArray, AnyArray]:
    """Return the code and the text of the n-gram that starts at each token."""
    grams = codes
    for offset in range(1, n):
        grams, follower = grams[:-1], codes[offset:]
        same_text = rows[: grams.size] == rows[offset:]
        keys = np.where(same_text, grams * (int(codes.max(initial=0)) + 1) + follower, -1)
        grams, _ = pd.factorize(keys)
    rows, ends = rows[: grams.size], rows[n - 1 :]
    dense, _ = pd.factorize(grams[rows == ends])
    return dense, rows[rows == ends]


def unigram_f1(texts: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> FloatArray:
    """Return the F1 overlap between the tokens of each text and its reference.

        F1 = 2 |r ∩ s| / (|r| + |s|)

    where r and s are the multisets of tokens of the text and of its reference. NaN if the
    reference has no token.

    >>> unigram_f1([["a", "b", "b"], []], [["b", "c", "b"], ["a"]]).round(4).tolist()
    [0.6667, 0.0]

    Source:
        van Rijsbergen, "Information Retrieval", 2nd edition, 1979, chapter 7.
    """
    n = len(texts)
    counts = count_ngrams([*texts, *references], 1)
    shared = counts[:n].minimum(counts[n:]).sum(axis=1)
    sizes = counts.sum(axis=1)
    lengths, targets = sizes[:n], sizes[n:]
    return np.where(targets > 0, 2.0 * shared / np.maximum(lengths + targets, 1), np.nan)


def count_vectors(texts: Sequence[Sequence[int]], n_vectors: int) -> Matrix:
    """Return how often each text has each token, CSR ``float64 (texts, n_vectors)``.

    Texts are lists of the rows of their tokens in a table of vectors; a token without a vector has
    a row below 0 and is left out.
    """
    from scipy.sparse import csr_array

    tokens, rows = _list_tokens(texts)
    codes = tokens.astype(np.int64)
    rows, codes = rows[codes >= 0], codes[codes >= 0]
    counts = csr_array((np.ones(codes.size), (rows, codes)), shape=(len(texts), n_vectors))
    counts.sum_duplicates()
    return counts


def embedding_average(counts: Matrix, references: Matrix, vectors: AnyArray) -> FloatArray:
    """Return the cosine of the mean vectors of each text and its reference, ``float64[n]``.

        cos(x̄, ȳ),    x̄ = (1/|x|) Σ_{w ∈ x} e_w

    Args:
        counts: The tokens of the texts, as ``count_vectors`` returns them.
        references: Those of the references.
        vectors: The vectors e_w, ``(n_vectors, d)``.

    Returns:
        NaN where a text has no token with a vector, or its vectors add up to 0.

    >>> vectors = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> texts, references = count_vectors([[0, 1], []], 2), count_vectors([[0], [0]], 2)
    >>> embedding_average(texts, references, vectors).round(4).tolist()
    [0.7071, nan]

    Source:
        Liu et al., "How not to evaluate your dialogue system", EMNLP 2016, section 4.2.
    """
    wide = np.asarray(vectors, np.float64)
    sums = [_divide_by_length(np.asarray(table @ wide)) for table in (counts, references)]
    return np.asarray(np.clip((sums[0] * sums[1]).sum(axis=1), -1.0, 1.0))


def greedy_matching(counts: Matrix, references: Matrix, vectors: AnyArray) -> FloatArray:
    """Return the mean similarity of each token to the nearest of the other text, ``float64[n]``.

        GM = (G(x, y) + G(y, x)) / 2,    G(x, y) = (1/|x|) Σ_{w ∈ x} max_{v ∈ y} cos(e_w, e_v)

    Arguments are as for ``embedding_average``. |x| is the number of tokens with a vector other
    than 0, and only these are matched.

    Returns:
        NaN where a text has no such token.

    >>> vectors = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> texts, references = count_vectors([[0, 1, 1]], 2), count_vectors([[0]], 2)
    >>> greedy_matching(texts, references, vectors).round(4).tolist()  # (1/3 + 1) / 2
    [0.6667]

    Source:
        Rus and Lintean, "A comparison of greedy and optimal assessment of natural language student
        input using word-to-word similarity metrics", BEA 2012; for dialogue: Liu et al. 2016,
        section 4.2.
    """
    unit = _divide_by_length(np.asarray(vectors, np.float64))
    has_direction: AnyArray = np.asarray(~np.isnan(unit).any(axis=1))
    values = np.full(counts.shape[0], np.nan)
    for row in range(values.size):
        (x, n_x), (y, n_y) = (
            _get_row(table, row, has_direction) for table in (counts, references)
        )
        if x.size and y.size:
            cosines = unit[x] @ unit[y].T
            forward = n_x @ cosines.max(axis=1) / n_x.sum()
            values[row] = (forward + n_y @ cosines.max(axis=0) / n_y.sum()) / 2.0
    return np.asarray(np.clip(values, -1.0, 1.0))


def _get_row(counts: Matrix, row: int, is_kept: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the distinct tokens of a text, and how often each occurs."""
    part = slice(counts.indptr[row], counts.indptr[row + 1])
    tokens, numbers = counts.indices[part], counts.data[part]
    return tokens[is_kept[tokens]], numbers[is_kept[tokens]]


def _divide_by_length(vectors: FloatArray) -> FloatArray:
    """Return vectors of length 1; NaN for one that is 0."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    scaled = np.divide(vectors, largest, out=np.full(vectors.shape, np.nan), where=largest > 0)
    return np.asarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class _VectorMetric(_ResponseMetric):
    """A metric of the vectors of tokens.

    Args:
        vectors: A file of word vectors: text with one word and its numbers per line (GloVe,
            word2vec, fastText; ``.txt``, ``.vec``, also with ``.gz``). Vectors of other words are
            not kept in memory.
        encoder: A language model instead of a file, whose tokens and input embeddings (without
            position and context) are used: a folder, an installed package that contains one, or a
            model of the Hugging Face hub.
        revision: A commit, tag or branch of the hub; None for its main branch.
        tokens: ``words`` split at white space, or ``characters`` (for Chinese).
        lowercase: Whether the tokens are in lower case, as the words of GloVe are.

    Raises:
        Contradiction: Neither ``vectors`` nor ``encoder`` is set, or both are.
        WrongType: The file of vectors has another suffix.
        MissingFile: The file or the model is not found, or cannot be read.
        MalformedLine: A line of the file is not a word and its numbers.
    """

    vectors: InputFile | None = None
    encoder: ModelName | None = None
    revision: Annotated[str | None, OnlyWith("encoder")] = None
    tokens: Annotated[_Tokens, OnlyWith("vectors")] = "words"
    lowercase: Annotated[bool, OnlyWith("vectors")] = False

    def __post_init__(self) -> None:
        """Refuse settings that exclude each other."""
        if (self.vectors is None) == (self.encoder is None):
            message = "the vectors of tokens are those of a file or of a language model"
            remedy = "set one of vectors: FILE and encoder: MODEL"
            raise Contradiction(message, where="vectors", remedy=remedy)
        if self.vectors is not None:
            with at_setting("vectors"):
                check_vector_file(self.vectors)

    def libraries_now(self) -> tuple[str, ...]:
        """Return the packages that read a language model."""
        return () if self.encoder is None else ("torch", "transformers", "tokenizers")

    def model_files(self) -> Sequence[Path]:
        """Return the files of a local language model."""
        return () if self.encoder is None else list_model_files(self.encoder)

    def check(self, evidence: Evidence) -> None:
        """Raise an error if there is no such language model."""
        if self.encoder is not None:
            check_model(self.encoder, self.revision)

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each response."""
        texts, references, has_reference = _get_texts_and_references(evidence)
        rows = np.flatnonzero(has_reference)
        codes, vectors = self._read_vectors([*texts[rows], *references[rows]])
        tables = [
            count_vectors(part, len(vectors)) for part in (codes[: rows.size], codes[rows.size :])
        ]
        _report_missing(evidence, codes, tables)
        values = np.full(texts.size, np.nan)
        values[rows] = self._compare(tables[0], tables[1], vectors)
        return values

    def _compare(self, texts: Matrix, references: Matrix, vectors: AnyArray) -> FloatArray:
        raise NotImplementedError

    def _read_vectors(self, texts: Sequence[str]) -> tuple[list[list[int]], AnyArray]:
        """Return the row of the vector of each token, -1 without one, and the vectors."""
        if self.encoder is not None:
            return embed_tokens(self.encoder, self.revision, texts)
        tokens = [
            tokenize(text.lower() if self.lowercase else text, self.tokens) for text in texts
        ]
        words = {token for text in tokens for token in text}
        read = read_word_vectors(self.vectors, words)  # type: ignore[arg-type]  # a file is set
        return [[read.rows.get(token, -1) for token in text] for text in tokens], read.vectors


@dataclass(frozen=True, kw_only=True)
class EmbeddingAverage(_VectorMetric):
    """The cosine of the mean token vectors of a response and its reference.

        cos(x̄, ȳ),    x̄ = (1/|x|) Σ_{w ∈ x} e_w

    x are the tokens of the response and y those of its reference that have a vector e_w. The order
    of the tokens has no effect. Undefined, and never 0, where the reference is missing, where
    response or reference has no token with a vector, or where its vectors add up to 0. Tokens
    without a vector are counted in a warning.

    Range:
        -1 to 1; undefined where no token has a vector.

    Source:
        Liu, Lowe, Serban, Noseworthy, Charlin and Pineau, "How not to evaluate your dialogue
        system", EMNLP 2016, section 4.2.
    """

    direction: ClassVar[Direction] = "higher"

    def _compare(self, texts: Matrix, references: Matrix, vectors: AnyArray) -> FloatArray:
        return embedding_average(texts, references, vectors)


@dataclass(frozen=True, kw_only=True)
class GreedyMatching(_VectorMetric):
    """The mean cosine of each token with its nearest token of the other text, in both directions.

        GM = (G(x, y) + G(y, x)) / 2,    G(x, y) = (1/|x|) Σ_{w ∈ x} max_{v ∈ y} cos(e_w, e_v)

    x are the tokens of the response and y those of its reference that have a non-zero vector e_w.
    The order of the tokens has no effect, and neither has exchanging x and y. Undefined, and never
    0, where the reference is missing, or where response or reference has no such token. Tokens
    without a vector are counted in a warning.

    Range:
        -1 to 1; undefined where no token has a vector.

    Source:
        Liu, Lowe, Serban, Noseworthy, Charlin and Pineau, "How not to evaluate your dialogue
        system", EMNLP 2016, section 4.2, after Rus and Lintean, BEA 2012.
    """

    direction: ClassVar[Direction] = "higher"

    def _compare(self, texts: Matrix, references: Matrix, vectors: AnyArray) -> FloatArray:
        return greedy_matching(texts, references, vectors)


def _report_missing(
    evidence: Evidence, codes: Sequence[Sequence[int]], tables: Sequence[Matrix]
) -> None:
    """Warn of tokens without a vector, and of texts without any."""
    n_tokens = sum(map(len, codes))
    n_missing = n_tokens - round(sum(float(table.sum()) for table in tables))
    if n_missing:
        warn(f"{evidence.metric}: {n_missing:,} of {n_tokens:,} tokens have no vector")
    for noun, table in zip(("responses", "references"), tables, strict=True):
        if n_empty := int((np.diff(table.indptr) == 0).sum()):
            total = table.shape[0]
            warn(f"{evidence.metric}: {n_empty:,} of {total:,} {noun} have no token with a vector")


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
    texts: Iterable[str], references: Iterable[str], tokens: Literal["rouge"] | _Tokens
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

    def __init__(self, tokens: _Tokens) -> None:
        self.tokens = tokens

    def tokenize(self, text: str) -> list[str]:
        return tokenize(text, self.tokens)


Tokenizer: TypeAlias = Literal["13a", "zh", "char", "intl", "none"]
"""The name of a tokenizer of sacrebleu."""

_BLOCK = 500
"""Number of responses between two progress reports."""


@dataclass(frozen=True, kw_only=True)
class BLEU(WholeSet):
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
    needs: ClassVar[frozenset[str]] = frozenset({"responses"})
    direction: ClassVar[Direction] = "higher"

    n: Annotated[int, Gt(0)] = 4
    tokenize: Tokenizer = "13a"

    def totals(self, evidence: Evidence) -> Totals:
        """Return the statistics of each response, and BLEU of their sums."""
        from scipy.sparse import csr_array

        texts, references, has_reference = _get_texts_and_references(evidence)
        statistics = count_bleu_statistics(
            texts[has_reference], references[has_reference], n=self.n, tokenize=self.tokenize
        )
        remedy = "for Chinese use tokenize: zh, for other such scripts tokenize: char"
        _warn_of_undivided_texts(evidence, references[has_reference], statistics[:, -1], remedy)
        return Totals(
            csr_array(statistics),
            lambda sums: np.apply_along_axis(compute_bleu, -1, sums, self.n),
            n_excluded=int(np.count_nonzero(~has_reference)),
        )


@dataclass(frozen=True, kw_only=True)
class Distinct(WholeSet):
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

    needs: ClassVar[frozenset[str]] = frozenset({"responses"})
    direction: ClassVar[Direction] = "higher"

    n: Annotated[int, Gt(0)] = 2
    tokens: _Tokens = "words"

    def totals(self, evidence: Evidence) -> Totals:
        """Return the n-grams of each response, and the share of distinct ones."""
        texts = [tokenize(text, self.tokens) for text in _read_texts(get_responses(evidence))]
        counts = count_ngrams(texts, self.n)
        rows = np.flatnonzero(np.diff(counts.indptr))

        def share_distinct(sums: AnyArray) -> FloatArray:
            return divide(np.count_nonzero(sums, axis=-1), sums.sum(axis=-1))

        n_excluded = len(texts) - rows.size
        return Totals(counts[rows], share_distinct, _share_distinct_without, n_excluded)


@dataclass(frozen=True, kw_only=True)
class RougeL(_ResponseMetric):
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

    tokens: Literal["rouge"] | _Tokens = "rouge"

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each response."""
        texts, references, has_reference = _get_texts_and_references(evidence)
        values = np.full(texts.size, np.nan)
        rows = np.flatnonzero(has_reference)
        for block in track_progress(np.array_split(rows, rows.size // _BLOCK + 1), "ROUGE-L"):
            values[block] = rouge_l(texts[block], references[block], self.tokens)
        if n_empty := int(np.isnan(values[rows]).sum()):
            message = f"{n_empty:,} references have no token of tokens: {self.tokens}"
            warn(f"{evidence.metric}: {message}; for other than Latin letters use characters")
        return values


@dataclass(frozen=True, kw_only=True)
class UnigramF1(_ResponseMetric):
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

    tokens: _Tokens = "words"

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each response."""
        texts, references, has_reference = _get_texts_and_references(evidence)
        tokens_of_responses, tokens_of_references = (
            [tokenize(text, self.tokens) for text in np.where(has_reference, column, "")]
            for column in (texts, references)
        )
        n_tokens = np.array([len(tokens) for tokens in tokens_of_references])[has_reference]
        remedy = "use tokens: characters"
        _warn_of_undivided_texts(evidence, references[has_reference], n_tokens, remedy)
        return unigram_f1(tokens_of_responses, tokens_of_references)


def _share_distinct_without(counts: Matrix) -> FloatArray:
    """Return the share of distinct n-grams in all responses but each, ``float64[m]``."""
    totals = counts.sum(axis=0)
    is_only_there = counts.data == totals[counts.indices]
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    n_less = np.bincount(rows[is_only_there], minlength=counts.shape[0])
    distinct = np.count_nonzero(totals) - n_less
    return divide(distinct, totals.sum() - counts.sum(axis=1))


@dataclass(frozen=True, kw_only=True)
class _HumanMetric(InheritsSections):
    """A metric of imported ratings.

    Args:
        ratings: The file that ``recbias human import`` wrote. Ratings belong to the query and the
            text of a response: a model whose responses have changed since has no ratings for
            them.

    Raises:
        MissingFile: The file does not exist.
        UnknownColumn: A column of the file is missing.
        MalformedLine: A rating is no number, or a rater rated a response twice.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"responses"})
    unit: ClassVar[str] = "response"

    ratings: InputFile

    def check(self, evidence: Evidence) -> None:
        """Raise an error if the file is malformed."""
        read_ratings(self.ratings)

    def _select(self, evidence: Evidence) -> FloatArray:
        """Return the ratings of the responses, ``float64[raters, responses]``."""
        responses = get_responses(evidence)
        ratings = read_ratings(self.ratings).select(responses.ids, responses.texts)
        n_unrated = int(np.isnan(ratings).all(axis=0).sum())
        if n_unrated:
            total = f"{len(responses):,} responses"
            warn(f"{evidence.metric}: {n_unrated:,} of {total} have no rating")
        return ratings


@dataclass(frozen=True, kw_only=True)
class _HumanMean(_HumanMetric):
    """A metric with one value per response.

    Args:
        by: A label of the responses or of their queries (``category``), or a crossing of labels:
            the means of its values follow that of all responses.

    Raises:
        UnknownColumn: A column of the file is missing, or the responses have no label ``by``.
    """

    by: str | None = None

    def check_labels(self, labels: Sequence[str]) -> None:
        """Raise an error if the responses and their queries have no label ``by``."""
        require_label(self.by, labels, "response", where="by")

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the mean over the responses, then that of each value of ``by``."""
        ratings, ids = self._select(evidence), get_responses(evidence).ids
        measurements = [self._measure(ids, ratings)]
        if self.by is not None:
            labelled = _add_query_labels(evidence)
            groups = group_sentences(labelled, self.by, evidence.metric, "response")
            for code, name in enumerate(groups.names):
                rows = groups.find_rows(code)
                part = self._measure(ids[rows], ratings[:, rows])
                measurements.append(replace(part, group=name))
        return measurements

    def _measure(self, ids: Ids, ratings: FloatArray) -> Measurement:
        return Measurement.from_units(UnitScores("response", ids, self._summarize(ratings)))

    def _summarize(self, ratings: FloatArray) -> FloatArray:
        """Return the value of each response from ``float64[raters, responses]``."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class HumanRate(_HumanMean):
    """The share of the ratings that equal a score, such as the rate of biased responses.

        rate = (1/n) Σ_r (1/m_r) Σ_i [v_ri = s]

    v_ri is the rating of response r by one of its m_r raters, and s the score: 1 for yes and 0 for
    no. Raters may lack; a response without a rating is undefined and counted. The 95%
    interval is Wilson's with n p (1 - p) / s² in place of n, where s² is the variance of the
    shares of the n responses: raters of one response do not count as independent. Whether a
    higher rate is better depends on the question.

    Args:
        score: The score: 1 for the answer yes.

    Range:
        0 to 1; undefined where no response has a rating.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 5.4 (three raters; Tables 6, 16 and 17).
    """

    direction: ClassVar[Direction] = "none"

    score: float = 1.0

    def _measure(self, ids: Ids, ratings: FloatArray) -> Measurement:
        measurement, n_ratings = super()._measure(ids, ratings), int((~np.isnan(ratings)).sum())
        low, high = rating_share_interval(self._summarize(ratings), n_ratings)
        return replace(measurement, ci_low=low, ci_high=high)

    def _summarize(self, ratings: FloatArray) -> FloatArray:
        return rating_shares(ratings, self.score)


@dataclass(frozen=True, kw_only=True)
class HumanScore(_HumanMean):
    """The mean rating of the responses.

        score = (1/n) Σ_r (1/m_r) Σ_i v_ri

    v_ri is the rating of response r by one of its m_r raters. Raters may lack; a response without
    a rating is undefined and counted.

    Range:
        That of the ratings: 0 to 2 for the scale of CHBias; undefined where no response has one.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 5.4 (the scale of 0, 1 and 2).
    """

    direction: ClassVar[Direction] = "higher"

    def _summarize(self, ratings: FloatArray) -> FloatArray:
        n_ratings = (~np.isnan(ratings)).sum(axis=0)
        means = np.nansum(ratings, axis=0) / np.maximum(n_ratings, 1)
        return np.asarray(np.where(n_ratings > 0, means, np.nan))


@dataclass(frozen=True, kw_only=True)
class HumanAgreement(_HumanMetric):
    """The agreement of the raters beyond chance: Krippendorff's alpha.

        α = 1 - D_o / D_e

    D_o is the mean disagreement of two ratings of one response, D_e that of any two ratings. 1 is
    perfect agreement, 0 is agreement by chance, negative is less. Responses with fewer than two
    ratings are excluded and counted as undefined. The 95% interval is α ± 1.96 standard deviations
    over bootstrap samples of the responses, the same for every model. It is a property of the
    ratings, so no value is better for a model.

    Args:
        level: ``nominal`` for yes and no, ``interval`` for a scale: the square of the difference.

    Range:
        At most 1; undefined if no response has two ratings, or all ratings are equal.

    Source:
        Krippendorff, "Content Analysis: An Introduction to its Methodology", 2nd edition, 2004,
        chapter 11.
    """

    direction: ClassVar[Direction] = "none"
    unit = ""

    level: Level = "nominal"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the agreement, with its bootstrap samples."""
        ratings = self._select(evidence)
        alpha = krippendorff_alpha(ratings, self.level)
        samples = resample_alpha(ratings, self.level, evidence.n_bootstrap, evidence.rng())
        n_several = int(((~np.isnan(ratings)).sum(axis=0) > 1).sum())
        return [build_estimate(alpha, samples, n_several, ratings.shape[1])]


def _add_query_labels(evidence: Evidence) -> Responses:
    """Return the responses with those labels of their queries that they lack."""
    responses, queries = get_responses(evidence), evidence.queries
    frame = queries.labels.frame.set_axis(queries.ids.ids, axis=0)
    frame = frame.drop(columns=[name for name in frame if name in responses.labels])
    added = frame.reindex(responses.ids).reset_index(drop=True).astype(object)
    return replace(
        responses, labels=pd.concat([responses.labels, added.where(added.notna(), None)], axis=1)
    )
