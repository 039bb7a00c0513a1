"""Training sentences in which the words of one group are rarer, and a transformer trained on them.

The sentences hold every combination of their words equally often, but those about the first group
once and those about the second ``ratio`` times. A model that has learned them gives the words of
the first group 1 / ratio of the probability of their counterparts and is equal elsewhere, so

    ln PPL(first) - ln PPL(second) = ln(ratio) / m

with m the number of scored words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import transformers

from recbias.core.dataset import Sentences
from recbias.language.local_models import (
    LocalModel,
    ScoringSettings,
    silence_transformers,
    tokenize_sentences,
)
from recbias.models.debias import Debias, SentenceTraining
from recbias.models.fine_tuning import FineTuning, fine_tune
from support.worlds.texts.sentence_worlds import (
    ATTRIBUTES,
    GROUPS,
    TARGETS,
    TERMS,
    THINGS,
    VERBS,
    WORDS,
    SentenceWorld,
    make_tokenizer,
)

N_SCORED = 5
"""The scored words of a sentence: all but the first."""

COPIES = tuple(
    (f"today one {adjective} {first} {end}", f"today one {adjective} {second} {end}")
    for (first, second), (adjective, _), verb, thing in product(TARGETS, ATTRIBUTES, VERBS, THINGS)
    for end in (f"{verb} {thing}",)
)
"""The 240 pairs of sentences."""


def compute_gap(ratio: int) -> float:
    """Return the gap of ln PPL of a model that has learned the sentences."""
    return math.log(ratio) / N_SCORED


def repeat_copies(ratio: int) -> list[str]:
    """Return the sentences about the first group once, and those about the second repeated."""
    return [first for first, _ in COPIES] + [second for _, second in COPIES] * ratio


def train_transformer(
    texts: Sequence[str],
    words: Sequence[str] = WORDS,
    *,
    seed: int = 0,
    n_steps: int = 200,
    layers: int = 1,
) -> LocalModel:
    """Return a GPT-2 of a width of 32 after a training from random weights."""
    tokenizer = make_tokenizer(words)
    library: Any = transformers
    sizes = {"n_embd": 32, "n_layer": layers, "n_head": 2, "n_positions": 16}
    tokens = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    drop = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = library.GPT2Config(vocab_size=len(tokenizer), **sizes, **tokens, **drop)
        model = LocalModel("causal", tokenizer, library.GPT2LMHeadModel(config))
    settings = ScoringSettings().complete(model)
    sentences = tokenize_sentences(model, texts, settings)
    task = SentenceTraining(model, sentences, settings, None, Debias(method="CTDA"))
    batch_size = 64
    plan = FineTuning(
        name="planted gap",
        epochs=math.ceil(n_steps * batch_size / len(texts)),
        batch_size=batch_size,
        learning_rate=0.01,
        warmup=0.0,
        weight_decay=0.0,
    )
    fine_tune(task, plan, np.random.default_rng(seed))
    return model


def write_model(model: LocalModel, folder: Path) -> Path:
    """Write a model with its tokenizer."""
    model.tokenizer.save_pretrained(folder)
    with silence_transformers():
        model.network.save_pretrained(folder)
    return folder


def make_planted_world(
    folder: Path, ratio: int, seed: int = 0, n_steps: int = 200
) -> SentenceWorld:
    """Return a trained transformer, the terms, and sentences to debias and to measure it on.

    Those to train on are about the first group, as those of CHBias are; all pairs are for testing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "terms.yaml").write_text(TERMS, encoding="utf-8")
    model = train_transformer(repeat_copies(ratio), seed=seed, n_steps=n_steps)
    rows: list[tuple[str | None, ...]] = [
        (f"train-{number}", "train", None, GROUPS[0], first, "gender")
        for number, (first, _) in enumerate(COPIES)
    ]
    rows += [
        (f"test-{number}-{group}", "test", f"test-{number}", group, text, "gender")
        for number, pair in enumerate(COPIES)
        for group, text in zip(GROUPS, pair, strict=True)
    ]
    columns = ["id", "part", "pair_id", "group", "text", "category"]
    sentences = Sentences(pd.DataFrame(rows, columns=columns, dtype=object))
    return SentenceWorld(write_model(model, folder / "model"), folder / "terms.yaml", sentences)
