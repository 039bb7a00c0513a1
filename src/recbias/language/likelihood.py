"""How probable many texts are to a causal model as the continuation of one context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.errors import OutOfRange
from recbias.language.causal_models import CausalModel

MAX_NODES = 512
"""The largest number of tokens that are evaluated in one pass after the context."""

Tokens = Sequence[int]


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
    def from_texts(cls, texts: Sequence[Tokens], rows: Sequence[int]) -> PrefixTree:
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


def build_prefix_trees(texts: Sequence[Tokens], max_nodes: int = MAX_NODES) -> list[PrefixTree]:
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


@dataclass(frozen=True, eq=False)
class TextScorer:
    """Scores the same texts after any number of contexts.

    The keys and values of the context are computed once and shared by all texts; prefixes that
    texts share are evaluated once.

    Args:
        model: The model.
        texts: The tokens of each text; none is empty.
        trees: Their prefixes.
    """

    model: CausalModel
    texts: Sequence[Tokens]
    trees: Sequence[PrefixTree]

    @classmethod
    def from_texts(cls, model: CausalModel, texts: Sequence[str]) -> TextScorer:
        """Return the scorer of texts, tokenized as they are, without special tokens."""
        tokens = model.tokenizer(list(texts), add_special_tokens=False).input_ids
        return cls(model, tokens, build_prefix_trees(tokens))

    def score(self, context: str) -> FloatArray:
        """Return the mean log-probability of the tokens of each text, ``float64[n]``.

            score(text) = (1/m) Σ_j ln p(token j | context, tokens before j)

        Args:
            context: The text before; special tokens in it are read as such.

        Raises:
            OutOfRange: The context and the longest text exceed the length of the model.
        """
        import torch

        ids = self.model.tokenizer(context, return_tensors="pt", add_special_tokens=False)
        context_ids = ids.input_ids.to(self.model.device)
        self._check_length(context_ids.shape[1])
        totals = np.zeros(len(self.texts))
        with torch.inference_mode():
            output = self.model.network(context_ids, use_cache=True)
            root = output.logits[:, -1:].float().log_softmax(dim=-1)[0]
            for tree in self.trees:
                scores = self._score_tree(tree, output.past_key_values, root)
                np.add.at(totals, tree.text_rows, scores)
        return totals / np.array([len(text) for text in self.texts])

    def _check_length(self, n_context: int) -> None:
        longest = max((len(text) for text in self.texts), default=0)
        if n_context + longest > self.model.max_length:
            message = (
                f"a context of {n_context:,} tokens and a text of {longest:,} exceed the "
                f"{self.model.max_length:,} tokens of the model"
            )
            raise OutOfRange(message, remedy="shorten the history: max_items in the prompt")

    def _score_tree(self, tree: PrefixTree, cache: Any, root: Any) -> AnyArray:
        """Return the log-probability of each token of each text of a tree, ``float64[t]``."""
        import torch

        nodes, next_tokens = torch.from_numpy(tree.nodes), torch.from_numpy(tree.next_tokens)
        scores = torch.empty(nodes.shape, dtype=torch.float64)
        is_first = nodes < 0
        scores[is_first] = root[0, next_tokens[is_first].to(root.device)].double().cpu()
        if tree.tokens.size:
            logits = self._evaluate(tree, cache)
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
        is_visible = np.concatenate(
            [np.ones((tree.tokens.size, n_context), dtype=bool), tree.visible], axis=1
        )
        hidden = torch.finfo(network.dtype).min
        mask = torch.zeros(is_visible.shape, dtype=network.dtype, device=device)
        mask.masked_fill_(~torch.from_numpy(is_visible).to(device), hidden)
        output = network(
            torch.from_numpy(tree.tokens).to(device)[None],
            attention_mask=mask[None, None],
            position_ids=torch.from_numpy(tree.depths).to(device)[None] + n_context,
            past_key_values=cache,
            use_cache=True,
        )
        cache.crop(-tree.tokens.size)
        return output.logits[0]


def score_separately(model: CausalModel, context: str, texts: Sequence[str]) -> Iterator[float]:
    """Yield the score of each text by one pass over the context and the text: the definition."""
    import torch

    context_ids = model.tokenizer(context, add_special_tokens=False).input_ids
    for text in texts:
        tokens = model.tokenizer(text, add_special_tokens=False).input_ids
        ids = torch.tensor([[*context_ids, *tokens]], device=model.device)
        with torch.inference_mode():
            logits = model.network(ids).logits[0, len(context_ids) - 1 : -1].float()
        log_probabilities = logits.log_softmax(dim=-1)
        yield float(log_probabilities[range(len(tokens)), tokens].double().mean())
