"""Pairs of sentences, their terms, and a language model whose probabilities are known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

from recbias.core.dataset import Sentences, TrainingData
from recbias.language.local_models import silence_transformers
from support.worlds.small_worlds import make_interactions

TARGETS = (("she", "he"), ("aunt", "uncle"), ("sister", "brother"), ("mother", "father"))
ATTRIBUTES = (("timid", "bold"), ("quiet", "loud"), ("idle", None))
VERBS, THINGS = ("likes", "buys", "draws", "sees"), ("tea", "maps", "boats", "rain", "chess")
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
GROUPS = ("female", "male")
TERMS = f"""\
whole_words: true
categories:
  gender:
    groups: [{GROUPS[0]}, {GROUPS[1]}]
    targets: [{", ".join(f"[{first}, {second}]" for first, second in TARGETS)}]
    attributes: [[timid, bold], [quiet, loud], [idle, null]]
"""
WORDS = (
    *(word for pair in TARGETS for word in pair),
    *(word for pair in ATTRIBUTES for word in pair if word),
    *("today", "one", *VERBS, *THINGS),
)


@dataclass(frozen=True)
class SentenceWorld:
    """The files of a world: a model and terms; and its sentences."""

    model: Path
    terms: Path
    sentences: Sentences

    @property
    def data(self) -> TrainingData:
        """What training may see, without the test sentences."""
        rows = make_interactions([(0, 0)])
        return TrainingData(rows, sentences=self.sentences.without_test())

    def write_tables(self, folder: Path) -> Mapping[str, Any]:
        """Write the sentences; return the dataset of a spec."""
        paths = {}
        for part in ("train", "validation", "test"):
            frame = self.sentences.take_part(part).frame.drop(columns="part")
            if frame.empty:
                continue
            frame = frame if part != "train" else frame.drop(columns=["pair_id", "group"])
            frame.to_csv(folder / f"{part}.csv", index=False)
            paths[part] = str(folder / f"{part}.csv")
        return {"name": "sentence_tables", **paths}


def make_world(folder: Path, probabilities: Mapping[str, float] | None = None) -> SentenceWorld:
    """Return a world of 40 training sentences and 20 pairs in each of the other parts."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "terms.yaml").write_text(TERMS, encoding="utf-8")
    model = write_unigram_model(folder / "model", probabilities or {})
    return SentenceWorld(model, folder / "terms.yaml", make_sentences())


def make_sentences(n_train: int = 40, n_pairs: int = 20, seed: int = 0) -> Sentences:
    """Return sentences about women, and pairs."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[str | None, ...]] = [
        (f"train-{number}", "train", None, GROUPS[0], text[0], "gender")
        for number, text in enumerate(sample_copies(n_train, rng))
    ]
    for part in ("validation", "test"):
        rows += [
            (f"{part}-{number}-{group}", part, f"{part}-{number}", group, text, "gender")
            for number, copies in enumerate(sample_copies(n_pairs, rng))
            for group, text in zip(GROUPS, copies, strict=True)
        ]
    columns = ["id", "part", "pair_id", "group", "text", "category"]
    return Sentences(pd.DataFrame(rows, columns=columns, dtype=object))


def sample_copies(n: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Return pairs of copies, such as ``today one timid aunt likes tea``."""
    copies = []
    for _ in range(n):
        pair = TARGETS[rng.integers(len(TARGETS))]
        adjective, _ = ATTRIBUTES[rng.integers(len(ATTRIBUTES))]
        end = f"{VERBS[rng.integers(len(VERBS))]} {THINGS[rng.integers(len(THINGS))]}"
        first, second = (f"today one {adjective} {word} {end}" for word in pair)
        copies.append((first, second))
    return copies


def make_tokenizer(words: Sequence[str] = WORDS) -> Any:
    """Return a tokenizer of whole words between spaces."""
    vocabulary = {word: code for code, word in enumerate((*SPECIAL, *words))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast: Any = transformers.PreTrainedTokenizerFast
    names = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return fast(tokenizer_object=tokenizer, **names)


def write_unigram_model(folder: Path, probabilities: Mapping[str, float]) -> Path:
    """Write a GPT-2 that predicts the same words after any text.

    The last normalisation returns a constant and the head has the logarithms of the
    probabilities, so they are known exactly. Words without one share the rest.
    """
    names = (*SPECIAL, *WORDS)
    rest = (1 - math.fsum(probabilities.values())) / (len(names) - len(probabilities))
    chances = torch.tensor([probabilities.get(word, rest) for word in names])
    library: Any = transformers
    tokens = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 1, "n_positions": 32}
    drop = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    config = library.GPT2Config(
        vocab_size=len(names), tie_word_embeddings=False, **tokens, **sizes, **drop
    )
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(4)
        network = library.GPT2LMHeadModel(config)
        network.transformer.wte.weight.normal_()
        network.transformer.ln_f.weight.zero_()
        network.transformer.ln_f.bias.copy_(torch.eye(8)[0])
        network.lm_head.weight.normal_()  # all but the first column meet zeros
        network.lm_head.weight[:, 0] = chances.log()
    make_tokenizer().save_pretrained(folder)
    with silence_transformers():
        network.save_pretrained(folder)
    return folder
