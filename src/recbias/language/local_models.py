"""Pretrained language models on this machine: loading, generation, and probabilities of words.

Weights are read from ``safetensors`` or GGUF files only, and no code of a model folder is run.
Causal models continue texts, masked models predict masked words, and all give the probabilities
of the tokens of sentences.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from io import StringIO
from typing import Any, Literal, TypeAlias

import numpy as np

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, BoolArray, FloatArray
from recbias.core.errors import Contradiction, MissingFile, UnknownIdentifier, UserError
from recbias.core.machine import is_shortage, release_between
from recbias.core.plugins import Device
from recbias.kernels.devices import resolve_device
from recbias.language.model_files import COMPLETE_MODEL, CONFIG, Source, find_model

_LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
"""Read local files only, and run no code from a model folder."""

_KERNELS = ("_attn_implementation", "_experts_implementation")
"""Settings that may name a package, or code on a hub."""


def check_model(name: str, revision: str | None = None) -> None:
    """Refuse a language model that is not available, or whose tokenizer cannot be loaded."""
    source = find_model(name, revision)
    _load_config(source)
    load_tokenizer(source)


def load_tokenizer(source: Source) -> Any:
    """Return the tokenizer of a model; MissingFile if it cannot be read or is not a fast one."""
    from transformers import AutoTokenizer

    with silence_transformers(), _describe_failure("tokenizer", source):
        options = {"gguf_file": source.gguf} if source.gguf else {}
        tokenizer = AutoTokenizer.from_pretrained(source.folder, **_LOCAL, **options)
        tokenizer("text")  # some faults of its settings show only now
    if not tokenizer.is_fast:
        kind = type(tokenizer).__name__
        message = f"the tokenizer in {source.folder} ({kind}) is not a fast tokenizer"
        raise MissingFile(
            message, where=source.setting, remedy="name a model with a tokenizer.json"
        )
    if tokenizer.vocab_size <= len(tokenizer.all_special_tokens):  # made without files
        message = f"{source.folder} has no vocabulary of a tokenizer"
        raise MissingFile(
            message, where=source.setting, remedy="add tokenizer.json from the publisher"
        )
    return tokenizer


def load_encoder(source: Source, *, weights: bool = True) -> Any:
    """Return the encoder of a model as a ``torch`` module in ``float32``, in evaluation mode.

    Of an encoder-decoder model, the encoder is returned. Weights are read from ``safetensors``
    only, as other weight files can hold code; without ``weights`` they are uninitialised, to be
    filled from a stored state. MissingFile if a file cannot be read.
    """
    import transformers

    auto: Any = transformers.AutoModel
    config = _load_config(source)
    with silence_transformers(), _describe_failure("weights", source):
        if weights:
            model = _load_weights(auto, source, config=config, dtype=config.dtype)
        else:
            model = auto.from_config(config, trust_remote_code=False)
    return (model.get_encoder() if config.is_encoder_decoder else model).float().eval()


def load_token_classifier(source: Source, device: Device = "auto") -> Any:
    """Return a token classifier in evaluation mode on a device; as ``load_encoder``."""
    import transformers

    auto: Any = transformers.AutoModelForTokenClassification
    config = _load_config(source)
    with silence_transformers(), _describe_failure("weights", source):
        model = _load_weights(auto, source, config=config, dtype=config.dtype)
    return model.to(resolve_device(device)).eval()


def _load_config(source: Source) -> Any:
    """Return a configuration with weights in ``float32``."""
    import torch
    import transformers

    _refuse_own_type(source)
    auto: Any = transformers.AutoConfig
    with silence_transformers(), _describe_failure(CONFIG, source):
        config = auto.from_pretrained(source.folder, **_LOCAL)
    inner: Any = transformers.PreTrainedConfig  # as that of the text of a multimodal model
    for part in (config, *(value for value in vars(config).values() if isinstance(value, inner))):
        if getattr(part, "quantization_config", None):
            message = f"the weights in {source.folder} are quantised (quantization_config)"
            remedy = "name the model in full precision that it was made of, or its GGUF file"
            raise MissingFile(message, where=source.setting, remedy=remedy)
        for name in _KERNELS:
            setattr(part, name, None)
    config.dtype = torch.float32
    config.transformers_weights = None
    return config


def _refuse_own_type(source: Source) -> None:
    """Refuse a model that is defined by code in its folder, or on a hub."""
    import transformers

    types: Any = transformers.CONFIG_MAPPING
    try:
        config = json.loads((source.folder / CONFIG).read_text(encoding="utf-8"))
        kind, has_code = config.get("model_type"), "auto_map" in config
    except (OSError, ValueError, AttributeError, RecursionError):
        return  # the library says why
    if has_code and kind not in types:
        message = f"the model in {source.folder} ({kind}) is defined by code, which is not run"
        remedy = "name a model of a type that transformers has; or score the sentences elsewhere"
        raise MissingFile(message, where=source.setting, remedy=remedy)


def _load_weights(auto: Any, source: Source, **options: Any) -> Any:
    """Return a model with all its weights; missing ones would be initialised at random."""
    options |= {"use_safetensors": True, "output_loading_info": True, **_LOCAL}
    model, info = auto.from_pretrained(source.folder, **options)
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key)
    if missing:
        message = (
            f"the weights in {source.folder} belong to another model: no {', '.join(missing)}"
        )
        raise MissingFile(message, where=source.setting, remedy=COMPLETE_MODEL)
    return model


def count_positions(network: Any, tokenizer: Any) -> int:
    """Return the number of tokens that a model can read.

    Encoders such as RoBERTa count positions from behind the padding index, so the first position
    embeddings are not available to tokens.
    """
    n_tokens = int(tokenizer.model_max_length)
    n_positions = getattr(network.config, "max_position_embeddings", None) or 0
    if n_positions <= 0:
        return n_tokens
    n_unavailable = 0
    for name, module in network.named_modules():
        padding_index = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and padding_index is not None:
            n_unavailable = max(n_unavailable, padding_index + 1)
    return min(n_tokens, n_positions - n_unavailable)


@contextmanager
def _describe_failure(content: str, source: Source) -> Iterator[None]:
    """Turn an error of the libraries into one that names the model folder."""
    import torch

    try:
        yield
    except (UserError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # the libraries raise any error for files that they do not expect
        if is_shortage(error):
            raise
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        if "mismatched" in str(error):
            reason = f"they do not match {CONFIG}"
        message = f"the {content} in {source.folder} cannot be read: {reason}"
        remedy = "download or save the model again, or name another"
        raise MissingFile(message, where=source.setting, remedy=remedy) from error


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Disable progress bars, and warnings about weights that are unused on purpose."""
    import transformers

    logging: Any = transformers.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


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


