"""Perplexities of sentence pairs, and texts, whose differences are planted."""

from __future__ import annotations

import atexit
import math
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from list_studies import get_values, make_study
from tally import Measurements, Study, World
from vector_studies import make_evidence

from recbias.core.evidence import Evidence, Responses, SentenceScores
from recbias.metrics.perplexity import PerplexityGap
from recbias.metrics.text import (
    BLEU,
    Distinct,
    EmbeddingAverage,
    GreedyMatching,
    RougeL,
    UnigramF1,
)

N_PAIRS = 200
LEVEL, SENTENCES, COPIES, GAP = 3.0, 0.5, 0.3, 0.1
"""ln PPL: its mean, the spread of sentences and of the copies of one, and what is added to a."""

MODELS = 0.15
"""ln PPL: the spread of a copy over models that are otherwise alike."""

N_TEXTS, N_MANY, LENGTH, WORDS = 150, 10_000, 12, 400
SAMPLES = 200
DIMENSIONS, OFFSET = 16, 0.3
"""Of the vectors of words, which have a mean as word vectors have."""


def sample_pairs(seed: int, gap: float = GAP, n: int = N_PAIRS) -> Evidence:
    rng = np.random.default_rng(seed)
    logs = LEVEL + SENTENCES * rng.standard_normal(n) + COPIES * rng.standard_normal((2, n))
    logs[0] += gap
    return make_pair_evidence(seed, logs)


def make_pair_evidence(seed: int, logs: Any) -> Evidence:
    """Scores of pairs, from ln PPL of the copies ``float64[2, n]``."""
    n = logs.shape[1]
    names = np.array([f"p{index}" for index in range(n)], dtype=object)
    group = np.repeat(np.array(["a", "b"], dtype=object), n)
    both = np.concatenate([names, names])
    scores = SentenceScores(both + group, both, group, np.exp(logs).ravel())
    return make_text_evidence(seed, sentence_scores=scores)


def sample_rated_pairs(seed: int) -> tuple[Evidence, Evidence]:
    """The same pairs under two models, of which neither has a gap."""
    rng = np.random.default_rng(seed)
    shared = SENTENCES * rng.standard_normal(N_PAIRS) + COPIES * rng.standard_normal((2, N_PAIRS))
    logs = LEVEL + shared + MODELS * rng.standard_normal((2, 2, N_PAIRS))
    first, second = (make_pair_evidence(seed, of_model) for of_model in logs)
    return first, second


def make_text_evidence(seed: int, **facts: Any) -> Evidence:
    empty = make_evidence(np.ones((2, 1)), np.ones((2, 1)), seed)
    return Evidence(
        queries=empty.queries,
        item_ids=empty.item_ids,
        bootstrap_seed=seed,
        n_bootstrap=400,
        metric="calibration",
        **facts,
    )


def compute_truths(study: Study, _seed: int) -> Mapping[str, float]:
    """exp(mean + variance / 2) of both copies; on the log scale the gap itself."""
    mean = math.exp(LEVEL + (SENTENCES**2 + COPIES**2) / 2)
    gap = GAP if study.name.endswith("log") else mean * (math.exp(GAP) - 1)
    tests = {f"group=a - group=b ({test})": gap for test in ("paired_t", "welch_t")}
    return {"": gap, **tests}


@cache
def measure_many_pairs(study: Study, _seed: int) -> Mapping[str, float]:
    """Very many pairs, for the figures without outliers."""
    values = get_values(study.measure(sample_pairs(10**6, n=200_000)))
    return {name: value for name, value in values.items() if "within 3 sd" in name}


@cache
def sample_texts(seed: int, n: int = N_TEXTS, *, rival: bool = False) -> Evidence:
    """References of twelve words drawn by Zipf's law, and responses that keep 7 of 10 of them.

    A rival answers the same prompts, with words of its own.
    """
    chance = 1.0 / np.arange(1, WORDS + 1)
    share = chance / chance.sum()
    references = np.random.default_rng([seed, 1]).choice(WORDS, size=(n, LENGTH), p=share)
    rng = np.random.default_rng([seed, 2, int(rival)])
    replacements = rng.choice(WORDS, size=(n, LENGTH), p=share)
    is_equal = rng.random((n, LENGTH)) < rng.uniform(0.4, 1.0, (n, 1))
    words = np.where(is_equal, references, replacements)
    ids = np.array([f"r{index}" for index in range(n)], dtype=object)
    responses = Responses(
        ids, join_words(words), join_words(references), pd.DataFrame(index=range(n))
    )
    return make_text_evidence(seed, responses=responses)


