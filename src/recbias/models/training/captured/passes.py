"""The passes of a module in training as CUDA graphs, whose kernels do not wait for Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from recbias.core.stage_context import record_fact
from recbias.models.training.captured.failures import undo_failed_capture, warn_about_failure
from recbias.models.training.captured.pass_graphs import Gradients, PassGraphs

MAX_GRAPHS = 64
"""Number of shapes of inputs of which passes are captured."""

MIN_PASSES = 2
"""The pass of a shape that is captured; those before are not, and choose the kernels."""


@contextmanager
def capture_passes(module: Any, name: str) -> Iterator[None]:
    """Capture the passes of a module on CUDA in the block, and replay them for the same shapes.

    A step of a language model of usual size has some thousand kernels, each of which is over
    before Python has launched the next. A CUDA graph launches all kernels of a pass at once. It
    is captured when a shape of inputs comes for the second time, and computes the same values
    from the same random numbers. Gradients are added to the same tensors by all graphs, so that
    their memory does not grow with the number of shapes, and neither does that of activations.

    A pass whose module waits for the device, which a graph cannot, is not captured, with a
    warning. Passes without gradients, and those on other devices, are not captured either.

    Args:
        module: A ``torch`` module; its output is a tensor, or a tree of tensors and others.
        name: The model, in the warning.
    """
    device = next(module.parameters()).device
    if device.type != "cuda" or "forward" in vars(module):
        yield
        return
    passes = _CapturedPasses(module, name)
    module.forward = passes
    try:
        yield
    finally:
        del module.forward
        record_fact("cuda_graphs", len(passes.graphs))


@dataclass(eq=False)
class _CapturedPasses:
    """The forward function of a module while its passes are captured."""

    module: Any
    name: str
    graphs: dict[Any, PassGraphs] = field(default_factory=dict)
    counts: Counter[Any] = field(default_factory=Counter)
    is_capturing: bool = False
    has_failed: bool = False

    def __post_init__(self) -> None:
        import torch

        self.compute = self.module.forward
        self.gradients = Gradients(
            [parameter for parameter in self.module.parameters() if parameter.requires_grad]
        )
        stream = torch.cuda.Stream(self.gradients.device)  # type: ignore[no-untyped-call]
        self.target = (torch.cuda.graph_pool_handle(), stream)
        self.anchor = torch.zeros((), device=self.gradients.device, requires_grad=True)

    def __call__(self, *args: Any, **inputs: Any) -> Any:
        """Return the output of the module."""
        graph = None if args or self.is_capturing else self._find_graph(inputs)
        if graph is None:
            return self.compute(*args, **inputs)
        return graph.run(inputs, self.anchor)

    def _find_graph(self, inputs: Mapping[str, Any]) -> PassGraphs | None:
        """Return the graphs of a pass, captured now if it is time; None if there are none.

        There are none while another pass waits for its gradients: its activations are in memory
        that the graphs share.
        """
        import torch

        is_waiting = any(graph.is_waiting for graph in self.graphs.values())
        if self.has_failed or is_waiting or not torch.is_grad_enabled():
            return None
        key = self._describe(inputs)
        if key is None or key in self.graphs:
            return None if key is None else self.graphs[key]
        self.counts[key] += 1
        if self.counts[key] < MIN_PASSES or len(self.graphs) == MAX_GRAPHS:
            return None
        self.is_capturing = True
        try:
            with undo_failed_capture(self.gradients.device, self.target[0]):
                self.graphs[key] = PassGraphs.capture(
                    self.module, inputs, self.gradients, self.target
                )
        except RuntimeError as error:
            self.has_failed = True
            self.graphs.clear()
            warn_about_failure(self.name, error)
        finally:
            self.is_capturing = False
        return self.graphs.get(key)

    def _describe(self, inputs: Mapping[str, Any]) -> Any:
        """Return what passes of the same graphs have in common; None for other inputs."""
        import torch

        parts: list[Any] = [self.module.training, torch.is_autocast_enabled("cuda")]
        for name, value in inputs.items():
            if isinstance(value, torch.Tensor):
                if value.requires_grad:
                    return None
                parts.append((name, tuple(value.shape), value.dtype))
            elif value is None or isinstance(value, (bool, int, float, str)):
                parts.append((name, value))
            else:
                return None
        return tuple(parts)
