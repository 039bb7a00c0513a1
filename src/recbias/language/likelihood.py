"""Probabilities of texts and sentences, with the beginnings that they share read once.

Texts after one context (``TextScorer``) and sentences alone (``score_sentences``)
are trees of prefixes, each of which is one pass with a mask of its own; perplexities of sentences
and their outliers are computed from the probabilities of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from recbias.core.context import report_progress
from recbias.core.dataset import AnyArray, BoolArray, FloatArray, Ids
from recbias.core.errors import Contradiction, OutOfRange
from recbias.core.machine import release_between
from recbias.language.local_models import (
    LocalModel,
    ScoringSettings,
    SentenceTokens,
    batch_by_tokens,
    compute_logits,
    find_token_type,
    make_encoder_input,
    read_targets,
    silence_transformers,
    tokenize_sentences,
)

_FULL = "full_attention"
_SLIDING = "sliding_attention"

_REMEDY = "choose a model with full or sliding attention, such as Llama, Qwen, Gemma or GPT-2"


@dataclass(frozen=True)
class _AttentionLayers:
    """What the attention layers of a model see of the tokens before.

    Args:
        kinds: The kinds of layers: ``full_attention`` sees all tokens, ``sliding_attention`` those
            of a window.
        window: The number of tokens in the window, the current one included.
    """

    kinds: frozenset[str]
    window: int

    @classmethod
    def from_config(cls, config: Any) -> _AttentionLayers:
        """Return the layers of a model."""
        text = config.get_text_config(decoder=True)
        window = getattr(text, "sliding_window", None)
        kinds = frozenset(getattr(text, "layer_types", None) or [_SLIDING if window else _FULL])
        local = {"local"} & {*getattr(text, "attention_layers", ())}  # of GPT-Neo, by order
        others = sorted(kinds - {_FULL, _SLIDING} | local)
        if others:
            message = f"a model with layers of the kind {others[0]} cannot score texts together"
            raise Contradiction(message, where="model", remedy=_REMEDY)
        return cls(kinds, window or 0)

    def make_masks(
        self, visible: BoolArray, positions: AnyArray, *, dtype: Any, device: Any
    ) -> Any:
        """Return the mask of new tokens after a context: one, or one for each kind of layer."""
        n_context = int(positions.min())
        is_visible = np.pad(visible, ((0, 0), (n_context, 0)), constant_values=True)
        all_positions = np.concatenate([np.arange(n_context), positions])
        is_near = positions[:, None] - all_positions < self.window
        kinds = {_FULL: is_visible, _SLIDING: is_visible & is_near}
        masks = {kind: _to_mask(kinds[kind], dtype, device) for kind in self.kinds}
        return masks if len(masks) > 1 else next(iter(masks.values()))


def _to_mask(is_visible: BoolArray, dtype: Any, device: Any) -> Any:
    """Return what is added to the attention scores, ``(1, 1, n, n_context + n)``."""
    import torch

    mask = torch.zeros(is_visible.shape, dtype=dtype, device=device)
    is_hidden = torch.from_numpy(~is_visible).to(device)
    return mask.masked_fill_(is_hidden, torch.finfo(dtype).min)[None, None]


_MAX_NODES = 512  # the largest number of tokens that are evaluated in one pass after the context

_Tokens = Sequence[int]


@dataclass(frozen=True, eq=False)
class PrefixTree:
    """The prefixes of some texts, each once: a node is the last token of a prefix.

    Every prefix that is shorter than its text is a node, a parent before its children. The empty
    prefix, which is the context itself, has the number -1.

    Args:
        tokens: The token of each node, ``int64[n]``.
        depths: The length of each prefix less 1, ``int64[n]``.
        visible: Which nodes each node attends to, its ancestors and itself, ``bool[n, n]``.
        text_rows: For each token of each text, the number of the text, ``int64[t]``.
        nodes: The prefix before that token, ``int64[t]``.
        next_tokens: That token, ``int64[t]``.
    """

    tokens: npt.NDArray[np.int64]
    depths: npt.NDArray[np.int64]
    visible: BoolArray
    text_rows: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int64]
    next_tokens: npt.NDArray[np.int64]

    @classmethod
    def from_texts(cls, texts: Sequence[_Tokens], rows: Sequence[int]) -> PrefixTree:
        """Return the tree of texts.

        >>> tree = PrefixTree.from_texts([(5, 6, 7), (5, 6, 8)], [0, 1])
        >>> tree.tokens.tolist(), tree.nodes.tolist()  # the nodes 5 and 5 6; both texts share them
        ([5, 6], [-1, 0, 1, -1, 0, 1])

        Args:
            texts: The tokens of each text.
            rows: The number of each text.
        """
        numbers: dict[tuple[int, ...], int] = {(): -1}
        steps = []
        for row, text in zip(rows, texts, strict=True):
            for length, token in enumerate(text):
                node = numbers.setdefault(tuple(text[:length]), len(numbers) - 1)
                steps.append((row, node, token))
        prefixes = list(numbers)[1:]
        visible = np.eye(len(prefixes), dtype=bool)
        for node, prefix in enumerate(prefixes):
            parent = numbers[prefix[:-1]]
            if parent >= 0:
                visible[node] |= visible[parent]
        columns = np.array(steps, dtype=np.int64).reshape(-1, 3)
        return cls(
            np.array([prefix[-1] for prefix in prefixes], dtype=np.int64),
            np.array([len(prefix) - 1 for prefix in prefixes], dtype=np.int64),
            visible,
            *columns.T,
        )


def _build_prefix_trees(texts: Sequence[_Tokens], max_nodes: int = _MAX_NODES) -> list[PrefixTree]:
    """Return texts in trees of at most ``max_nodes`` nodes, or one text where it is longer."""
    trees: list[PrefixTree] = []
    rows: list[int] = []
    prefixes: set[tuple[int, ...]] = set()

    def close_tree() -> None:
        if rows:
            trees.append(PrefixTree.from_texts([texts[row] for row in rows], rows))
        rows.clear()
        prefixes.clear()

    for row in sorted(range(len(texts)), key=lambda row: tuple(texts[row])):
        new_prefixes = {tuple(texts[row][:length]) for length in range(1, len(texts[row]))}
        if len(prefixes | new_prefixes) > max_nodes:
            close_tree()
        prefixes |= new_prefixes
        rows.append(row)
    close_tree()
    return trees


LENGTHS = (3, 6)
"""The numbers of first tokens by which texts are excluded."""

_SEARCH_TOLERANCES = {"float32": 1e-4, "bfloat16": 0.05}
"""By how much an upper bound may be below the score for lack of precision."""


_TOLERANCES = {"float32": 1e-3, "bfloat16": 0.2}
"""By how much the score of a text in a tree may differ from its score alone."""


@dataclass(frozen=True, eq=False)
class _Context:
    """A context that was evaluated.

    Args:
        cache: Its keys and values in the attention layers.
        root: The log-probability of each token after it, ``(1, vocabulary)``.
    """

    cache: Any
    root: Any


@dataclass(frozen=True, eq=False)
class TextScorer:
    """Scores the same texts after any number of contexts.

    The keys and values of the context are computed once and shared by all texts; prefixes that
    texts share are evaluated once.

    Args:
        model: The model.
        texts: The tokens of each text; none is empty.
        trees: Their prefixes.
        layers: What the attention layers of the model see.
    """

    model: LocalModel
    texts: Sequence[_Tokens]
    trees: Sequence[PrefixTree]
    layers: _AttentionLayers

    @classmethod
    def from_texts(cls, model: LocalModel, texts: Sequence[str]) -> TextScorer:
        """Return the scorer of texts, tokenized as they are, without special tokens.

        Raises:
            Contradiction: The model scores a text otherwise when it shares a pass with others.
        """
        tokens = [model.tokenizer(text, add_special_tokens=False).input_ids for text in texts]
        layers = _AttentionLayers.from_config(model.network.config)
        scorer = cls(model, tokens, _build_prefix_trees(tokens), layers)
        scorer._check_sharing()
        return scorer

    def score(self, context: str) -> FloatArray:
        """Return the mean log-probability of the tokens of each text, ``float64[n]``.

            score(text) = (1/m) Σ_j ln p(token j | context, tokens before j)

        Args:
            context: The text before; special tokens in it are read as such.

        Raises:
            OutOfRange: The context is empty, or it and the longest text exceed the length of the
                model.
        """
        totals = self._sum_trees(self.trees, self._read_context(context), len(self.texts))
        return np.asarray(totals / np.array([len(text) for text in self.texts]))

    def score_best(
        self, context: str, k: int, *, excluded: BoolArray, offsets: FloatArray | None = None
    ) -> FloatArray:
        """Return the scores of the ``k`` best texts, ``float64[n]``.

            score(text) = (1/m) Σ_j ln p(token j) ≤ (1/m) Σ_(j ≤ l) ln p(token j)    for l ≤ m

        since no logarithm of a probability exceeds 0. The first 3, then 6, tokens of texts give
        upper bounds of their scores; a text whose bound is below the k-th highest score so far is
        excluded. Of the other texts, those that had to be scored have their scores, and all others
        -inf.

        Args:
            context: The text before.
            k: The number of texts.
            excluded: Texts that are not searched, ``bool[n]``.
            offsets: What is subtracted from the score of each text, ``float64[n]``.

        Raises:
            OutOfRange: As ``score``.
        """
        n_tokens = np.array([len(text) for text in self.texts])
        penalties = np.zeros(n_tokens.size) if offsets is None else offsets
        evaluated = self._read_context(context)
        scores = np.full(n_tokens.size, -np.inf)
        rows, threshold = np.flatnonzero(~excluded), -np.inf

        def score_rows(block: AnyArray) -> float:
            totals = self._sum_first_tokens(block, None, evaluated)
            scores[block] = totals / n_tokens[block] - penalties[block]
            kth_largest = np.partition(scores, -k)[-k] if scores.size >= k else -np.inf
            return float(kth_largest) - _SEARCH_TOLERANCES[_name_type(self.model)]

        for length in LENGTHS:
            totals = self._sum_first_tokens(rows, length, evaluated)
            guesses = totals / np.minimum(length, n_tokens[rows]) - penalties[rows]
            bounds = totals / n_tokens[rows] - penalties[rows]
            order = np.argsort(-guesses, kind="stable")
            best = next(self._divide(rows[order]), rows[:0])
            threshold = score_rows(best)
            rows = rows[(bounds >= threshold) & np.isneginf(scores[rows])]
        for block in self._divide(rows):
            score_rows(block)
        return scores

    def _sum_first_tokens(
        self, rows: AnyArray, length: int | None, context: _Context
    ) -> FloatArray:
        """Return the log-probability of the first tokens of some texts; None for all tokens."""
        texts = [self.texts[row][:length] for row in rows]
        return self._sum_trees(_build_prefix_trees(texts), context, len(texts))

    def _divide(self, rows: AnyArray) -> Iterator[AnyArray]:
        """Yield rows in blocks of about one tree."""
        if rows.size:
            n_nodes = np.cumsum([len(self.texts[row]) - 1 for row in rows])
            yield from np.split(rows, np.flatnonzero(np.diff(n_nodes // _MAX_NODES)) + 1)

    def _sum_trees(self, trees: Sequence[PrefixTree], context: _Context, n: int) -> FloatArray:
        """Return the sum of the log-probabilities in trees for each of n texts."""
        import torch

        totals = np.zeros(n)
        with torch.inference_mode():
            for tree in release_between(trees):
                np.add.at(totals, tree.text_rows, self._score_tree(tree, context))
        return totals

    def _read_context(self, context: str) -> _Context:
        """Return a context, evaluated once for all texts; errors are those of ``score``."""
        tokens = self.model.encode(context)
        longest = max((len(text) for text in self.texts), default=0)
        if not tokens:
            raise OutOfRange("a text is scored after an empty context", remedy="write a prompt")
        if len(tokens) + longest > self.model.n_positions:
            message = (
                f"a context of {len(tokens):,} tokens and a text of {longest:,} exceed the "
                f"{self.model.n_positions:,} tokens of the model"
            )
            raise OutOfRange(message, remedy="shorten the history (max_history), or the prompt")
        return self._evaluate_context(tokens)

    def _evaluate_context(self, context_ids: _Tokens) -> _Context:
        import torch
        from transformers import DynamicCache

        cache = DynamicCache()  # without the configuration, it keeps tokens outside of a window
        with torch.inference_mode():
            ids = torch.tensor([context_ids], device=self.model.device)
            logits = self.model.network(ids, past_key_values=cache, use_cache=True).logits
            return _Context(cache, logits[:, -1].float().log_softmax(dim=-1))

    def _check_sharing(self) -> None:
        """Refuse a model that does not respect the masks: by the longest text of a tree."""
        if not self.texts:
            return
        tree = max(self.trees, key=lambda tree: tree.tokens.size)
        row = max(tree.text_rows.tolist(), key=lambda row: len(self.texts[row]))
        ids = [self.texts[row][0], *self.texts[row]]

        def score_together() -> AnyArray:
            scores = self._score_tree(tree, self._evaluate_context(ids[:1]))
            return np.asarray(scores[tree.text_rows == row])

        difference = _measure_difference(self.model, score_together, ids)
        if not difference <= _TOLERANCES[_name_type(self.model)]:  # also where one is NaN
            kind = self.model.network.config.model_type
            fault = f"the score of one text changes by {difference:.2g}"
            if np.isinf(difference):
                fault = "it does not accept an attention mask of its own for each token"
            message = f"a model of the type {kind} cannot score texts together: {fault}"
            raise Contradiction(message, where="model", remedy=_REMEDY)

    def _score_tree(self, tree: PrefixTree, context: _Context) -> AnyArray:
        """Return the log-probability of each token of each text of a tree, ``float64[t]``."""
        scores = np.empty(tree.nodes.size)
        is_first = tree.nodes < 0
        scores[is_first] = context.root[0].double().cpu().numpy()[tree.next_tokens[is_first]]
        if tree.tokens.size:
            logits = _read_tree(self.model, self.layers, tree, context.cache)
            inner = ~is_first
            scores[inner] = read_targets(logits, tree.next_tokens[inner], tree.nodes[inner])
        return scores


def _read_tree(
    model: LocalModel, layers: _AttentionLayers, tree: PrefixTree, cache: Any = None
) -> Any:
    """Return the logits after each node, ``(n, vocabulary)``; a cache stays as it was."""
    import torch

    positions = tree.depths + (0 if cache is None else cache.get_seq_length())
    output = model.network(
        torch.from_numpy(tree.tokens).to(model.device)[None],
        attention_mask=layers.make_masks(
            tree.visible, positions, dtype=model.network.dtype, device=model.device
        ),
        position_ids=torch.from_numpy(positions).to(model.device)[None],
        past_key_values=cache,
        use_cache=cache is not None,
    )
    if cache is not None:
        cache.crop(-tree.tokens.size)
    return output.logits[0]


_REFUSALS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
# what networks raise that do not accept a mask for each token


def _measure_difference(
    model: LocalModel, score_together: Callable[[], AnyArray], tokens: _Tokens
) -> float:
    """Return how much the log-probabilities of tokens but the first differ from those alone.

    It is infinite if the network does not accept a mask for each token.
    """
    import torch

    ids = np.array(tokens)
    try:
        with torch.inference_mode():
            together = score_together()
            logits = model.network(torch.from_numpy(ids).to(model.device)[None]).logits[0]
    except torch.OutOfMemoryError:
        raise
    except _REFUSALS:
        return np.inf
    alone = read_targets(logits, ids[1:], np.arange(ids.size - 1))
    return float(np.abs(together - alone).max(initial=0.0))


def _name_type(model: LocalModel) -> str:
    return str(model.network.dtype).removeprefix("torch.")


_MAX_TREE_NODES = 256  # the largest number of tokens in a tree: attention within it is quadratic

_MIN_SAVING = 0.1
"""The least share of tokens that trees must save, for which their attention costs more."""

_PREFIX_TOLERANCES = {"float32": 1e-4, "bfloat16": 0.2}
"""By how much the log-probability of a token in a tree may differ from that by itself."""


@dataclass(frozen=True, eq=False)
class _SharedPrefixes:
    """Sentences of a causal model as trees of their prefixes.

    Args:
        model: The model.
        tokens: The sentences.
        trees: Their prefixes; ``text_rows`` are positions of sentences.
        layers: What the attention layers of the model see.
    """

    model: LocalModel
    tokens: SentenceTokens
    trees: Sequence[PrefixTree]
    layers: _AttentionLayers

    @classmethod
    def find(
        cls, model: LocalModel, tokens: SentenceTokens, rows: AnyArray, max_nodes: int
    ) -> _SharedPrefixes | None:
        """Return the trees of some sentences; None if they save little, or change the scores."""
        try:
            layers = _AttentionLayers.from_config(model.network.config)
        except Contradiction:  # a recurrent model reads one text after another
            return None
        texts = [
            tokens.values[tokens.starts[row] : tokens.starts[row + 1]].tolist() for row in rows
        ]
        trees = _build_prefix_trees(texts, min(_MAX_TREE_NODES, max_nodes))
        n_nodes = sum(tree.tokens.size for tree in trees)
        if n_nodes > (1 - _MIN_SAVING) * tokens.lengths[rows].sum():
            return None
        shared = cls(
            model,
            tokens,
            [replace(tree, text_rows=rows[tree.text_rows]) for tree in trees],
            layers,
        )
        tree = max(shared.trees, key=lambda tree: tree.tokens.size)
        last = tree.text_rows[-1]
        ids = tokens.values[tokens.starts[last] : tokens.starts[last + 1]]

        def score_together() -> AnyArray:
            values = shared.evaluate(tree)[1]
            return values[values.size - ids.size + 1 :]

        difference = _measure_difference(model, score_together, ids.tolist())
        return shared if difference <= _PREFIX_TOLERANCES[_name_type(model)] else None

    def evaluate(self, tree: PrefixTree) -> tuple[AnyArray, FloatArray]:
        """Return the positions of tokens and their log-probabilities, by one pass over a tree."""
        logits = _read_tree(self.model, self.layers, tree)
        has_context = tree.nodes >= 0
        nodes = tree.nodes[has_context]
        positions = self.tokens.starts[tree.text_rows[has_context]] + tree.depths[nodes] + 1
        return positions, read_targets(logits, tree.next_tokens[has_context], nodes)


_MAX_LOGITS = 2**28  # the largest number of logits in memory: a gibibyte in single precision


def _compute_log_probabilities(
    model: LocalModel, tokens: SentenceTokens, rows: AnyArray, settings: ScoringSettings
) -> FloatArray:
    """Return the log-probability of each token, ``float64[t]``; NaN where it is not scored."""
    import torch

    values = np.full(tokens.values.size, np.nan)
    scored = np.flatnonzero(tokens.is_scored)
    owners = np.searchsorted(tokens.starts, scored, side="right") - 1
    scored, owners = (array[np.isin(owners, rows)] for array in (scored, owners))
    if not scored.size:
        return values
    n_vocabulary = int(model.network.get_input_embeddings().weight.shape[0])
    size = _limit_batch(settings.batch_tokens, n_vocabulary)
    n_completed = 0
    with torch.inference_mode(), silence_transformers():
        shared = None
        parts: Iterator[tuple[AnyArray, FloatArray]]
        if model.kind == "causal" and settings.token_types is None:
            shared = _SharedPrefixes.find(model, tokens, np.unique(owners), size)
        if shared is not None:
            parts = map(shared.evaluate, shared.trees)
        else:
            parts = _evaluate_batches(model, tokens, settings, scored, owners, size)
        for positions, part in release_between(parts):
            values[positions] = part
            n_completed += positions.size
            report_progress("tokens scored", n_completed, scored.size)
    return values


def _limit_batch(n_tokens: int, n_vocabulary: int) -> int:
    """Return the number of tokens of a batch whose logits fit into the memory for them.

    >>> _limit_batch(4096, 2**18)
    1024
    """
    return max(1, min(n_tokens, _MAX_LOGITS // max(n_vocabulary, 1)))


def _evaluate_batches(
    model: LocalModel,
    tokens: SentenceTokens,
    settings: ScoringSettings,
    scored: AnyArray,
    owners: AnyArray,
    size: int,
) -> Iterator[tuple[AnyArray, FloatArray]]:
    """Yield positions of tokens and their log-probabilities, in padded batches.

    Of a masked model each token is masked in a copy of its sentence; of others the tokens of a
    sentence are in one batch.
    """
    rows, firsts, counts = np.unique(owners, return_index=True, return_counts=True)
    if model.kind == "masked":
        rows, firsts, counts = owners, np.arange(owners.size), np.ones_like(owners)
    for batch in batch_by_tokens(tokens.lengths[rows], size):
        parts = [np.arange(firsts[row], firsts[row] + counts[row]) for row in batch]
        cells = np.concatenate(parts)
        yield (
            scored[cells],
            _evaluate_batch(model, tokens, settings, owners[cells], scored[cells]),
        )


def make_inputs(
    model: LocalModel, settings: ScoringSettings, values: AnyArray, is_token: AnyArray
) -> dict[str, Any]:
    """Return the inputs of the network of a model for padded sentences.

    Args:
        model: The model.
        settings: The complete settings.
        values: The tokens, ``int64[b, w]``; an encoder-decoder reads them in its decoder.
        is_token: Which are not padding, ``bool[b, w]``.
    """
    import torch

    ids = torch.from_numpy(values).to(model.device)
    mask = torch.from_numpy(is_token).long().to(model.device)
    fixed: dict[str, Any] = {} if model.kind == "masked" else {"use_cache": False}
    if model.kind != "encoder_decoder":
        inputs = {"input_ids": ids, "attention_mask": mask, **fixed}
        if settings.token_types is not None:
            token = find_token_type(model, settings.token_types)
            inputs["token_type_ids"] = torch.full_like(ids, token)
        return inputs
    read = torch.tensor([make_encoder_input(model, settings)], device=model.device)
    read = read.expand(len(ids), -1)
    return {
        "input_ids": read,
        "attention_mask": torch.ones_like(read),
        "decoder_input_ids": ids,
        "decoder_attention_mask": mask,
        **fixed,
    }


def _evaluate_batch(
    model: LocalModel,
    tokens: SentenceTokens,
    settings: ScoringSettings,
    owners: AnyArray,
    positions: AnyArray,
) -> FloatArray:
    """Return the log-probabilities of tokens, by their sentences and positions."""
    columns = positions - tokens.starts[owners]
    if model.kind == "masked":
        rows, lines = owners, np.arange(owners.size)
    else:
        rows, lines = np.unique(owners, return_inverse=True)
    values, is_token = tokens.pad(rows, model.tokenizer.pad_token_id or 0)
    targets = values[lines, columns]
    if model.kind == "masked":
        values[lines, columns] = model.tokenizer.mask_token_id
    else:
        columns = columns - 1
    inputs = make_inputs(model, settings, values, is_token)
    logits = compute_logits(model.network, model.body, inputs, lines, columns)
    return read_targets(logits, targets, np.arange(targets.size))


def compute_perplexities(log_probabilities: FloatArray, owners: AnyArray, n: int) -> FloatArray:
    """Return the perplexity of each sentence.

        PPL(x) = exp( -(1/n) Σ_i ln p(x_i | x_<i) )

    where i runs over the n tokens of the sentence that have a probability. It is 1 or more, NaN
    for a sentence without scored tokens, and infinite where the exponential overflows.

    Args:
        log_probabilities: Natural log-probability of each token, ``float64[t]``; NaN (such as the
            first token, which has no context) is excluded.
        owners: Sentence of each token, ``int[t]``, from 0.
        n: Number of sentences.

    >>> compute_perplexities(np.log([0.5, 0.125, 0.25]), np.array([0, 0, 2]), 3).tolist()
    [4.0, nan, 4.0]
    """
    scored = ~np.isnan(log_probabilities)
    owners = owners[scored]
    totals = np.bincount(owners, weights=log_probabilities[scored], minlength=n)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.exp(-totals / np.bincount(owners, minlength=n)))


def mark_within_deviations(values: FloatArray, deviations: float) -> BoolArray:
    """Mark the values within ``deviations`` c standard deviations of the mean, ``bool[n]``.

        |x - m| ≤ c σ,    σ² = (1/n) Σ (x - m)²

    m is the mean and σ the population standard deviation of the values that are not NaN. NaN is
    never within; equal values always are.

    >>> mark_within_deviations(np.array([1.0, 1, 1, 1, 9, np.nan]), 1.5).tolist()
    [True, True, True, True, False, False]
    """
    defined = ~np.isnan(values)
    if not defined.any():
        return defined
    mean, deviation = values[defined].mean(), values[defined].std()
    slack = 1e-12 * np.abs(values[defined]).max()  # the mean of equal values has a rounding error
    return np.asarray(np.abs(values - mean) <= deviations * deviation + slack)


def linearise_means(
    values: FloatArray, copies: FloatArray, sets: Sequence[FloatArray], deviations: float
) -> FloatArray:
    """Return values of units whose mean is that without outliers, and whose variance is its own.

        z_i = T + w_i (x_i - T) / w̄ + Σ_s Σ_± g_s± (n / n_s) (h_s± (y_si) - mean h_s±)
        h_s± (y) = u ± c (u² - 1) / 2,    u = (y - m_s) / σ_s

    T is the mean of x over the units kept (w_i = 1): those of which each copy y_s is within c
    population standard deviations σ_s of the mean m_s of its set of n_s values. h is the
    influence of a value on the limit m_s ± c σ_s, in units of σ_s, and g the change of T with the
    limit, from limits σ_s further out and further in. So z_i - T is the influence of unit i on T,
    to first order, and t-tests and intervals of z account for limits that depend on the sample;
    those of the values that remain do not. Values of a set without a unit count as known.

    Args:
        values: One or more values x of each unit, ``float64[r, n]``.
        copies: The values y that outliers are found by, ``float64[k, n]``.
        sets: The set of each copy; it holds the copies of all units.
        deviations: c.

    Returns:
        ``float64[r, n]``; NaN if no unit is kept.

    >>> x = np.array([[1.0, 2.0, 3.0, 9.0]])
    >>> linearise_means(x, x, [x[0]], 3.0).round(9).tolist()  # without outliers near
    [[1.0, 2.0, 3.0, 9.0]]
    >>> linearise_means(x, x, [x[0]], 1.5).mean().round(9)  # (1 + 2 + 3) / 3
    np.float64(2.0)

    Source:
        Hampel, "The influence curve and its role in robust estimation", JASA 1974.
    """
    centres = np.array([members.mean() for members in sets])[:, None]
    spreads = np.array([members.std() for members in sets])[:, None]
    slack = 1e-12 * np.array([np.abs(members).max() for members in sets])[:, None]

    def keep(reach: FloatArray) -> BoolArray:
        low, high = centres - reach[:, :1] * spreads, centres + reach[:, 1:] * spreads
        return np.asarray(((copies >= low - slack) & (copies <= high + slack)).all(axis=0))

    reach = np.full((len(sets), 2), float(deviations))
    is_kept = keep(reach)
    if not is_kept.any():
        return np.full(values.shape, np.nan)
    means = values[:, is_kept].mean(axis=1, keepdims=True)
    parts = np.where(is_kept, values - means, 0.0) / is_kept.mean()
    for row, end in np.ndindex(reach.shape):
        step = np.zeros_like(reach)
        step[row, end] = 1.0
        inner, outer = keep(reach - step), keep(reach + step)
        if spreads[row, 0] > 0 and inner.any():
            change = values[:, outer].mean(axis=1) - values[:, inner].mean(axis=1)
            u = (copies[row] - centres[row]) / spreads[row]
            influence = (2 * end - 1) * u + deviations * (u**2 - 1) / 2
            share = copies.shape[1] / sets[row].size
            parts += share / 2 * np.outer(change, influence - influence.mean())
    return np.asarray(means + parts)


_UNKNOWN_SHARE = 0.5  # a sentence of which at least this share of tokens is unknown is reported


@dataclass(frozen=True, eq=False)
class SentenceLikelihoods:
    """The probabilities of the tokens of sentences, and what they make of each sentence.

    Args:
        tokens: The sentences as tokens, with the special ones that the model reads.
        log_probabilities: Natural logarithm of the probability of each token, ``float64[t]``; NaN
            where the token is not scored.
        perplexity: The perplexity of each sentence, ``float64[n]``, from its scored tokens; NaN
            for a sentence that is empty, too long, or has none. Of a masked model, it is the
            pseudo-perplexity.
        max_length: The largest number of tokens of a sentence that was scored.
    """

    tokens: SentenceTokens
    log_probabilities: FloatArray
    perplexity: FloatArray
    max_length: int

    @property
    def owners(self) -> AnyArray:
        """The sentence of each token, ``int64[t]``."""
        return np.repeat(np.arange(len(self.tokens)), self.tokens.lengths)

    @property
    def is_empty(self) -> BoolArray:
        """Whether a sentence has no text, ``bool[n]``."""
        return np.asarray(self.tokens.is_blank | (self.tokens.n_own == 0))

    @property
    def is_too_long(self) -> BoolArray:
        """Whether a sentence has more tokens than are scored, ``bool[n]``."""
        return np.asarray(self.tokens.lengths > self.max_length)

    @property
    def is_too_short(self) -> BoolArray:
        """Whether a sentence has a text, but no token with a context, ``bool[n]``."""
        return np.asarray((self.tokens.n_scored == 0) & ~self.is_empty)

    @property
    def is_unknown(self) -> BoolArray:
        """Whether half of the tokens of a sentence or more are unknown, ``bool[n]``."""
        n_unknown, n_own = self.tokens.n_unknown, self.tokens.n_own
        return np.asarray((n_unknown > 0) & (n_unknown >= _UNKNOWN_SHARE * n_own))

    def describe_problems(self, ids: Ids) -> Iterator[str]:
        """Yield a message for each reason why sentences have no perplexity, or a doubtful one."""
        limit = f"{self.max_length:,} tokens (max_length, or the maximum of the model)"
        unknown = "half of their tokens or more: the tokenizer lacks their script or words"
        is_invalid = np.isnan(self.perplexity) & ~(
            self.is_empty | self.is_too_long | self.is_too_short
        )
        reasons = (
            (self.is_empty, "are empty and have no perplexity"),
            (self.is_too_short, "are of one token, which has no context, and have no perplexity"),
            (self.is_too_long, f"have more than {limit} and no perplexity"),
            (is_invalid, "have probabilities that are not numbers, and no perplexity"),
            (self.is_unknown, f"are unknown by {unknown}, and their perplexity means little"),
        )
        for is_affected, reason in reasons:
            rows = np.flatnonzero(is_affected)
            if rows.size:
                total = len(self.tokens)
                yield f"{rows.size:,} of {total:,} sentences {reason}; first {ids[rows[0]]!r}"


def score_sentences(
    model: LocalModel, texts: Sequence[str | None], settings: ScoringSettings
) -> SentenceLikelihoods:
    """Return the probabilities of the tokens of sentences.

        causal:           ln p(x_i | x_<i),                     i = 2..n
        encoder-decoder:  ln p(x_i | start, x_<i; encoder text),  i = 2..n
        masked:           ln p(x_i | x_1..n without x_i),        i = 1..n

    Sentences of similar length share a pass; of a masked model, all masks do. Where sentences
    begin alike, as the copies of a pair do, a causal model reads their beginnings once. The
    probabilities are those of one sentence at a time, to 1e-4 in single precision.

    By default a sentence stands alone: without special tokens and without a start token, so the
    first token, which has no context, is not scored (``ScoringSettings``). This is the choice of
    the code of CHBias. The first token after the start token of a decoder is left out, too, so
    that the kinds of models score the same tokens. A masked model reads its special tokens and
    predicts each of the others.

    Args:
        model: The model.
        texts: The sentences; None and white space are empty.
        settings: Which tokens are scored.

    Returns:
        Log-probabilities and perplexities; NaN for sentences that are empty, too long, or without
        a scored token.

    Raises:
        Contradiction: The model or its tokenizer cannot do what a setting says.
        UnknownIdentifier: The vocabulary does not have ``token_types``.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 4; Salazar, Liang, Nguyen and Kirchhoff, "Masked
        language model scoring", ACL 2020, section 2 (masked models).
    """
    settings = settings.complete(model)
    tokens = tokenize_sentences(model, texts, settings)
    is_used = ~tokens.is_blank & (tokens.n_own > 0) & (tokens.lengths <= settings.max_length)
    values = _compute_log_probabilities(model, tokens, np.flatnonzero(is_used), settings)
    owners = np.repeat(np.arange(len(tokens)), tokens.lengths)
    perplexity = compute_perplexities(values, owners, len(tokens))
    failed = np.unique(owners[tokens.is_scored & np.isnan(values)])
    perplexity[failed] = np.nan
    return SentenceLikelihoods(tokens, values, perplexity, settings.max_length)