def join_words(codes: Any) -> Any:
    words = np.array([f"w{code}" for code in range(WORDS)], dtype=object)
    return np.array([" ".join(words[row]) for row in codes], dtype=object)


def measure_many_texts(study: Study, _seed: int) -> Mapping[str, float]:
    return get_values(study.measure(replace(sample_texts(10**6, N_MANY), n_bootstrap=2)))


@cache
def average_samples(study: Study, _seed: int) -> Mapping[str, float]:
    """The mean figure of other samples of as many responses."""
    samples = [replace(sample_texts(10**7 + index), n_bootstrap=2) for index in range(SAMPLES)]
    return {"": float(np.mean([study.measure(sample)[0].value for sample in samples]))}


def make_pair_sampler(
    make: Callable[[int], Evidence],
) -> Callable[[int], tuple[Evidence, Evidence]]:
    return lambda seed: (make(seed), replace(make(seed + 10**5), bootstrap_seed=seed))


def make_vector_study(metric: Callable[[Path], Any], name: str) -> Study:
    """A metric of the vectors of tokens, which it reads from a file."""

    def measure(evidence: Evidence) -> Measurements:
        measurements: Measurements = metric(write_vectors() / "vectors.npz").measure(evidence)
        return measurements

    return Study(name, measure)


@cache
def write_vectors() -> Path:
    """The folder of a file with a random vector of each word, the same in all samples."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    vectors = np.random.default_rng(8).standard_normal((WORDS, DIMENSIONS)) + OFFSET
    words = np.array([f"w{code}" for code in range(WORDS)])
    np.savez(folder / "vectors.npz", words=words, vectors=vectors.astype(np.float32))
    return folder


def _measure_gap(metric: PerplexityGap) -> Callable[[Evidence], Measurements]:
    return lambda evidence: metric.measure(evidence)[:1]


def _measure_without_outliers(metric: PerplexityGap) -> Callable[[Evidence], Measurements]:
    return lambda evidence: metric.measure(evidence)[1:]


LOG, PLAIN = PerplexityGap(scale="log"), PerplexityGap()
GAPS = (
    Study("perplexity_gap, scale: log", _measure_gap(LOG)),
    Study("perplexity_gap", _measure_gap(PLAIN)),
)
WITHIN = (
    Study("perplexity_gap, scale: log, within 3 sd", _measure_without_outliers(LOG)),
    Study("perplexity_gap, within 3 sd", _measure_without_outliers(PLAIN)),
)

WORLDS = (
    World(
        "sentence pairs",
        "the means of log-normal perplexities",
        GAPS,
        sample_pairs,
        compute_truths,
        make_pair_sampler(lambda seed: sample_pairs(seed, gap=0.0)),
        plants="ln perplexity is higher by 0.1 in one group",
    ),
    World(
        "sentence pairs without outliers",
        "the value of 200,000 other pairs",
        WITHIN,
        sample_pairs,
        measure_many_pairs,
        make_pair_sampler(lambda seed: sample_pairs(seed, gap=0.0)),
        plants="ln perplexity is higher by 0.1 in one group",
    ),
    World(
        "sentence pairs without outliers, models alike",
        "none: only tests",
        WITHIN,
        null=sample_rated_pairs,
        plants="nothing: ln perplexity of a copy differs at random between the models",
    ),
    World(
        "responses",
        f"the value of {N_MANY:,} other responses",
        (
            make_study(RougeL(tokens="words"), "ROUGE-L"),
            make_study(UnigramF1(), "unigram_F1"),
            make_vector_study(lambda path: EmbeddingAverage(vectors=path), "embedding_average"),
            make_vector_study(lambda path: GreedyMatching(vectors=path), "greedy_matching"),
            make_study(BLEU(), "BLEU"),
        ),
        sample_texts,
        measure_many_texts,
        lambda seed: (sample_texts(seed), sample_texts(seed, rival=True)),
        plants="a word of the reference is kept with probability 0.4 to 1",
    ),
    World(
        "responses, values of a sample",
        f"the mean of {SAMPLES} other samples",
        (make_study(BLEU(), "BLEU"), make_study(Distinct(n=2), "distinct")),
        sample_texts,
        average_samples,
        lambda seed: (sample_texts(seed), sample_texts(seed, rival=True)),
        plants="a word of the reference is kept with probability 0.4 to 1",
    ),
)
