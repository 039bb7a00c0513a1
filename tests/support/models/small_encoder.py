"""A language model with a few thousand random weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = ("soup", "bread", "tea", "beef", "rice", "good", "bad", "the", "was", "a", "and", "very")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def make_word_tokenizer(words: Sequence[str] = WORDS) -> Any:
    """Return a tokenizer of words with the special tokens of BERT."""
    vocabulary = {word: code for code, word in enumerate((*SPECIAL, *words))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ends
    )
    names = {f"{kind}_token": f"[{kind.upper()}]" for kind in ("pad", "unk", "cls", "sep", "mask")}
    fast: Any = transformers.PreTrainedTokenizerFast
    return fast(tokenizer_object=tokenizer, **names)


def write_small_encoder(folder: Path, words: Sequence[str] = WORDS, *, head: bool = False) -> Path:
    """Write a BERT with two layers and a vocabulary of a dozen words, and its tokenizer.

    With ``head`` it is a masked language model whose predictions differ.
    """
    tokenizer = make_word_tokenizer(words)
    tokenizer.save_pretrained(folder)
    sizes: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), intermediate_size=32, max_position_embeddings=40, **sizes
    )
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model: Any = (
            transformers.BertForMaskedLM(config) if head else transformers.BertModel(config)
        )
        for weights in model.parameters() if head else ():
            weights.data.normal_(0, 0.5)
    model.save_pretrained(folder)
    return folder
