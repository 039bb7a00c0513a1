"""Perplexities of sentence pairs, and texts, whose differences are planted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from list_studies import of, values_of
from tally import Found, Study, World
from vector_studies import evidence_of

from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.sentences import Responses, SentenceScores
from recbias.metrics.text.perplexity_gap import PerplexityGap
from recbias.metrics.text.text_quality import BLEU, Distinct, RougeL, UnigramF1

N_PAIRS = 200
LEVEL, SENTENCES, COPIES, GAP = 3.0, 0.5, 0.3, 0.1
"""ln PPL: its mean, the spread of sentences and of the copies of one, and what is added to a."""

N_TEXTS, N_MANY, LENGTH, WORDS = 150, 10_000, 12, 400
SAMPLES = 200


def pairs(seed: int, gap: float = GAP, n: int = N_PAIRS) -> Evidence:
    rng = np.random.default_rng(seed)
    logs = LEVEL + SENTENCES * rng.standard_normal(n) + COPIES * rng.standard_normal((2, n))
    logs[0] += gap
    names = np.array([f"p{each}" for each in range(n)], dtype=object)
    group = np.repeat(np.array(["a", "b"], dtype=object), n)
    both = np.concatenate([names, names])
    scores = SentenceScores(both + group, both, group, np.exp(logs).ravel())
    return with_seed(seed, sentence_scores=scores)


def with_seed(seed: int, **facts: Any) -> Evidence:
    empty = evidence_of(np.ones((2, 1)), np.ones((2, 1)), seed)
    return Evidence(
        queries=empty.queries,
        item_ids=empty.item_ids,
        bootstrap_seed=seed,
        n_bootstrap=400,
        metric="calibration",
        **facts,
    )


def of_lognormal(study: Study, _seed: int) -> Mapping[str, float]:
    """exp(mean + variance / 2) of both copies; on the log scale the gap itself."""
    mean = math.exp(LEVEL + (SENTENCES**2 + COPIES**2) / 2)
    gap = GAP if study.name.endswith("log") else mean * (math.exp(GAP) - 1)
    tests = {f"group=a - group=b ({each})": gap for each in ("paired_t", "welch_t")}
    return {"": gap, **tests}


@cache
def trimmed(study: Study, _seed: int) -> Mapping[str, float]:
    """Very many pairs, for the figures without outliers."""
    values = values_of(study.measure(pairs(10**6, n=200_000)))
    return {name: each for name, each in values.items() if "within 3 sd" in name}


@cache
def texts(seed: int, n: int = N_TEXTS, *, rival: bool = False) -> Evidence:
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
    ids = np.array([f"r{each}" for each in range(n)], dtype=object)
    responses = Responses(ids, written(words), written(references), pd.DataFrame(index=range(n)))
    return with_seed(seed, responses=responses)


def written(codes: Any) -> Any:
    words = np.array([f"w{each}" for each in range(WORDS)], dtype=object)
    return np.array([" ".join(words[row]) for row in codes], dtype=object)


def of_many(study: Study, _seed: int) -> Mapping[str, float]:
    return values_of(study.measure(replace(texts(10**6, N_MANY), n_bootstrap=2)))


@cache
def expected(study: Study, _seed: int) -> Mapping[str, float]:
    """The mean figure of other samples of as many responses."""
    many = [replace(texts(10**7 + each), n_bootstrap=2) for each in range(SAMPLES)]
    return {"": float(np.mean([study.measure(each)[0].value for each in many]))}


def rivals(make: Callable[[int], Evidence]) -> Callable[[int], tuple[Evidence, Evidence]]:
    return lambda seed: (make(seed), replace(make(seed + 10**5), bootstrap_seed=seed))


def _main(metric: PerplexityGap) -> Callable[[Evidence], Found]:
    return lambda evidence: metric.measure(evidence)[:1]


def _within(metric: PerplexityGap) -> Callable[[Evidence], Found]:
    return lambda evidence: metric.measure(evidence)[1:]


LOG, PLAIN = PerplexityGap(scale="log"), PerplexityGap()
GAPS = (
    Study("perplexity_gap, scale: log", _main(LOG)),
    Study("perplexity_gap", _main(PLAIN)),
)
WITHIN = (
    Study("perplexity_gap, scale: log, within 3 sd", _within(LOG)),
    Study("perplexity_gap, within 3 sd", _within(PLAIN)),
)

WORLDS = (
    World(
        "sentence pairs",
        "the means of log-normal perplexities",
        GAPS,
        pairs,
        of_lognormal,
        rivals(lambda seed: pairs(seed, gap=0.0)),
    ),
    World(
        "sentence pairs without outliers",
        "the value of 200,000 other pairs",
        WITHIN,
        pairs,
        trimmed,
        rivals(lambda seed: pairs(seed, gap=0.0)),
    ),
    World(
        "responses",
        f"the value of {N_MANY:,} other responses",
        (of(RougeL(tokens="words"), "ROUGE-L"), of(UnigramF1(), "unigram F1"), of(BLEU(), "BLEU")),
        texts,
        of_many,
        lambda seed: (texts(seed), texts(seed, rival=True)),
    ),
    World(
        "responses, values of a sample",
        f"the mean of {SAMPLES} other samples",
        (of(BLEU(), "BLEU"), of(Distinct(n=2), "distinct")),
        texts,
        expected,
        lambda seed: (texts(seed), texts(seed, rival=True)),
    ),
)
