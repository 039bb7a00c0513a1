"""Train a small GPT-2 that reads characters, on the training sentences of a dataset.

    python benchmarks/small_language_model.py chbias-model --data $RECBIAS_DATA

It stands for a dialogue model where none can be downloaded: specs of configs/papers/chbias name
its folder. The validation and test sentences are not read.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

from recbias.data.sentences import CHBias
from recbias.language.local_models import LocalModel, ScoringSettings, tokenize_sentences
from recbias.language.terms import load_terms
from recbias.models.debias import Debias, SentenceTraining
from recbias.models.fine_tuning import FineTuning, fine_tune

SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")


def read_sentences(data: Path) -> list[str]:
    dataset = CHBias().load(data, np.random.default_rng(0))
    assert dataset.sentences is not None
    return [str(text) for text in dataset.sentences.take_part("train").texts]


def make_tokenizer(texts: list[str]) -> Any:
    """A token for each character that occurs, and for those of the terms."""
    terms = [
        term
        for pairs in load_terms("chbias").values()
        for pair in (*pairs.targets, *pairs.attributes)
        for term in pair
        if term
    ]
    characters = sorted(set("".join([*texts, *terms])))
    vocabulary = {token: code for code, token in enumerate([*SPECIAL, *characters])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    names = {f"{kind}_token": f"<{kind}>" for kind in ("pad", "unk")}
    fast: Any = transformers.PreTrainedTokenizerFast
    return fast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", **names)


def make_network(tokenizer: Any, width: int, layers: int) -> Any:
    sizes = {"n_embd": width, "n_layer": layers, "n_head": 4, "n_positions": 256}
    tokens = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    library: Any = transformers
    torch.manual_seed(0)
    return library.GPT2LMHeadModel(
        library.GPT2Config(vocab_size=len(tokenizer), **sizes, **tokens)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    arguments = parser.parse_args()
    texts = read_sentences(arguments.data)
    tokenizer = make_tokenizer(texts)
    network = make_network(tokenizer, arguments.width, arguments.layers)
    model = LocalModel("causal", tokenizer, network)
    settings = ScoringSettings().complete(model)
    tokens = tokenize_sentences(model, texts, settings)
    task = SentenceTraining(model, tokens, settings, None, Debias(method="CTDA"))
    plan = FineTuning(
        name="small language model", epochs=arguments.epochs, batch_size=32, learning_rate=2e-3
    )
    start = time.perf_counter()
    curve = fine_tune(task, plan, np.random.default_rng(0))
    losses = curve.values[[0, -1], 0]
    print(
        f"{len(texts):,} sentences, {tokens.values.size:,} characters, {len(tokenizer):,} tokens, "
        f"{sum(each.numel() for each in network.parameters()):,} parameters; "
        f"loss {losses[0]:.2f} to {losses[1]:.2f} in {time.perf_counter() - start:.0f} s"
    )
    tokenizer.save_pretrained(arguments.out)
    network.save_pretrained(arguments.out)


if __name__ == "__main__":
    main()
