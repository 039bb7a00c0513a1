"""CUDA graphs of a forward and a backward pass, and the gradients that they add to."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from recbias.models.ranking.tensors import Tensor


@dataclass(eq=False)
class Gradients:
    """The gradients of parameters, which all graphs add to.

    Args:
        parameters: The parameters.
    """

    parameters: Sequence[Tensor]
    sums: dict[int, Tensor] = field(default_factory=dict)  # by the position of the parameter

    @property
    def device(self) -> Any:
        """The device of the parameters."""
        return self.parameters[0].device

    def make_sums(self, positions: Sequence[int]) -> None:
        """Allocate the sums of some parameters, by position."""
        import torch

        for position in positions:
            if position not in self.sums:
                self.sums[position] = torch.zeros_like(self.parameters[position])

    def prepare(self, positions: Sequence[int]) -> None:
        """Let the gradients of some parameters be their sums, which keep what was added before."""
        import torch

        cleared = []
        for position in positions:
            parameter, total = self.parameters[position], self.sums[position]
            if parameter.grad is None:
                cleared.append(total)
            elif parameter.grad is not total:
                total.copy_(parameter.grad)
            parameter.grad = total
        if cleared:
            torch._foreach_zero_(cleared)


class _Token:
    """Exists as long as the gradients of a pass can still be asked for."""


@dataclass(eq=False)
class PassGraphs:
    """The graphs of the forward and the backward pass for one shape of inputs.

    Args:
        inputs: The tensors that the forward pass reads.
        outputs: Those that it writes, of which there are gradients.
        output_gradients: Their gradients, which the backward pass reads.
        structure: The tree of the output, its leaves, and the numbers of those in ``outputs``.
        gradients: The gradients of all parameters.
        positions: The parameters that have gradients, by position.
        forward: The graph of the forward pass.
        backward: That of the backward pass.
    """

    inputs: Mapping[str, Tensor]
    outputs: Sequence[Tensor]
    output_gradients: Sequence[Tensor]
    structure: tuple[Any, Sequence[Any], Sequence[int]]
    gradients: Gradients
    positions: Sequence[int]
    forward: Any
    backward: Any
    token: Any = None

    @classmethod
    def capture(
        cls, module: Any, inputs: Mapping[str, Any], gradients: Gradients, target: tuple[Any, Any]
    ) -> PassGraphs:
        """Capture both passes; RuntimeError if the module does what a graph cannot.

        The target of the capture is a memory pool and a stream, the same ones for all graphs.
        They read the parameters as new leaves in the same memory, since autograd may still hold
        the old ones for an earlier pass on another stream.
        """
        import torch
        from torch.func import functional_call
        from torch.utils._pytree import tree_flatten

        aliases = {
            name: parameter.detach().requires_grad_(parameter.requires_grad)
            for name, parameter in module.named_parameters()
        }
        trained = [alias for alias in aliases.values() if alias.requires_grad]

        tensors = {
            name: value.clone()
            for name, value in inputs.items()
            if isinstance(value, torch.Tensor)
        }
        forward, backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        torch.clear_autocast_cache()
        with torch.cuda.graph(forward, *target, capture_error_mode="thread_local"):
            leaves, tree = tree_flatten(
                functional_call(module, aliases, kwargs={**inputs, **tensors})
            )
        torch.clear_autocast_cache()
        numbers = [
            number
            for number, leaf in enumerate(leaves)
            if isinstance(leaf, torch.Tensor) and leaf.requires_grad
        ]
        outputs = [leaves[number] for number in numbers]
        output_gradients = [torch.zeros_like(output) for output in outputs]
        gradients.make_sums(range(len(gradients.parameters)))
        with torch.cuda.graph(backward, *target, capture_error_mode="thread_local"):
            weight_gradients = torch.autograd.grad(
                outputs, trained, output_gradients, allow_unused=True
            )
            positions = [
                position
                for position, gradient in enumerate(weight_gradients)
                if gradient is not None
            ]
            torch._foreach_add_(
                [gradients.sums[position] for position in positions],
                [weight_gradients[position] for position in positions],
            )
        leaves = [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        return cls(
            tensors,
            [leaves[number] for number in numbers],
            output_gradients,
            (tree, leaves, numbers),
            gradients,
            positions,
            forward,
            backward,
        )

    @property
    def is_waiting(self) -> bool:
        """Whether the gradients of the last pass can still be asked for."""
        return self.token is not None and self.token() is not None

    def run(self, inputs: Mapping[str, Any], anchor: Tensor) -> Any:
        """Return the output for inputs of the same shapes."""
        from torch.utils._pytree import tree_unflatten

        for name, tensor in self.inputs.items():
            tensor.copy_(inputs[name], non_blocking=True)
        tree, leaves, numbers = self.structure
        outputs = _make_function().apply(anchor, self)
        complete = list(leaves)
        for number, output in zip(numbers, outputs, strict=True):
            complete[number] = output
        return tree_unflatten(complete, tree)

    def replay_forward(self) -> tuple[Tensor, ...]:
        """Compute the outputs."""
        self.forward.replay()
        return tuple(output.detach() for output in self.outputs)

    def replay_backward(self, output_gradients: Sequence[Tensor | None]) -> None:
        """Add the gradients of the parameters."""
        for tensor, gradient in zip(self.output_gradients, output_gradients, strict=True):
            if gradient is None:
                tensor.zero_()
            else:
                tensor.copy_(gradient)
        self.gradients.prepare(self.positions)
        self.backward.replay()
        self.token = None


@cache
def _make_function() -> Any:
    """Return the function of autograd that replays the graphs of a pass."""
    import torch

    class Replay(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, _anchor: Tensor, graphs: PassGraphs) -> tuple[Tensor, ...]:
            context.graphs, context.token = graphs, _Token()
            graphs.token = weakref.ref(context.token)
            return graphs.replay_forward()

        @staticmethod
        def backward(context: Any, *output_gradients: Tensor | None) -> tuple[None, None]:
            context.graphs.replay_backward(output_gradients)
            return None, None

    return Replay