Kind: TypeAlias = Literal["causal", "encoder_decoder", "masked"]
"""What a model predicts a token from: those before it, these and a text that its encoder reads,
or all others."""

_CLASSES = {
    "causal": "AutoModelForCausalLM",
    "encoder_decoder": "AutoModelForSeq2SeqLM",
    "masked": "AutoModelForMaskedLM",
}


@dataclass(frozen=True, eq=False)
class LocalModel:
    """A language model with its tokenizer.

    Args:
        kind: What it predicts a token from.
        tokenizer: The tokenizer.
        network: The ``torch`` module with its language-model head, in evaluation mode.
        token_type: The token whose embedding is added to that of each token when it generates.
    """

    kind: Kind
    tokenizer: Any
    network: Any
    token_type: int | None = None

    @property
    def device(self) -> Any:
        """The device of the weights."""
        return self.network.device

    @property
    def n_positions(self) -> int:
        """The number of tokens that the network can read, whatever its tokenizer says."""
        return int(getattr(self.network.config, "max_position_embeddings", 0) or 2**31)

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

    def find_token(self, word: str) -> int | None:
        """Return the token of a word within a sentence, None if the tokenizer divides it."""
        tokens = self.tokenizer(f" {word}", add_special_tokens=False).input_ids
        is_known = len(tokens) == 1 and tokens[0] != self.tokenizer.unk_token_id
        return int(tokens[0]) if is_known else None

    def predict(
        self,
        sentences: Sequence[str],
        spans: AnyArray,
        tokens: AnyArray,
        *,
        tokens_per_batch: int = 4096,
        is_normalized: bool = True,
    ) -> tuple[FloatArray, BoolArray]:
        """Return ln p(token | the sentence with one span masked), and which were shortened.

        All masks of a batch are in one pass; the head is applied to the masks only. Of a sentence
        that is longer than the model can read, the tokens around the mask are read.

        Args:
            sentences: The sentences.
            spans: The sentence, and the first and last character of each span, ``int64[m, 3]``.
            tokens: The tokens whose probabilities are returned, ``int64[t]``.
            tokens_per_batch: The number of tokens in a pass, padding included.
            is_normalized: Whether to normalize over the vocabulary; without, the logits of the
                other tokens are not computed, and each row has a constant of its own.

        Returns:
            ``float64[m, t]``, and of each span whether its sentence was shortened, ``bool[m]``.
        """
        import torch

        masked = _MaskedSpans.read(self, sentences, spans)
        values = np.empty((len(spans), len(tokens)))
        columns = torch.from_numpy(np.asarray(tokens, dtype=np.int64)).to(self.network.device)
        distinct, places = masked.find_distinct()
        batches = batch_by_tokens(masked.lengths[distinct], tokens_per_batch, _MAX_MASKS)
        for part in release_between(batches):
            rows = distinct[part]
            ids, is_token, positions = masked.fill(rows)
            with _select_logits(self.network, None if is_normalized else columns):
                logits = self._predict_masks(ids, is_token, positions).float()
            if is_normalized:
                logits = logits[:, columns] - logits.logsumexp(-1, keepdim=True)
            values[rows] = logits.double().cpu().numpy()
        return values[distinct][places], masked.is_shortened

    def _predict_masks(self, ids: AnyArray, is_token: BoolArray, positions: AnyArray) -> Any:
        """Return the logits at one position of each row, ``(n, vocabulary)``."""
        import torch

        mask = torch.from_numpy(is_token).long().to(self.device)
        inputs = {"input_ids": torch.from_numpy(ids).to(self.device), "attention_mask": mask}
        with torch.inference_mode():
            return compute_logits(self.network, self.body, inputs, np.arange(len(ids)), positions)


