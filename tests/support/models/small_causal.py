"""Causal language models with a few thousand random weights, which read bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from recbias.core.dataset import FloatArray
from recbias.language.local_models import LocalModel, silence_transformers

PAD, START, END = "<pad>", "<s>", "</s>"

SIZES: Mapping[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 512,
}
TOKENS: Mapping[str, Any] = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
ONE_HEAD: Mapping[str, Any] = {"num_key_value_heads": 1, "head_dim": 16}
BOTH_KINDS = ("sliding_attention", "full_attention")


def make_config(kind: str, **changes: Any) -> Any:
    """Return a configuration; windows are of 8 tokens, shorter than any context with a text."""
    library: Any = transformers
    gpt2 = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 512}
    window = {**SIZES, **ONE_HEAD, "sliding_window": 8}
    settings: dict[str, tuple[str, Mapping[str, Any]]] = {
        "gpt2": ("GPT2Config", gpt2),
        "openai": ("OpenAIGPTConfig", gpt2),
        "llama": ("LlamaConfig", SIZES),
        "qwen3": ("Qwen3Config", {**SIZES, **ONE_HEAD}),
        "mistral": ("MistralConfig", {**SIZES, "num_key_value_heads": 1, "sliding_window": 8}),
        "gemma3": ("Gemma3TextConfig", {**window, "layer_types": list(BOTH_KINDS)}),
        "bloom": ("BloomConfig", {"hidden_size": 32, "n_layer": 2, "n_head": 2}),
        "mamba": ("MambaConfig", {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}),
    }
    name, values = settings[kind]
    return getattr(library, name)(**{"vocab_size": 259, **values, **TOKENS, **changes})


def make_tokenizer(*, adds_start: bool = False, chat_template: str | None = None) -> Any:
    """Return a tokenizer whose tokens are the bytes, after three special tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {text: code for code, text in enumerate([PAD, START, END, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if adds_start:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{START} $A", special_tokens=[(START, 1)]
        )
    fast: Any = transformers.PreTrainedTokenizerFast
    made = fast(tokenizer_object=tokenizer, pad_token=PAD, bos_token=START, eos_token=END)
    made.chat_template = chat_template
    return made


def make_network(kind: str, scale: float = 0.3, **changes: Any) -> Any:
    """Return a network; weights of this scale make its probabilities differ."""
    auto: Any = transformers.AutoModelForCausalLM
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = auto.from_config(make_config(kind, **changes)).eval()
        for weights in network.parameters():
            if weights.ndim > 1:
                weights.data.normal_(0, scale)
    network.config.dtype = "float32"
    return network


def write_small_causal(folder: Path, kind: str = "llama", **tokenizer: Any) -> Path:
    """Write a model and its tokenizer."""
    make_tokenizer(**tokenizer).save_pretrained(folder)
    with silence_transformers():
        make_network(kind).save_pretrained(folder)
    return folder


def score_separately(model: LocalModel, context: str, texts: Sequence[str]) -> FloatArray:
    """Return the score of each text by one pass over the context and the text: the definition."""
    context_ids, scores = model.encode(context), list[float]()
    for text in texts:
        tokens = model.tokenizer(text, add_special_tokens=False).input_ids
        with torch.inference_mode():
            ids = torch.tensor([[*context_ids, *tokens]], device=model.device)
            logits = model.network(ids).logits[0].cpu()
        rows = logits[len(context_ids) - 1 : -1].double().log_softmax(dim=-1)
        scores.append(rows[range(len(tokens)), tokens].mean().item())
    return np.array(scores)
