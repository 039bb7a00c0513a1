"""How probable many texts are to a causal model as the continuation of one context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.errors import Contradiction, OutOfRange
from recbias.core.machine.memory import release_between
from recbias.language.attention_masks import REMEDY, AttentionLayers
from recbias.language.causal_models import CausalModel
from recbias.language.prefix_trees import PrefixTree, Tokens, build_prefix_trees

TOLERANCES = {"float32": 1e-3, "bfloat16": 0.2}
"""By how much the score of a text in a tree may differ from its score alone."""


@dataclass(frozen=True, eq=False)
class Context:
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

    model: CausalModel
    texts: Sequence[Tokens]
    trees: Sequence[PrefixTree]
    layers: AttentionLayers

    @classmethod
    def from_texts(cls, model: CausalModel, texts: Sequence[str]) -> TextScorer:
        """Return the scorer of texts, tokenized as they are, without special tokens.

        Raises:
            Contradiction: The model scores a text otherwise when it shares a pass with others.
        """
        tokens = [model.tokenizer(text, add_special_tokens=False).input_ids for text in texts]
        layers = AttentionLayers.from_config(model.network.config)
        scorer = cls(model, tokens, build_prefix_trees(tokens), layers)
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
        return self.divide_by_length(self.sum_trees(self.trees, self.read_context(context)))

    def read_context(self, context: str) -> Context:
        """Return a context, evaluated once for all texts; errors are those of ``score``."""
        context_ids = self.model.encode(context)
        self._check_length(len(context_ids))
        return self._evaluate_context(context_ids)

    def score_after(self, contexts: Sequence[str]) -> Iterator[FloatArray]:
        """Yield the scores of the texts after each context; see ``score``."""
        return map(self.score, contexts)

    def sum_trees(self, trees: Sequence[PrefixTree], context: Context) -> FloatArray:
        """Return the sum of the log-probabilities in trees for each text, ``float64[n]``."""
        import torch

        totals = np.zeros(len(self.texts))
        with torch.inference_mode():
            for tree in release_between(trees):
                np.add.at(totals, tree.text_rows, self._score_tree(tree, context))
        return totals

    def divide_by_length(self, totals: FloatArray) -> FloatArray:
        """Return sums over the tokens of each text as means."""
        means: FloatArray = totals / np.array([len(text) for text in self.texts])
        return means

    def _evaluate_context(self, context_ids: Tokens) -> Context:
        import torch
        from transformers import DynamicCache

        cache = DynamicCache()  # without the configuration, it keeps tokens outside of a window
        with torch.inference_mode():
            ids = torch.tensor([context_ids], device=self.model.device)
            logits = self.model.network(ids, past_key_values=cache, use_cache=True).logits
            return Context(cache, logits[:, -1].float().log_softmax(dim=-1))

    def _check_length(self, n_context: int) -> None:
        longest = max((len(text) for text in self.texts), default=0)
        if not n_context:
            raise OutOfRange("a text is scored after an empty context", remedy="write a prompt")
        if n_context + longest > self.model.max_length:
            message = (
                f"a context of {n_context:,} tokens and a text of {longest:,} exceed the "
                f"{self.model.max_length:,} tokens of the model"
            )
            raise OutOfRange(message, remedy="shorten the history (max_history), or the prompt")

    def _check_sharing(self) -> None:
        """Refuse a model that does not respect the masks."""
        fault = self._find_sharing_fault() if self.texts else ""
        if fault:
            kind = self.model.network.config.model_type
            message = f"a model of the type {kind} cannot score texts together: {fault}"
            raise Contradiction(message, where="model", remedy=REMEDY)

    def _find_sharing_fault(self) -> str:
        """Return why a text of the largest tree has another score there than alone, or blank."""
        import torch

        tree = max(self.trees, key=lambda tree: tree.tokens.size)
        row = max(tree.text_rows.tolist(), key=lambda row: len(self.texts[row]))
        text = self.texts[row]
        context_ids = text[:1]
        try:
            total = self.sum_trees([tree], self._evaluate_context(context_ids))[row]
        except torch.OutOfMemoryError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            return "it does not accept an attention mask of its own for each token"
        score = score_tokens(self.model, context_ids, text)
        difference = abs(total / len(text) - score)
        tolerance = TOLERANCES[str(self.model.network.dtype).removeprefix("torch.")]
        is_equal = difference <= tolerance  # not where one is NaN
        return "" if is_equal else f"the score of one text changes by {difference:.2g}"

    def _score_tree(self, tree: PrefixTree, context: Context) -> AnyArray:
        """Return the log-probability of each token of each text of a tree, ``float64[t]``."""
        import torch

        nodes, next_tokens = torch.from_numpy(tree.nodes), torch.from_numpy(tree.next_tokens)
        scores = torch.empty(nodes.shape, dtype=torch.float64)
        is_first = nodes < 0
        first_tokens = next_tokens[is_first].to(context.root.device)
        scores[is_first] = context.root[0, first_tokens].double().cpu()
        if tree.tokens.size:
            logits = self._evaluate(tree, context.cache)
            inner = ~is_first
            rows, columns = nodes[inner].to(logits.device), next_tokens[inner].to(logits.device)
            normalizers = torch.cat([block.float().logsumexp(-1) for block in logits.split(64)])
            scores[inner] = (logits[rows, columns].float() - normalizers[rows]).double().cpu()
        array: AnyArray = scores.numpy()
        return array

    def _evaluate(self, tree: PrefixTree, cache: Any) -> Any:
        """Return the logits after each node, ``(n, vocabulary)``; the cache stays as it was."""
        import torch

        device, network = self.model.device, self.model.network
        n_context = cache.get_seq_length()
        positions = tree.depths + n_context
        output = network(
            torch.from_numpy(tree.tokens).to(device)[None],
            attention_mask=self.layers.make_masks(
                tree.visible, positions, dtype=network.dtype, device=device
            ),
            position_ids=torch.from_numpy(positions).to(device)[None],
            past_key_values=cache,
            use_cache=True,
        )
        cache.crop(-tree.tokens.size)
        return output.logits[0]


def score_separately(model: CausalModel, context: str, texts: Sequence[str]) -> Iterator[float]:
    """Yield the score of each text by one pass over the context and the text: the definition."""
    context_ids = model.encode(context)
    for text in texts:
        tokens = model.tokenizer(text, add_special_tokens=False).input_ids
        yield score_tokens(model, context_ids, tokens)


def score_tokens(model: CausalModel, context_ids: Tokens, tokens: Tokens) -> float:
    """Return the mean log-probability of tokens after a context, by one pass over both."""
    import torch

    ids = torch.tensor([[*context_ids, *tokens]], device=model.device)
    with torch.inference_mode():
        logits = model.network(ids).logits[0, len(context_ids) - 1 : -1].float()
    log_probabilities = logits.log_softmax(dim=-1)
    return float(log_probabilities[range(len(tokens)), tokens].double().mean())
