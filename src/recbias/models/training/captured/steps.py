"""A step of an optimizer as a CUDA graph, for batches of one size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from recbias.models.ranking.tensors import Tensor
from recbias.models.training.captured.failures import undo_failed_capture, warn_about_failure

WARM_UP = 3
"""Number of steps before the one that is captured, in which kernels are chosen."""


class CapturedStep:
    """Loss, gradients and step of the optimizer for batches of one size, launched at once.

    Other batches, the last of an epoch, are left to the caller, and so is every batch if the step
    cannot be captured, with a warning.

    Args:
        name: The model, in the warning.
        step: Takes the tensors of a batch, moves the parameters, and returns the loss.
        clear: Drops the gradients of the last step.
        batch_size: The size.
        generators: The generators of random numbers within the loss, besides that of the device.
    """

    def __init__(
        self,
        name: str,
        step: Callable[..., Tensor],
        clear: Callable[[], None],
        batch_size: int,
        generators: Sequence[Any],
    ) -> None:
        self.name, self.step, self.clear, self.batch_size = name, step, clear, batch_size
        self.generators = generators
        self.n_steps, self.has_failed = 0, False
        self.graph: Any = None
        self.batch: Sequence[Tensor] = ()
        self.total: Tensor = None

    def __call__(self, *batch: Tensor) -> Tensor | None:
        """Move the parameters and return the loss of a batch; None if it is not captured."""
        if self.has_failed or len(batch[0]) != self.batch_size:
            return None
        if self.graph is None:
            self.n_steps += 1
            if self.n_steps <= WARM_UP or not self._capture(batch):
                return None
        for target, tensor in zip(self.batch, batch, strict=True):
            target.copy_(tensor, non_blocking=True)
        self.graph.replay()
        return self.total

    def _capture(self, batch: Sequence[Tensor]) -> bool:
        import torch

        self.batch = [tensor.clone() for tensor in batch]
        self.clear()
        graph, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
        device = batch[0].device
        stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        try:
            with undo_failed_capture(device, pool, self.generators):
                for generator in self.generators:
                    graph.register_generator_state(generator)
                with torch.cuda.graph(graph, pool, stream, capture_error_mode="thread_local"):
                    self.total = self.step(*self.batch)
        except RuntimeError as error:
            self.has_failed = True
            self.clear()
            warn_about_failure(self.name, error)
            return False
        self.graph = graph
        return True
