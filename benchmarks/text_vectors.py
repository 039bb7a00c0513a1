"""How long word vectors take to read, and responses to compare with their references.

The file is generated: 400,000 words with 300 numbers (1 GB of text), of which 10,000 are needed.
The similarities are those of 10,000 pairs of 20 tokens; the other way is a loop over the pairs
with ``scipy.spatial.distance``, whose time is that of its first 500.

    python benchmarks/text_vectors.py [--words 400000]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist, cosine

from recbias.formats.vectors import read_word_vectors
from recbias.metrics.text import count_vectors, embedding_average, greedy_matching

SIZE, N_PAIRS, N_DIRECT, LENGTH = 300, 10_000, 500, 20


def measure_seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def read_generated_file(n_words: int, rng: np.random.Generator) -> None:
    numbers = " ".join(f"{number:.5f}" for number in rng.normal(size=SIZE))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.txt"
        with path.open("w") as file:
            file.writelines(f"word{row} {numbers}\n" for row in range(n_words))
        words = [f"word{row}" for row in range(0, n_words, 40)]
        megabytes = path.stat().st_size / 1e6
        seconds = measure_seconds(lambda: read_word_vectors(path, words))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"read {len(words):,} of {n_words:,} words, {megabytes:.0f} MB: {seconds:.2f} s")
    print(f"peak memory of the process: {peak:.0f} MB")


def compare_pairs(rng: np.random.Generator) -> None:
    vectors = rng.normal(size=(20_000, SIZE))
    texts = rng.integers(0, len(vectors), size=(2, N_PAIRS, LENGTH))
    counts, references = (count_vectors(part.tolist(), len(vectors)) for part in texts)
    tokens = vectors[texts[:, :N_DIRECT]]
    direct = {
        embedding_average: lambda x, y: 1 - cosine(x.mean(axis=0), y.mean(axis=0)),
        greedy_matching: lambda x, y: float(
            sum((1 - cdist(x, y, "cosine")).max(axis=axis).mean() for axis in (0, 1)) / 2
        ),
    }
    for similarity, of_pair in direct.items():
        ours = similarity(counts, references, vectors)
        theirs = [of_pair(x, y) for x, y in zip(*tokens, strict=True)]
        difference = np.abs(ours[:N_DIRECT] - theirs).max()
        seconds = measure_seconds(lambda run=similarity: run(counts, references, vectors))
        loop = measure_seconds(
            lambda run=of_pair: [run(x, y) for x, y in zip(*tokens, strict=True)]
        )
        print(
            f"{similarity.__name__}: {seconds:.2f} s for {N_PAIRS:,} pairs, the loop "
            f"{loop * N_PAIRS / N_DIRECT:.2f} s, largest difference {difference:.1e}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--words", type=int, default=400_000)
    arguments = parser.parse_args()
    generator = np.random.default_rng(0)
    read_generated_file(arguments.words, generator)
    compare_pairs(generator)
