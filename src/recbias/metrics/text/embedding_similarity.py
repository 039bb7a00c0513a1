"""Similarity of responses and their references by the vectors of their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.core.errors import Contradiction, WrongType
from recbias.core.inherited_sections import InheritsSections
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.protocols import InputFile, ModelName
from recbias.core.stage_context import warn
from recbias.formats.vectors import check_vector_file, list_vector_packages, read_word_vectors
from recbias.language.backends import check_model
from recbias.language.model_folders import list_model_files
from recbias.language.token_vectors import embed_tokens
from recbias.metrics.text.response_metrics import (
    ResponseMetric,
    get_texts_and_references,
    measure_mean,
)
from recbias.numerics.texts.text_overlap import Tokens, tokenize
from recbias.numerics.texts.text_vectors import count_vectors, embedding_average, greedy_matching


@dataclass(frozen=True, kw_only=True)
class _VectorMetric(InheritsSections, ResponseMetric):
    """A metric of the vectors of tokens.

    Args:
        vectors: A file of word vectors: text with one word and its numbers per line (GloVe,
            word2vec, fastText; ``.txt``, ``.vec``, also with ``.gz``), ``.npz`` with the arrays
            ``words`` and ``vectors``, or ``.safetensors`` with the tensor ``vectors`` and the
            metadata ``words``, one per line. Vectors of other words are not kept in memory.
        encoder: A language model instead of a file, whose tokens and input embeddings (without
            position and context) are used: a folder, an installed package that contains one, or a
            model of the Hugging Face hub.
        revision: A commit, tag or branch of the hub; None for its main branch.
        tokens: With a file, ``words`` split at white space, or ``characters`` (for Chinese).
        lowercase: With a file, whether the tokens are in lower case, as the words of GloVe are.

    Raises:
        Contradiction: Neither ``vectors`` nor ``encoder`` is set, or both are.
        WrongType: The file of vectors has another suffix.
        MissingFile: The file or the model is not found, or cannot be read.
        MalformedLine: A line of the file is not a word and its numbers.
    """

    vectors: InputFile | None = None
    encoder: ModelName | None = None
    revision: str | None = None
    tokens: Tokens = "words"
    lowercase: bool = False

    def __post_init__(self) -> None:
        """Refuse settings that exclude each other."""
        if (self.vectors is None) == (self.encoder is None):
            message = "the vectors of tokens are those of a file or of a language model"
            remedy = "set one of vectors: FILE and encoder: MODEL"
            raise Contradiction(message, where="vectors", remedy=remedy)
        if self.vectors is not None:
            try:
                check_vector_file(self.vectors)
            except WrongType as error:
                raise WrongType(error.message, where="vectors", remedy=error.remedy) from error

    def libraries_now(self) -> tuple[str, ...]:
        """Return the packages that read a language model, or the file of vectors."""
        if self.encoder is not None:
            return ("torch", "transformers", "tokenizers")
        return list_vector_packages(self.vectors)  # type: ignore[arg-type]  # a file is set

    def model_files(self) -> Sequence[Path]:
        """Return the files of a local language model."""
        return () if self.encoder is None else list_model_files(self.encoder)

    def check(self, evidence: Evidence) -> None:
        """Raise an error if there is no such language model."""
        if self.encoder is not None:
            check_model(self.encoder, self.revision)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the mean over the responses."""
        texts, references, has_reference = get_texts_and_references(evidence)
        rows = np.flatnonzero(has_reference)
        codes, vectors = self._read_vectors([*texts[rows], *references[rows]])
        tables = [
            count_vectors(part, len(vectors)) for part in (codes[: rows.size], codes[rows.size :])
        ]
        _report_missing(evidence, codes, tables)
        values = np.full(texts.size, np.nan)
        values[rows] = self._compare(tables[0], tables[1], vectors)
        return [measure_mean(evidence, values)]

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
