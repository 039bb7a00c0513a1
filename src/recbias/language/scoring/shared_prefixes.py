"""Sentences that begin alike, such as the copies of a pair: shared beginnings are read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.errors import Contradiction
from recbias.language.attention_masks import AttentionLayers
from recbias.language.prefix_trees import PrefixTree, build_prefix_trees
from recbias.language.scoring.sentence_models import SentenceModel
from recbias.language.scoring.sentence_tokens import SentenceTokens
from recbias.language.scoring.target_probabilities import read_targets

MAX_NODES = 256
"""The largest number of tokens in a tree: attention within it is quadratic."""

MIN_SAVING = 0.1
"""The least share of tokens that trees must save, for which their attention costs more."""

TOLERANCES = {"float32": 1e-4, "bfloat16": 0.2}
"""By how much the log-probability of a token in a tree may differ from that by itself."""


@dataclass(frozen=True, eq=False)
class SharedPrefixes:
    """Sentences of a causal model as trees of their prefixes.

    Args:
        model: The model.
        tokens: The sentences.
        trees: Their prefixes; ``text_rows`` are positions of sentences.
        layers: What the attention layers of the model see.
    """

    model: SentenceModel
    tokens: SentenceTokens
    trees: Sequence[PrefixTree]
    layers: AttentionLayers

    @classmethod
    def find(
        cls, model: SentenceModel, tokens: SentenceTokens, rows: AnyArray, max_nodes: int
    ) -> SharedPrefixes | None:
        """Return the trees of some sentences; None if they save little, or change the scores."""
        try:
            layers = AttentionLayers.from_config(model.network.config)
        except Contradiction:  # a recurrent model reads one text after another
            return None
        texts = [
            tokens.values[tokens.starts[row] : tokens.starts[row + 1]].tolist() for row in rows
        ]
        trees = build_prefix_trees(texts, min(MAX_NODES, max_nodes))
        n_nodes = sum(tree.tokens.size for tree in trees)
        if n_nodes > (1 - MIN_SAVING) * tokens.lengths[rows].sum():
            return None
        shared = cls(model, tokens, [_renumber(tree, rows) for tree in trees], layers)
        return shared if shared.is_exact() else None

    def is_exact(self) -> bool:
        """Return whether the last sentence of a tree has the same probabilities alone."""
        import torch

        tree = max(self.trees, key=lambda tree: tree.tokens.size)
        row = tree.text_rows[-1]
        text = self.tokens.values[self.tokens.starts[row] : self.tokens.starts[row + 1]]
        try:
            together = self.evaluate(tree)[1]
            alone = self.evaluate(PrefixTree.from_texts([text.tolist()], [row]), is_plain=True)[1]
        except torch.OutOfMemoryError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            return False
        tolerance = TOLERANCES[str(self.model.network.dtype).removeprefix("torch.")]
        return bool(np.allclose(together[-alone.size :], alone, rtol=0, atol=tolerance))

    def evaluate(self, tree: PrefixTree, *, is_plain: bool = False) -> tuple[AnyArray, FloatArray]:
        """Return the positions of tokens and their log-probabilities, by one pass over a tree.

        Args:
            tree: The tree.
            is_plain: Whether it is a single sentence, which needs no mask.
        """
        import torch

        device, network = self.model.device, self.model.network
        inputs = {"input_ids": torch.from_numpy(tree.tokens).to(device)[None]}
        if not is_plain:
            inputs["position_ids"] = torch.from_numpy(tree.depths).to(device)[None]
            inputs["attention_mask"] = self.layers.make_masks(
                tree.visible, tree.depths, dtype=network.dtype, device=device
            )
        logits = network(**inputs, use_cache=False).logits[0]
        has_context = tree.nodes >= 0
        nodes = tree.nodes[has_context]
        positions = self.tokens.starts[tree.text_rows[has_context]] + tree.depths[nodes] + 1
        return positions, read_targets(logits, tree.next_tokens[has_context], nodes)


def _renumber(tree: PrefixTree, rows: AnyArray) -> PrefixTree:
    """Return a tree whose texts are numbered as all sentences are."""
    return PrefixTree(
        tree.tokens,
        tree.depths,
        tree.visible,
        rows[tree.text_rows],
        tree.nodes,
        tree.next_tokens,
    )
