"""Causal language models in this process: loading, generation, and the probability of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, TypeAlias

from recbias.core.errors import MissingExtra, MissingFile
from recbias.core.input_files import has_file
from recbias.core.stage_context import record_fact
from recbias.language.backends import (
    describe_failure,
    load_config,
    load_tokenizer,
    load_weights,
    silence_transformers,
)
from recbias.language.model_folders import Source, find_model, list_model_files

GGUF = ".gguf"
"""The extension of model files of llama.cpp, which hold weights, vocabulary and settings."""

SAMPLED_BYTES = 2**20
"""The bytes at each end of a file that identify it."""

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
    """

    tokenizer: Any
    network: Any

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
        """
        if not self.tokenizer.chat_template:
            return "\n\n".join(message["content"] for message in messages) + "\n\n"
        text: str = self.tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=True
        )
        return text

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
        """Continue texts, all in one batch.

        Args:
            texts: The texts.
            max_tokens: The maximum number of generated tokens.
            temperature: The sampling temperature; 0 is greedy.
            top_p: The probability mass that is sampled from.
            top_k: The number of tokens that are sampled from; 0 is all.
            seed: The seed of the sampling.
        """
        import torch

        self.tokenizer.padding_side = "left"
        batch = self.tokenizer(
            list(texts), return_tensors="pt", padding=True, add_special_tokens=False
        ).to(self.device)
        sampling = {"temperature": temperature, "top_p": top_p, "top_k": top_k}
        options = {"do_sample": True, **sampling} if temperature else {"do_sample": False}
        with torch.inference_mode(), torch.random.fork_rng():
            torch.manual_seed(seed)
            tokens = self.network.generate(
                **batch,
                max_new_tokens=max_tokens,
                pad_token_id=self.tokenizer.pad_token_id,
                **options,
            )
        n_columns = batch.input_ids.shape[1]
        n_prompts = batch.attention_mask.sum(dim=1).tolist()
        return [
            self._read_generation(row[n_columns:].tolist(), n_prompt)
            for row, n_prompt in zip(tokens, n_prompts, strict=True)
        ]

    def _read_generation(self, tokens: list[int], n_prompt: int) -> Generation:
        ends = self._end_tokens
        n = next((index for index, token in enumerate(tokens) if token in ends), len(tokens))
        is_complete = n < len(tokens)
        text = self.tokenizer.decode(tokens[:n], skip_special_tokens=True)
        return Generation(text, n_prompt, n + is_complete, is_complete)

    @property
    def _end_tokens(self) -> set[int]:
        ends = self.network.generation_config.eos_token_id
        tokens = ends if isinstance(ends, list) else [ends]
        return {token for token in (*tokens, self.tokenizer.eos_token_id) if token is not None}


def load_causal_model(
    name: str, revision: str | None = None, *, precision: Precision = "float32"
) -> CausalModel:
    """Return a causal language model, on a GPU if there is one.

    Weights are read from ``safetensors`` or GGUF files, which hold no code. A GGUF file needs the
    packages ``gguf`` and ``accelerate``; its weights are converted to full precision.

    Args:
        name: A folder, a ``.gguf`` file, an installed package that holds either, or a model of
            the Hugging Face hub.
        revision: A commit, tag or branch of the hub; None for its main branch.
        precision: The type of the weights in memory.

    Raises:
        MissingFile: The model is not found, or cannot be read.
        MissingExtra: A package that it needs is not installed.
    """
    import torch
    import transformers

    auto: Any = transformers.AutoModelForCausalLM
    source, gguf = find_causal_model(name, revision)
    dtype = getattr(torch, precision)
    options: dict[str, Any] = {"gguf_file": gguf} if gguf else {}
    if gguf:
        _require_gguf()
    tokenizer = load_tokenizer(source, **options)
    if not gguf:
        options["config"] = load_config(source)
    with silence_transformers(), describe_failure("weights", source):
        network = load_weights(auto, source, dtype=dtype, **options)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return CausalModel(tokenizer, network.to(device).eval())


def find_causal_model(name: str, revision: str | None = None) -> tuple[Source, str]:
    """Return a model and the name of its GGUF file, empty for a folder of ``safetensors``.

    Raises:
        MissingFile: As for ``find_model``.
    """
    local = _find_local(name)
    if local is not None:
        record_fact("model", Path(name).name)
        record_fact("revision", local[0].revision)
        return local
    return find_model(name, revision), ""


def list_causal_model_files(name: str) -> tuple[Path, ...]:
    """Return the sorted files of a model on this machine; none for a model of a hub."""
    try:
        source, gguf = _find_local(name) or (None, "")
    except MissingFile:
        return ()
    if source is None or not gguf:
        return list_model_files(name)
    return (source.folder / gguf,)


@cache
def identify_files(name: str) -> str:
    """Return a digest of the files of a model on this machine; empty for a model of a hub.

    Names, sizes, and the first and last mebibyte of each file are hashed, so that it is fast for
    files of any size.
    """
    digest = sha256()
    paths = list_causal_model_files(name)
    for path in paths:
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as stream:
            digest.update(stream.read(SAMPLED_BYTES))
            stream.seek(max(0, size - SAMPLED_BYTES))
            digest.update(stream.read())
    return f"sha256:{digest.hexdigest()[:16]}" if paths else ""


def _find_local(name: str) -> tuple[Source, str] | None:
    """Return a ``.gguf`` file and its folder, given or in the installed package of this name."""
    path = Path(name).expanduser()
    if path.suffix.lower() == GGUF:
        if not has_file(path):
            message = f"the file {name} does not exist"
            raise MissingFile(message, where="model", remedy="name a .gguf file")
        return Source(path.parent), path.name
    return _find_installed_gguf(name)


def _find_installed_gguf(name: str) -> tuple[Source, str] | None:
    try:
        package = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        return None
    paths = sorted(str(path) for path in package.files or () if path.suffix == GGUF)
    if not paths:
        return None
    path = Path(str(package.locate_file(paths[0])))
    return Source(path.parent, f"{package.name} {package.version}"), path.name


def _require_gguf() -> None:
    for package in ("gguf", "accelerate"):
        try:
            metadata.version(package)
        except metadata.PackageNotFoundError:
            message = f"a GGUF file needs the package {package!r}, which is not installed"
            raise MissingExtra(
                message, where="model", remedy="pip install 'recbias[llm]'"
            ) from None
