"""Language models that give the probability of a sentence: their kinds, and loading them."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from recbias.core.errors import Contradiction
from recbias.core.models.devices import Device
from recbias.language.backends import count_positions, load_config
from recbias.language.causal_model_files import check_causal_model, locate_at_model
from recbias.language.causal_models import Precision, load_with_head
from recbias.language.gguf_reading import read_gguf_once
from recbias.language.model_folders import Source
from recbias.numerics.devices import resolve_device

Kind: TypeAlias = Literal["causal", "encoder_decoder", "masked"]
"""What a model predicts a token from: those before it, these and a text that its encoder reads,
or all others."""

CLASSES = {
    "causal": "AutoModelForCausalLM",
    "encoder_decoder": "AutoModelForSeq2SeqLM",
    "masked": "AutoModelForMaskedLM",
}
"""The class of ``transformers`` for each kind."""


@dataclass(frozen=True, eq=False)
class SentenceModel:
    """A language model with its tokenizer.

    Args:
        kind: What it predicts a token from.
        tokenizer: The tokenizer.
        network: The ``torch`` module with its language-model head, in evaluation mode.
    """

    kind: Kind
    tokenizer: Any
    network: Any

    @property
    def device(self) -> Any:
        """The device of the weights."""
        return self.network.device

    @property
    def max_length(self) -> int:
        """The number of tokens that the model can read."""
        return count_positions(self.network, self.tokenizer)

    @property
    def body(self) -> Any:
        """The part of the network whose last hidden states its language-model head reads."""
        is_pair = self.kind == "encoder_decoder"
        return self.network.get_decoder() if is_pair else self.network.base_model

    @property
    def start_token(self) -> int | None:
        """The token that stands before a text; None if the tokenizer has none.

        Causal models without a start token of their own, such as Qwen, separate texts by the end
        token.
        """
        end = self.tokenizer.eos_token_id if self.kind == "causal" else None
        tokens = (self.tokenizer.bos_token_id, self.tokenizer.cls_token_id, end)
        return next((int(token) for token in tokens if token is not None), None)


def check_sentence_model(name: str, revision: str | None = None) -> Kind:
    """Return the kind of a model without loading its weights; errors as ``load_sentence_model``.

    Raises:
        MissingFile: The model is not found, or its configuration cannot be read.
        MissingExtra: A package that reads a GGUF file is not installed.
        Contradiction: The model has no language-model head.
    """
    source, gguf = check_causal_model(name, revision)
    with locate_at_model():
        return "causal" if gguf else find_kind(source)


def load_sentence_model(
    name: str,
    revision: str | None = None,
    *,
    precision: Precision = "float32",
    device: Device = "auto",
) -> SentenceModel:
    """Return a causal, encoder-decoder or masked language model on a device.

    Weights are read from ``safetensors`` or, of a causal model, from a GGUF file; code in the
    folder of a model is not run.

    Args:
        name: A folder, a ``.gguf`` file, an installed package that contains either, or a model of
            the Hugging Face hub.
        revision: A commit, tag or branch of the hub; None for its main branch.
        precision: The type of the weights in memory.
        device: Where it computes.

    Raises:
        MissingFile: The model is not found, cannot be read, or lacks weights of its head.
        MissingExtra: A package that reads a GGUF file is not installed, or there is no such
            device.
        Contradiction: The model has no language-model head.
    """
    source, gguf = check_causal_model(name, revision)
    with locate_at_model(), read_gguf_once(source.folder / gguf) if gguf else nullcontext():
        kind: Kind = "causal" if gguf else find_kind(source)
        network_device = resolve_device(device)
        return SentenceModel(
            kind, *load_with_head(source, gguf, CLASSES[kind], precision, network_device)
        )


def find_kind(source: Source) -> Kind:
    """Return the kind of a model by its configuration.

    The architecture that the weights were saved from decides; without one, a type that has both
    heads is masked, unless it is configured as a decoder.

    Raises:
        Contradiction: The type of the model has no language-model head.
    """
    from transformers.models.auto import modeling_auto as auto

    config = load_config(source)
    if config.is_encoder_decoder:
        return "encoder_decoder"
    architecture = (config.architectures or [""])[0] or ""
    if architecture.endswith(("ForCausalLM", "LMHeadModel")):
        return "causal"
    is_decoder = getattr(config, "is_decoder", False)
    if config.model_type in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES and not is_decoder:
        return "masked"
    if config.model_type in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return "causal"
    message = f"a model of the type {config.model_type} gives no probabilities of words"
    remedy = "name a causal model (GPT-2, Llama), an encoder-decoder (T5) or a masked model (BERT)"
    raise Contradiction(message, where="model", remedy=remedy)