def load_model(
    name: str,
    revision: str | None = None,
    *,
    kind: Kind | None = None,
    precision: Precision = "float32",
    device: Device = "auto",
) -> LocalModel:
    """Return a language model on a device.

    Weights are read from ``safetensors`` or, of a causal model, from a GGUF file, which needs the
    packages ``gguf`` and ``accelerate`` and is converted to full precision.

    Args:
        name: A folder, a ``.gguf`` file, an installed package that contains either, or a model of
            the Hugging Face hub.
        revision: A commit, tag or branch of the hub; None for its main branch.
        kind: The head that is loaded; None for that of the configuration.
        precision: The type of the weights in memory.
        device: Where the model computes.

    Raises:
        MissingFile: The model is not found, cannot be read, or lacks weights of its head.
        MissingExtra: A package that it needs is not installed, or there is no such device.
        Contradiction: The model has no language-model head.
    """
    import torch
    import transformers

    source = find_model(name, revision, setting="model")
    kind, target = kind or _find_kind(source), resolve_device(device)
    tokenizer = load_tokenizer(source)
    if kind == "masked" and tokenizer.mask_token_id is None:
        message = f"the tokenizer of {name} has no mask token: it is no masked language model"
        remedy = "name a masked model such as bert-base-uncased, or a causal one as such"
        raise Contradiction(message, where="model", remedy=remedy)
    auto, gguf = getattr(transformers, _CLASSES[kind]), source.gguf
    options = {"gguf_file": gguf} if gguf else {"config": _load_config(source)}
    bar = redirect_stderr(StringIO()) if gguf else nullcontext()  # tqdm ignores its settings
    with silence_transformers(), bar, _describe_failure("weights", source):
        network = _load_weights(auto, source, dtype=getattr(torch, precision), **options)
    if tokenizer.pad_token_id is None and tokenizer.eos_token_id is not None:
        tokenizer.pad_token = tokenizer.eos_token
    plain: Any = transformers.GenerationConfig  # without penalties and filters of the model
    if network.can_generate():
        given = network.generation_config
        network.generation_config = plain(
            eos_token_id=given.eos_token_id, decoder_start_token_id=given.decoder_start_token_id
        )
    return LocalModel(kind, tokenizer, network.to(target).eval())


