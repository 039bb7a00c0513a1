"""Language models of each kind that score sentences, with a few thousand random weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import processors

from recbias.language.local_models import Kind, LocalModel, silence_transformers
from support.models.small_causal import make_network, make_tokenizer
from support.models.small_encoder import make_word_tokenizer

KINDS: Mapping[str, Kind] = {
    "gpt2": "causal",
    "openai": "causal",
    "llama": "causal",
    "gemma3": "causal",
    "t5": "encoder_decoder",
    "bart": "encoder_decoder",
    "bert": "masked",
    "roberta": "masked",
}
CONFIGS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "t5": ("T5Config", {"d_model": 32, "d_ff": 64, "d_kv": 16, "num_layers": 2, "num_heads": 2}),
    "bart": (
        "BartConfig",
        {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2}
        | {"decoder_attention_heads": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
        | {"max_position_embeddings": 128},
    ),
    "bert": ("BertConfig", {"max_position_embeddings": 40}),
    "roberta": ("RobertaConfig", {"max_position_embeddings": 42, "pad_token_id": 0}),
}
ENCODER: Mapping[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
HEADS = {"encoder_decoder": "AutoModelForSeq2SeqLM", "masked": "AutoModelForMaskedLM"}


def make_sentence_model(name: str, **tokenizer: Any) -> LocalModel:
    """Return a model of a type; causal models and decoders read bytes, masked models words."""
    kind = KINDS[name]
    if kind == "causal":
        return LocalModel(kind, make_tokenizer(**tokenizer), make_network(name))
    made = make_word_tokenizer() if kind == "masked" else make_ended_tokenizer()
    return LocalModel(kind, made, _make_network(name, len(made)))


def write_sentence_model(folder: Path, name: str, **tokenizer: Any) -> Path:
    """Write a model and its tokenizer."""
    model = make_sentence_model(name, **tokenizer)
    model.tokenizer.save_pretrained(folder)
    with silence_transformers():
        model.network.save_pretrained(folder)
    return folder


def _make_network(name: str, size: int) -> Any:
    library: Any = transformers
    class_name, sizes = CONFIGS[name]
    tokens = {"pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0}
    others = ENCODER if KINDS[name] == "masked" else tokens
    config = getattr(library, class_name)(**{"vocab_size": size, **others, **sizes})
    with torch.random.fork_rng():
        torch.manual_seed(5)
        network = getattr(library, HEADS[KINDS[name]]).from_config(config).eval()
        for weights in network.parameters():
            if weights.ndim > 1:
                weights.data.normal_(0, 0.3)
    return network


def make_ended_tokenizer() -> Any:
    """Return a tokenizer of bytes that ends each text, with a mask for spans as T5 has."""
    tokenizer = make_tokenizer()
    tokenizer.add_tokens(["<extra_id_0>"], special_tokens=True)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 2)]
    )
    return tokenizer
