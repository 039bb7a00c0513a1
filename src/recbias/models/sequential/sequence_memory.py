"""The memory that sequential models need, by the sizes of the data and their settings."""

from __future__ import annotations

from dataclasses import dataclass

from recbias.core.machine.expected import ModelMemory, Sizes

ENCODED_TOKENS = 2**15
"""The number of items, padding included, that are encoded together for recommendation."""

HISTORY = 40.0
"""Bytes of a training interaction: its place in time, its item, and the keys of unseen items."""

LISTED = 24.0
"""Bytes of a training interaction while lists are computed: its place in time, and its item."""

COPIES = 3
"""Number of times that a score is there at once: its logarithm, and the gradients of both."""

ATTENTION = 6
"""Number of matrices of attention weights that a layer keeps for its gradients."""


@dataclass(frozen=True)
class SequenceMemory:
    """The memory of a network that reads windows of items.

    Args:
        size: The size of the vectors.
        layers: Number of layers.
        heads: Number of attention heads; 0 for none.
        longest: Number of positions of a window.
        batch_size: Windows of a batch.
        vectors: Number of vectors of a position that a layer keeps for its gradients.
        encoded: Number of vectors of a position that are there at once without gradients.
        share: Share of the items of a window whose scores are computed.
        n_scores: Scores of such an item, if they are not those of all items.
    """

    size: int
    layers: int
    heads: int
    longest: int
    batch_size: int
    vectors: int
    encoded: int
    share: float = 1.0
    n_scores: int = 0

    def plan(self, sizes: Sizes) -> ModelMemory:
        """Return the memory of training, and of lists."""
        n_users, n_items, n = sizes["users"], sizes["items"], sizes["training"]
        weights = 4.0 * (n_items * (self.size + 1) + 12 * self.layers * self.size**2)
        users = 4.0 * n_users * self.size
        mean = n / max(n_users, 1)
        width = max(1.0, min(self.longest, 4 * mean))  # of the longest window of a batch
        filled = max(1.0, min(self.longest, mean / (mean / self.longest + 0.5)))  # of a mean one
        n_windows = min(float(self.batch_size), n / filled)
        kept = self._count_bytes(n_windows * width, width, self.layers, self.vectors)
        scores = 4 * self.share * n_windows * filled * (self.n_scores or n_items)
        encoded = self._count_bytes(
            min(float(ENCODED_TOKENS), n_users * width), width, 1, self.encoded
        )
        fit = HISTORY * n + 5 * weights + kept + max(COPIES * scores, encoded + 2 * users)
        return ModelMemory(
            fit=fit,
            state=weights + users,
            lists=LISTED * n + weights + users + encoded,
            ranking="tiles",
            lists_with=("torch",),
        )

    def _count_bytes(self, positions: float, width: float, layers: int, vectors: int) -> float:
        """Return the bytes of the vectors of positions, and of attention within windows."""
        return 4 * positions * layers * (vectors * self.size + ATTENTION * self.heads * width)