def check_sentence_model(name: str, revision: str | None = None) -> Kind:
    """Return the kind of a model without loading its weights; errors as ``load_model``."""
    return _find_kind(find_model(name, revision, setting="model"))


def _find_kind(source: Source) -> Kind:
    """Return the kind of a model by its configuration.

    The architecture that the weights were saved from decides; without one, a type that has both
    heads is masked, unless it is configured as a decoder.

    Raises:
        Contradiction: The type of the model has no language-model head.
    """
    from transformers.models.auto import modeling_auto as auto

    if source.gguf:
        return "causal"
    config = _load_config(source)
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


_ROWS = 64
"""The number of rows of logits that a CPU normalises together, so that they stay in the cache."""

_DEVICE_LOGITS = 2**26  # the number of logits that a GPU normalises together, in single precision


def compute_logits(
    network: Any, body: Any, inputs: Mapping[str, Any], rows: AnyArray, columns: AnyArray
) -> Any:
    """Return the logits at some positions of a batch, a ``torch`` tensor ``(m, vocabulary)``.

    A head that reads the last hidden states of the body computes no others.

    Args:
        network: The ``torch`` module with its language-model head.
        body: The part of the network before the head.
        inputs: The arguments of a pass.
        rows: The text of each position, ``int64[m]``.
        columns: Its token, ``int64[m]``.
    """
    import torch

    places = tuple(torch.from_numpy(indices).to(network.device) for indices in (rows, columns))

    def select(_module: Any, _inputs: Any, output: Any) -> None:
        output.last_hidden_state = output.last_hidden_state[places][None]

    handle = None if body is network else body.register_forward_hook(select)
    try:
        logits = network(**inputs).logits
    finally:
        if handle is not None:
            handle.remove()
    return logits[0] if logits.shape[:2] == (1, rows.size) else logits[places]


