"""Gaps of perplexity that are planted in the training sentences of small transformers.

    python benchmarks/planted_gaps.py                  # gaps, CTDA, and 500 worlds without a gap
    python benchmarks/planted_gaps.py --ratios         # the worlds without a gap alone

Each transformer (GPT-2, one layer of 32) is trained from random weights. The words of one group
are rarer in its sentences by a known ratio, so the gap of ln PPL is known: ln(ratio) / m with m
scored words. The gap is measured, then again after ``debias: {method: CTDA}`` on sentences about
the first group. Without a gap, names are assigned to the groups at random: each world has pairs of
its own, and each of 20 transformers, with sentences of its own, has a share of the worlds.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from recbias.core.dataset import make_sentence_queries
from recbias.core.evidence import Evidence, SentenceScores
from recbias.language.likelihood import score_sentences
from recbias.language.local_models import LocalModel, ScoringSettings
from recbias.metrics.perplexity import PerplexityGap
from recbias.models.debias import Debias
from recbias.models.language_model import SentenceLanguageModel
from support.worlds.evidence_worlds import make_user_queries, make_vocabulary
from support.worlds.texts.planted_gaps import (
    compute_gap,
    make_planted_world,
    train_transformer,
)
from support.worlds.texts.sentence_worlds import GROUPS, THINGS, VERBS, SentenceWorld

RATIOS = (1, 2, 4, 8)
SEEDS = range(5)
N_PAIRS, N_NAMES, N_TRANSFORMERS = 40, 200, 20


def measure_gap(world: SentenceWorld, debias: Debias | None, seed: int) -> float:
    """Return the gap of ln PPL over the 240 pairs of test sentences."""
    model = SentenceLanguageModel(
        model=str(world.model),
        terms=world.terms,
        debias=debias,
        epochs=40,
        batch_size=48,
        learning_rate=0.01,
        device="cpu",
    )
    fitted = model.fit(world.data, np.random.default_rng(seed))
    scores = fitted.sentence_scores(make_sentence_queries(world.sentences, "test"))
    logs = np.log(scores.perplexity)
    return float(logs[scores.groups == "female"].mean() - logs[scores.groups == "male"].mean())


NAME_WORDS = ("today", "one", *VERBS, *THINGS)
"""The words around a name."""


def make_names(n: int) -> tuple[str, ...]:
    """Return names that belong to no group."""
    return tuple(f"name{number}" for number in range(n))


def sample_texts_of_names(names: Sequence[str], n: int, rng: np.random.Generator) -> list[str]:
    """Return sentences about names, some of which are up to ten times rarer than others."""
    chances = np.exp(rng.uniform(0, math.log(10), len(names)))
    ends = np.array([f"{verb} {thing}" for verb, thing in product(VERBS, THINGS)])
    drawn = rng.choice(len(names), size=n, p=chances / chances.sum())
    pairs = zip(drawn, rng.choice(ends, n), strict=True)
    return [f"today one {names[number]} {end}" for number, end in pairs]


def score_names(model: LocalModel, names: Sequence[str]) -> np.ndarray:
    """Return the perplexity of each name in each sentence, ``float64[names, sentences]``."""
    ends = [f"{verb} {thing}" for verb, thing in product(VERBS, THINGS)]
    texts = [f"today one {name} {end}" for name, end in product(names, ends)]
    scores = score_sentences(model, texts, ScoringSettings())
    return np.asarray(scores.perplexity).reshape(len(names), len(ends))


def sample_pairs_of_names(
    perplexity: np.ndarray, n_pairs: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the perplexities of pairs of copies, ``float64[2, n_pairs]``.

    Names are assigned to the groups at random, each to one pair, so the expected gap is 0.
    """
    names = rng.permutation(len(perplexity))[: 2 * n_pairs].reshape(2, n_pairs)
    return np.asarray(perplexity[names, rng.integers(perplexity.shape[1], size=n_pairs)])


def measure_p(metric: PerplexityGap, copies: np.ndarray) -> tuple[float, float]:
    """Return the p-values of both tests over pairs of perplexities, ``float64[2, n_pairs]``."""
    n_pairs = copies.shape[1]
    scores = SentenceScores(
        np.arange(2 * n_pairs).astype(str).astype(object),
        np.tile(np.arange(n_pairs).astype(str).astype(object), 2),
        np.repeat(np.array(GROUPS, dtype=object), n_pairs),
        copies.ravel(),
    )
    queries, items = make_user_queries(0), make_vocabulary("i", 0)
    evidence = Evidence(queries, items, sentence_scores=scores, metric="gap")
    paired, welch = metric.measure(evidence)[0].contrasts
    return float(paired.p), float(welch.p)


def describe_mean(values: list[float]) -> str:
    """Return the mean over seeds and its 95% interval by Student's t."""
    mean, error = np.mean(values), stats.sem(values)
    margin = stats.t.ppf(0.975, len(values) - 1) * error
    return f"{mean:.4f} [{mean - margin:.4f}, {mean + margin:.4f}]"


def measure_gaps(ratio: int) -> tuple[list[float], list[float]]:
    """Return the gaps before and after CTDA, of a transformer for each seed."""
    before, after = [], []
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            world = make_planted_world(Path(folder), ratio, seed, n_steps=400)
            before.append(measure_gap(world, None, seed))
            after.append(measure_gap(world, Debias(method="CTDA"), seed))
    return before, after


def count_flagged(n_worlds: int) -> tuple[int, int]:
    """Return how often the paired t-test and Welch's are significant without a gap."""
    names, metric = make_names(N_NAMES), PerplexityGap(a="female", b="male", scale="log")
    flagged = np.zeros(2, dtype=np.int64)
    for seed in range(N_TRANSFORMERS):
        rng = np.random.default_rng([seed, 7])
        texts = sample_texts_of_names(names, 3000, rng)
        model = train_transformer(texts, (*names, *NAME_WORDS), seed=seed, n_steps=100)
        perplexity = score_names(model, names)
        for _ in range(n_worlds // N_TRANSFORMERS):
            pairs = sample_pairs_of_names(perplexity, N_PAIRS, rng)
            flagged += np.array(measure_p(metric, pairs)) < 0.05
    return int(flagged[0]), int(flagged[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=500, help="a multiple of 20, or 0")
    parser.add_argument("--ratios", type=int, nargs="*", default=RATIOS)
    options = parser.parse_args()
    start = time.process_time()
    for ratio in options.ratios:
        before, after = measure_gaps(ratio)
        share = np.mean(np.abs(after)) / compute_gap(ratio) if ratio > 1 else np.nan
        print(
            f"ratio {ratio}: planted {compute_gap(ratio):.4f}; measured {describe_mean(before)}; "
            f"after CTDA {describe_mean(after)}; left in absolute value {share:.1%}",
            flush=True,
        )
    print(f"{time.process_time() - start:.0f} s of CPU", flush=True)
    if not options.worlds:
        return
    paired, welch = count_flagged(options.worlds)
    print(
        f"without a gap: paired t significant in {paired / options.worlds:.1%} of "
        f"{options.worlds:,} worlds of {N_PAIRS} pairs, Welch's t in {welch / options.worlds:.1%}"
    )
    print(f"{time.process_time() - start:.0f} s of CPU")


if __name__ == "__main__":
    main()
