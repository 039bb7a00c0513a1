"""A task for fine-tuning: a transformer of one layer that tells which token a text repeats."""

from __future__ import annotations

import math
import os
import signal
from typing import Any

import numpy as np

from recbias.core import context
from recbias.core.dataset import AnyArray
from recbias.models.training import Task

N_TOKENS, WIDTH = 5, 6


class Repeats(Task):
    """Predict the token that a text repeats; a process may fail in its second batch.

    Args:
        n: The number of texts.
        failing: The process that fails, by its rank; None for none.
        failure: ``kill`` ends the process, ``memory`` is a full device.
    """

    def __init__(self, n: int = 23, failing: int | None = None, failure: str = "") -> None:
        import torch

        rng = np.random.default_rng(8)
        self.classes = rng.integers(N_TOKENS, size=n)
        self.texts = np.where(rng.random((n, WIDTH)) < 0.6, self.classes[:, None], N_TOKENS)
        self.failing, self.failure, self.n_batches = failing, failure, 0
        with torch.random.fork_rng():
            torch.manual_seed(2)
            layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
            self.network: Any = torch.nn.ModuleDict(
                {
                    "embedding": torch.nn.Embedding(N_TOKENS + 1, 8),
                    "layers": torch.nn.ModuleList([layer]),
                    "head": torch.nn.Linear(8, N_TOKENS),
                    "unused": torch.nn.Linear(2, 2),
                }
            )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Save a checkpoint at each step in the process that this object comes to."""
        vars(self).update(state)
        vars(context).update(MIN_CHECKPOINT_INTERVAL=0.0, CHECKPOINT_TIME_SHARE=math.inf)

    @property
    def module(self) -> Any:
        """The network."""
        return self.network

    @property
    def lengths(self) -> AnyArray:
        """All texts have the same number of tokens."""
        return np.full(len(self.texts), WIDTH)

    def loss(self, rows: AnyArray) -> Any:
        """Return the sum of the cross-entropies of texts."""
        import torch
        from torch.nn.functional import cross_entropy

        self.n_batches += 1
        if self.n_batches == 2 and self.failing is not None:
            self._fail()
        classes = torch.from_numpy(self.classes[rows])
        return cross_entropy(self._logits(rows), classes, reduction="sum")

    @property
    def has_validation_texts(self) -> bool:
        """The training texts are the validation texts."""
        return True

    def validation_score(self) -> float:
        """Return the accuracy on all texts."""
        import torch

        with torch.no_grad():
            predicted = self._logits(np.arange(len(self.texts))).argmax(1).numpy()
        return float((predicted == self.classes).mean())

    def weights(self) -> dict[str, AnyArray]:
        """Return the weights by name."""
        return {name: tensor.numpy() for name, tensor in self.module.state_dict().items()}

    def _logits(self, rows: AnyArray) -> Any:
        import torch

        states = self.module["embedding"](torch.from_numpy(self.texts[rows]))
        for layer in self.module["layers"]:
            states = layer(states)
        return self.module["head"](states.mean(1))

    def _fail(self) -> None:
        import torch

        if torch.distributed.get_rank() != self.failing:
            return
        if self.failure == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise torch.OutOfMemoryError("out of memory")