def read_targets(logits: Any, targets: AnyArray, rows: AnyArray) -> FloatArray:
    """Return the log-probability of each target token, ``float64[m]``.

        ln p = logit of the target - ln Σ_v exp(logit of v)

    Args:
        logits: The logits of the vocabulary, a ``torch`` tensor ``(n, vocabulary)``.
        targets: The target tokens, ``int64[m]``.
        rows: The row of logits of each target, ``int64[m]``.

    >>> import numpy as np, torch
    >>> logits = torch.log(torch.tensor([[0.5, 0.25, 0.25]]))
    >>> np.exp(read_targets(logits, np.array([1, 0]), np.array([0, 0]))).round(6).tolist()
    [0.25, 0.5]
    """
    import torch

    size = _ROWS if logits.device.type == "cpu" else max(1, _DEVICE_LOGITS // logits.shape[1])
    blocks = [logits[start : start + size] for start in range(0, len(logits), size)]
    normalizers = torch.cat([block.float().logsumexp(-1) for block in blocks])
    places = torch.from_numpy(rows).to(logits.device)
    columns = torch.from_numpy(targets).to(logits.device)
    values = logits[places, columns].float() - normalizers[places]
    array: FloatArray = values.double().cpu().numpy()
    return array


def batch_by_tokens(
    lengths: AnyArray, max_tokens: int, max_texts: int = 2**31
) -> Iterator[AnyArray]:
    """Yield batches of positions of texts of similar length, shortest first.

    Args:
        lengths: The number of tokens of each text, ``int64[n]``.
        max_tokens: The number of tokens of a batch, padding included; a longer text is a batch of
            its own.
        max_texts: The number of texts of a batch.

    >>> [batch.tolist() for batch in batch_by_tokens(np.array([3, 1, 2, 3]), 4)]
    [[1, 2], [0], [3]]
    """
    order = np.argsort(lengths, kind="stable")
    start = 0
    while start < order.size:
        candidates = order[start : start + min(max_tokens, max_texts)]
        n_tokens = lengths[candidates] * np.arange(1, candidates.size + 1)
        size = max(1, int(np.searchsorted(n_tokens, max_tokens, side="right")))
        yield order[start : start + size]
        start += size


def pad_tokens(texts: Sequence[Sequence[int]], padding: int | None) -> tuple[AnyArray, BoolArray]:
    """Return texts of tokens as one array, ``int64[n, longest]``, and which are not padding."""
    lengths = np.array([len(tokens) for tokens in texts])
    is_token = np.arange(lengths.max()) < lengths[:, None]
    padded = np.full(is_token.shape, padding or 0, dtype=np.int64)
    padded[is_token] = np.concatenate(texts)
    return padded, is_token


_MAX_MASKS = 256
"""The number of masks in a batch: the logits of each are as many as the vocabulary has tokens."""


@contextmanager
def _select_logits(network: Any, tokens: Any) -> Iterator[None]:
    """Compute the logits of some tokens only; None for all."""
    from torch.nn.functional import linear

    output = network.get_output_embeddings()

    def project(states: Any) -> Any:
        bias = None if output.bias is None else output.bias[tokens]
        return linear(states, output.weight[tokens], bias)

    if tokens is not None:
        output.forward = project
    try:
        yield
    finally:
        vars(output).pop("forward", None)


@dataclass(frozen=True, eq=False)
class _MaskedSpans:
    """Sentences with one masked span each, between the special tokens of the model.

    Args:
        model: The model.
        ids: The tokens of each sentence, without special tokens.
        sentence: The sentence of each span, ``int64[m]``.
        starts: The first token of each span, ``int64[m]``.
        ends: The token after each span, ``int64[m]``.
    """

    model: LocalModel
    ids: list[list[int]]
    sentence: AnyArray
    starts: AnyArray
    ends: AnyArray

    @classmethod
    def read(cls, model: LocalModel, sentences: Sequence[str], spans: AnyArray) -> _MaskedSpans:
        """Return sentences with spans: the sentence, and the first and last character of each."""
        options = {"add_special_tokens": False, "return_offsets_mapping": True, "verbose": False}
        encoded = model.tokenizer(list(sentences), **options) if sentences else {}
        starts, ends = np.empty((2, len(spans)), dtype=np.int64)
        order = np.argsort(spans[:, 0], kind="stable")
        bounds = np.searchsorted(spans[order, 0], np.arange(len(sentences) + 1))
        for row in range(len(sentences)):
            of_row = order[bounds[row] : bounds[row + 1]]
            if of_row.size:
                places = np.array(encoded["offset_mapping"][row], dtype=np.int64).reshape(-1, 2)
                starts[of_row] = np.searchsorted(places[:, 1], spans[of_row, 1], side="right")
                ends[of_row] = np.searchsorted(places[:, 0], spans[of_row, 2], side="left")
        ids = encoded.get("input_ids", [])
        return cls(model, ids, spans[:, 0], starts, np.maximum(starts, ends))

    @cached_property
    def special(self) -> tuple[list[int], list[int]]:
        """The tokens before and after a text."""
        tokenizer = self.model.tokenizer
        ids = tokenizer(tokenizer.mask_token).input_ids
        at = ids.index(tokenizer.mask_token_id)
        return ids[:at], ids[at + 1 :]

    @cached_property
    def room(self) -> int:
        """The number of tokens of a sentence that can be read."""
        return self.model.max_length - sum(map(len, self.special))

    @cached_property
    def full_lengths(self) -> AnyArray:
        """The number of tokens of each sentence with its mask, ``int64[m]``."""
        sizes = np.array([len(tokens) for tokens in self.ids], dtype=np.int64)
        return np.asarray(sizes[self.sentence] - (self.ends - self.starts) + 1)

    @property
    def is_shortened(self) -> AnyArray:
        """Which sentences are longer than the model can read, ``bool[m]``."""
        return np.asarray(self.full_lengths > self.room)

    @property
    def lengths(self) -> AnyArray:
        """The number of tokens of each row, ``int64[m]``."""
        return np.minimum(self.full_lengths, self.room) + sum(map(len, self.special))

    def fill(self, rows: AnyArray) -> tuple[AnyArray, BoolArray, AnyArray]:
        """Return the tokens of rows, which of them are not padding, and the positions of masks."""
        filled = [self._fill_row(int(row)) for row in rows]
        texts, positions = [ids for ids, _ in filled], np.array([at for _, at in filled])
        return *pad_tokens(texts, self.model.tokenizer.pad_token_id), positions

    def find_distinct(self) -> tuple[AnyArray, AnyArray]:
        """Return the first row of each distinct window, and the window of each row."""
        numbers: dict[bytes, int] = {}
        first: list[int] = []
        places = np.empty(len(self.sentence), dtype=np.int64)
        for row in range(len(places)):
            ids, position = self._fill_row(row)
            key = np.array([position, *ids], dtype=np.int64).tobytes()
            places[row] = numbers.setdefault(key, len(numbers))
            if places[row] == len(first):
                first.append(row)
        return np.array(first, dtype=np.int64), places

    def _fill_row(self, row: int) -> tuple[list[int], int]:
        before, after = self.special
        ids = self.ids[self.sentence[row]]
        start, end = int(self.starts[row]), int(self.ends[row])
        n_after = len(ids) - end
        n_left = min(start, max((self.room - 1) // 2, self.room - 1 - n_after))
        n_right = min(n_after, self.room - 1 - n_left)
        left, right = ids[start - n_left : start], ids[end : end + n_right]
        mask = self.model.tokenizer.mask_token_id
        return [*before, *left, mask, *right, *after], len(before) + n_left


EncoderInput: TypeAlias = Literal["empty", "masked"]
"""What the encoder of an encoder-decoder reads: nothing, or one mask in place of the sentence."""

_SENTINEL = "<extra_id_0>"
"""The mask of a span of text of T5 and its relatives; they write it before the span, too."""

_CHUNK = 16384  # Number of texts per call of the tokenizer


@dataclass(frozen=True, kw_only=True)
class ScoringSettings:
    """Which tokens of a sentence are scored, in which context, and in which batches.

    Args:
        special_tokens: Whether the sentence has the special tokens that the tokenizer puts around
            a text; those after its start are scored as well. None: only if the model is masked,
            whose special tokens are never scored.
        first_token: Whether the first token is scored, after the start token of the model. None:
            only if the model is masked, which has a context for it.
        encoder_input: What the encoder of an encoder-decoder reads.
        token_types: A token, such as ``[speaker1]``, whose embedding is added to that of each
            token, for causal models with embeddings of speakers.
        max_length: The largest number of tokens of a sentence that is scored, at most that of the
            model.
        batch_tokens: The number of tokens in a batch, with the padding.
    """

    special_tokens: bool | None = None
    first_token: bool | None = None
    encoder_input: EncoderInput = "empty"
    token_types: str | None = None
    max_length: int = 1024
    batch_tokens: int = 2048

    def complete(self, model: LocalModel) -> ScoringSettings:
        """Return the settings for a model: without None, and with its maximum length.

        A tokenizer that puts no special tokens around a text is warned about.

        Raises:
            Contradiction: The model or its tokenizer cannot do what a setting says.
            UnknownIdentifier: The vocabulary does not have ``token_types``.
        """
        is_masked = model.kind == "masked"
        complete = replace(
            self,
            special_tokens=is_masked if self.special_tokens is None else self.special_tokens,
            first_token=is_masked if self.first_token is None else self.first_token,
            max_length=min(self.max_length, model.max_length),
        )
        if model.kind == "causal" and complete.first_token and model.start_token is None:
            message = "the tokenizer has neither a start nor an end token to score the first after"
            raise Contradiction(message, where="model", remedy="name another causal model")
        if self.token_types is not None:
            find_token_type(model, self.token_types)
        if self.special_tokens and not model.tokenizer.num_special_tokens_to_add():
            alone = "the tokenizer of the model puts no special tokens around a text"
            warn(f"special_tokens: {alone}, so sentences have none")
        return complete


@dataclass(frozen=True, eq=False)
class SentenceTokens:
    """The tokens of sentences, concatenated, and what is known of them before any is scored.

    Args:
        values: The tokens that the model reads, ``int64[t]``, with special ones.
        starts: The position of the first token of each sentence, ``int64[n + 1]``.
        is_scored: Whether the model predicts the token, ``bool[t]``.
        n_own: The number of tokens of the sentence itself, ``int64[n]``.
        n_unknown: The number of these that the vocabulary does not know, ``int64[n]``.
        is_blank: Whether the sentence has no text, ``bool[n]``.
    """

    values: AnyArray
    starts: AnyArray
    is_scored: BoolArray
    n_own: AnyArray
    n_unknown: AnyArray
    is_blank: BoolArray

    def __len__(self) -> int:
        """Return the number of sentences."""
        return self.starts.size - 1

    @property
    def lengths(self) -> AnyArray:
        """The number of tokens of each sentence that the model reads, ``int64[n]``."""
        return np.diff(self.starts)

    @property
    def n_scored(self) -> AnyArray:
        """The number of tokens of each sentence that the model predicts, ``int64[n]``."""
        sums = np.concatenate([[0], np.cumsum(self.is_scored)])
        return np.diff(sums[self.starts])

    def pad(self, rows: AnyArray, padding: int, width: int = 0) -> tuple[AnyArray, BoolArray]:
        """Return the tokens of some sentences, ``int64[b, w]``, and which are not padding."""
        lengths = self.lengths[rows]
        columns = np.arange(width or lengths.max(initial=1))  # longer ones are cut
        is_token = columns < lengths[:, None]
        tokens = np.full(is_token.shape, padding, dtype=np.int64)
        tokens[is_token] = self.values[(self.starts[rows][:, None] + columns)[is_token]]
        return tokens, is_token


def tokenize_sentences(
    model: LocalModel, texts: Sequence[str | None], settings: ScoringSettings
) -> SentenceTokens:
    """Return the tokens of sentences; ``settings`` are complete."""
    prefix = _find_prefix(model, settings)
    tokens: list[list[int]] = []
    scored: list[BoolArray] = []
    counts = np.zeros((2, len(texts)), dtype=np.int64)
    for row, (ids, is_special) in enumerate(_tokenize(model, texts, settings)):
        is_own = ~np.array(is_special, dtype=bool)
        counts[:, row] = is_own.sum(), _count_unknown(model, np.array(ids)[is_own])
        is_predicted = is_own if model.kind == "masked" else np.ones(len(ids), dtype=bool)
        added = prefix if ids[: len(prefix)] != prefix or model.kind != "causal" else []
        is_predicted = np.concatenate([np.zeros(len(added), dtype=bool), is_predicted])
        if not (settings.first_token and (added or model.kind == "masked")):
            is_predicted[len(added) : len(added) + 1] = False
        tokens.append([*added, *ids])
        scored.append(is_predicted)
    lengths = np.array([len(ids) for ids in tokens], dtype=np.int64)
    return SentenceTokens(
        np.concatenate([np.array(ids, dtype=np.int64) for ids in [[], *tokens]]),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([np.zeros(0, dtype=bool), *scored]),
        counts[0],
        counts[1],
        np.array([not (text or "").strip() for text in texts], dtype=bool),
    )


def _tokenize(
    model: LocalModel, texts: Sequence[str | None], settings: ScoringSettings
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the tokens of each text, and which are special."""
    for start in range(0, len(texts), _CHUNK):
        chunk = [text or "" for text in texts[start : start + _CHUNK]]
        with silence_transformers():
            encoded = model.tokenizer(
                chunk, add_special_tokens=settings.special_tokens, return_special_tokens_mask=True
            )
        yield from zip(encoded.input_ids, encoded.special_tokens_mask, strict=True)


def _count_unknown(model: LocalModel, tokens: AnyArray) -> int:
    """Return the number of unknown tokens; a token that also ends texts stands for nothing."""
    tokenizer = model.tokenizer
    unknown = tokenizer.unk_token_id
    special = {tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id}
    return 0 if unknown is None or unknown in special else int((tokens == unknown).sum())


def _find_prefix(model: LocalModel, settings: ScoringSettings) -> list[int]:
    """Return the tokens before each sentence, which are not scored."""
    if model.kind == "masked":
        return []
    if model.kind == "causal":
        first = model.start_token if settings.first_token else None
        return [] if first is None else [first]
    start = _find_decoder_start(model)
    sentinel = _find_sentinel(model)
    has_sentinel = settings.encoder_input == "masked" and sentinel is not None
    return [start, sentinel] if has_sentinel and sentinel is not None else [start]


def _find_decoder_start(model: LocalModel) -> int:
    """Return the token that the decoder starts with; Contradiction if there is none."""
    configs = (model.network.config, model.network.generation_config)
    tokens = [config.decoder_start_token_id for config in configs] + [model.start_token]
    start = next((token for token in tokens if token is not None), None)
    if start is None:
        message = "the configuration of the model names no decoder_start_token_id"
        raise Contradiction(message, where="model", remedy="add it to config.json")
    return int(start)


def make_encoder_input(model: LocalModel, settings: ScoringSettings) -> list[int]:
    """Return the tokens that the encoder of an encoder-decoder reads; at least one.

    Raises:
        Contradiction: The tokenizer has no mask.
    """
    text = ""
    if settings.encoder_input == "masked":
        text = _SENTINEL if _find_sentinel(model) is not None else model.tokenizer.mask_token
        if text is None:
            message = "the tokenizer has no token for a masked text"
            remedy = "use encoder_input: empty"
            raise Contradiction(message, where="encoder_input", remedy=remedy)
    tokens: list[int] = model.tokenizer(text).input_ids
    return tokens or [_find_decoder_start(model)]


def _find_sentinel(model: LocalModel) -> int | None:
    token = model.tokenizer.get_vocab().get(_SENTINEL)
    return None if token is None else int(token)


def find_token_type(model: LocalModel, name: str) -> int:
    """Return the number of the token whose embedding is added to that of each token.

    Raises:
        Contradiction: The model adds no embeddings of token types.
        UnknownIdentifier: The vocabulary does not have the token.
    """
    if model.kind != "causal" or not _has_speakers(model.network):
        message = f"a model of the type {model.network.config.model_type} has no speakers"
        raise Contradiction(message, where="token_types", remedy="leave token_types out")
    token = model.tokenizer.get_vocab().get(name)
    if token is None:
        message = f"the vocabulary of the model has no token {name!r}"
        remedy = "name a token of the vocabulary, such as [speaker1] of CDial-GPT"
        raise UnknownIdentifier(message, where="token_types", remedy=remedy)
    return int(token)


def _has_speakers(network: Any) -> bool:
    """Return whether token types are tokens of the vocabulary: those of BERT are segments."""
    is_read = "token_type_ids" in signature(network.forward).parameters
    return is_read and not hasattr(network.config, "type_vocab_size")


def embed_tokens(
    name: str, revision: str | None, texts: Sequence[str]
) -> tuple[list[list[int]], AnyArray]:
    """Return the tokens of texts as rows in a table of vectors, and the table.

    The vectors are those by which the model represents a token before its first layer, without
    position or context, ``float32 (n, d)``. Special tokens, also that of unknown words, have none:
    their row is -1.

    Args:
        name: A model folder, an installed package that contains one, or a model of the hub.
        revision: A commit, tag or branch of the hub; None for its main branch.
        texts: The texts.

    Raises:
        MissingFile: The model is not found or cannot be read.
    """
    source = find_model(name, revision)
    tokenizer = load_tokenizer(source)
    encoded = [
        tokenizer(text, add_special_tokens=False, verbose=False).input_ids for text in texts
    ]
    used = sorted({token for tokens in encoded for token in tokens} - {*tokenizer.all_special_ids})
    weights = load_encoder(source).get_input_embeddings().weight.detach()
    rows = {token: row for row, token in enumerate(used)}
    codes = [[rows.get(token, -1) for token in tokens] for tokens in encoded]
    return codes, weights[used].numpy().astype(np.float32)
