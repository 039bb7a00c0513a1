"""Causal language models in this process: loading, generation, and the probability of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from recbias.core.errors import Contradiction
from recbias.core.models.devices import Device
from recbias.language.backends import (
    describe_failure,
    load_config,
    load_tokenizer,
    load_weights,
    silence_transformers,
)
from recbias.language.causal_model_files import check_causal_model, locate_at_model
from recbias.language.gguf_reading import read_gguf_once
from recbias.language.model_folders import Source
from recbias.numerics.devices import resolve_device

Precision: TypeAlias = Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class Generation:
    """A text that a model generated.

    Args:
        text: The text, without special tokens.
        n_prompt: The number of tokens of the prompt.
        n_generated: The number of generated tokens, the end token included.
        is_complete: Whether the model ended the text itself.
    """

    text: str
    n_prompt: int
    n_generated: int
    is_complete: bool


@dataclass(frozen=True, eq=False)
class CausalModel:
    """A causal language model with its tokenizer.

    Args:
        tokenizer: The tokenizer.
        network: The ``torch`` module with its language-model head, in evaluation mode.
        token_type: The token whose embedding is added to that of each token when it generates.
    """

    tokenizer: Any
    network: Any
    token_type: int | None = None

    @property
    def device(self) -> Any:
        """The device of the weights."""
        return self.network.device

    @property
    def max_length(self) -> int:
        """The number of tokens that the model can read."""
        return int(getattr(self.network.config, "max_position_embeddings", 0) or 2**31)

    def render_chat(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return a conversation as the text that the model continues with its reply.

        A model without a chat template reads the contents, separated by blank lines.

        Raises:
            Contradiction: The chat template refuses the conversation, such as a system message.
        """
        from jinja2 import TemplateError

        if not self.tokenizer.chat_template:
            contents = [message["content"] for message in messages]
            return self.add_start("\n\n".join(contents) + "\n\n")
        try:
            text: str = self.tokenizer.apply_chat_template(
                list(messages), tokenize=False, add_generation_prompt=True
            )
        except TemplateError as error:
            message = f"the chat template of the model refuses the messages: {error}"
            remedy = "use a prompt without a system message, or another model"
            raise Contradiction(message, where="model", remedy=remedy) from error
        return text

    def add_start(self, text: str) -> str:
        """Return a text after the start token, where the tokenizer puts one before texts."""
        start = self.tokenizer.bos_token
        if start is None or self.tokenizer.bos_token_id not in self.tokenizer("").input_ids:
            return text
        return text if text.startswith(start) else f"{start}{text}"

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text that nothing stands before."""
        tokens: list[int] = self.tokenizer(
            self.add_start(text), add_special_tokens=False
        ).input_ids
        return tokens

    def generate(
        self,
        texts: Sequence[str],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        top_p: float = 1.0,
        top_k: int = 0,
        seed: int = 0,
    ) -> list[Generation]:
        """Continue texts, all in one batch; of an encoder-decoder, the encoder reads them.

        Args:
            texts: The texts.
            max_tokens: The maximum number of generated tokens.
            temperature: The sampling temperature; 0 is greedy.
            top_p: The probability mass that is sampled from.
            top_k: The number of tokens that are sampled from; 0 is all.
            seed: The seed of the sampling.
        """
        import torch

        has_encoder = self.network.config.is_encoder_decoder
        self.tokenizer.padding_side = "right" if has_encoder else "left"
        batch = self.tokenizer(
            list(texts),
            return_tensors="pt",
            padding=True,
            add_special_tokens=has_encoder,
            return_token_type_ids=False,
        ).to(self.device)
        if self.token_type is not None:
            batch["token_type_ids"] = torch.full_like(batch.input_ids, self.token_type)
        sampling = {"temperature": temperature, "top_p": top_p, "top_k": top_k}
        options = {"do_sample": True, **sampling} if temperature else {"do_sample": False}
        with torch.inference_mode(), torch.random.fork_rng(), silence_transformers():
            torch.manual_seed(seed)
            tokens = self.network.generate(
                **batch,
                max_new_tokens=max_tokens,
                pad_token_id=self.tokenizer.pad_token_id,
                eos_token_id=sorted(self._end_tokens) or None,
                **options,
            )
        n_columns = 1 if has_encoder else batch.input_ids.shape[1]
        n_prompts = batch.attention_mask.sum(dim=1).tolist()
        return [
            self._read_generation(row[n_columns:].tolist(), n_prompt)
            for row, n_prompt in zip(tokens, n_prompts, strict=True)
        ]

    def _read_generation(self, tokens: list[int], n_prompt: int) -> Generation:
        ends = self._end_tokens
        n = next((index for index, token in enumerate(tokens) if token in ends), len(tokens))
        is_complete = n < len(tokens)
        text = self.tokenizer.decode(
            tokens[:n], skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return Generation(text, n_prompt, n + is_complete, is_complete)

    @property
    def _end_tokens(self) -> set[int]:
        ends = self.network.generation_config.eos_token_id
        tokens = ends if isinstance(ends, list) else [ends]
        return {token for token in (*tokens, self.tokenizer.eos_token_id) if token is not None}


def load_causal_model(
    name: str,
    revision: str | None = None,
    *,
    precision: Precision = "float32",
    device: Device = "auto",
) -> CausalModel:
    """Return a causal language model on a device.

    Weights are read from ``safetensors`` or GGUF files, which hold no code. A GGUF file needs the
    packages ``gguf`` and ``accelerate``; its weights are converted to full precision.

    Args:
        name: A folder, a ``.gguf`` file, an installed package that holds either, or a model of
            the Hugging Face hub.
        revision: A commit, tag or branch of the hub; None for its main branch.
        precision: The type of the weights in memory.
        device: Where it computes.

    Raises:
        MissingFile: The model is not found, or cannot be read.
        MissingExtra: A package that it needs is not installed, or there is no such device.
    """
    source, gguf = check_causal_model(name, revision)
    with locate_at_model(), read_gguf_once(source.folder / gguf) if gguf else nullcontext():
        network_device = resolve_device(device)
        return _load(source, gguf, precision, network_device)


def _load(source: Source, gguf: str, precision: Precision, device: Any) -> CausalModel:
    return CausalModel(*load_with_head(source, gguf, "AutoModelForCausalLM", precision, device))


def load_with_head(
    source: Source, gguf: str, auto_class: str, precision: Precision, device: Any
) -> tuple[Any, Any]:
    """Return the tokenizer of a model, and its network with the head of a class on a device.

    Args:
        source: The model.
        gguf: The name of its GGUF file; empty for a folder of ``safetensors``.
        auto_class: The class of ``transformers``: ``AutoModelForCausalLM``.
        precision: The type of the weights.
        device: The ``torch`` device.
    """
    import torch
    import transformers

    options: dict[str, Any] = {"gguf_file": gguf} if gguf else {}
    tokenizer = load_tokenizer(source, **options)
    if not gguf:
        options["config"] = load_config(source)
    auto = getattr(transformers, auto_class)
    with silence_transformers(), describe_failure("weights", source):
        network = load_weights(auto, source, dtype=getattr(torch, precision), **options)
    if tokenizer.pad_token_id is None and tokenizer.eos_token_id is not None:
        tokenizer.pad_token = tokenizer.eos_token
    plain: Any = transformers.GenerationConfig  # without penalties and filters of the model
    if network.can_generate():
        given = network.generation_config
        network.generation_config = plain(
            eos_token_id=given.eos_token_id, decoder_start_token_id=given.decoder_start_token_id
        )
    return tokenizer, network.to(device).eval()
