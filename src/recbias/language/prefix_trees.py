"""The prefixes that texts share, as trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import BoolArray

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
