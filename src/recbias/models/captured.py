"""The passes of a training step as CUDA graphs, whose kernels do not wait for Python.

Where capturing fails, the device is brought back, and a warning says so.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from recbias.core.context import record_fact, warn
from recbias.models.gpu import Tensor


@contextmanager
def _undo_failed_capture(device: Any, pool: Any, generators: Sequence[Any] = ()) -> Iterator[None]:
    """Bring a device back to where it was before the block, if a capture in it fails.

    The device is the current one in the block.

    A capture that fails leaves its stream as the current one, generators that wait for its end, so
    that no number can be drawn, and an allocator that takes it to be under way.

    Args:
        device: A ``torch.device`` with a number.
        pool: The memory pool of the capture.
        generators: The generators that the graph draws from, besides that of the device.
    """
    import torch

    allocator = torch._C  # noqa: SLF001  torch does this nowhere else
    stream = torch.cuda.current_stream(device)
    default = torch.cuda.default_generators[device.index]
    states = [(generator, generator.get_state()) for generator in (default, *generators)]
    try:
        with torch.cuda.device(device):
            yield
    except RuntimeError:
        torch.cuda.set_stream(stream)
        for name in ("_cuda_endAllocateToPool", "_cuda_releasePool"):
            with suppress(RuntimeError):  # the end of the capture may have come so far
                getattr(allocator, name)(device.index, pool)
        for generator, state in states:
            fresh = torch.Generator(generator.device)
            fresh.set_state(state)
            generator.graphsafe_set_state(fresh.graphsafe_get_state())
        torch.cuda.synchronize(device)
        raise


def _warn_about_failure(name: str, error: BaseException) -> None:
    """Warn that a model is trained without CUDA graphs, and why."""
    while error.__context__ is not None:  # the end of a capture fails where its middle did
        error = error.__context__
    reason = " ".join(str(error).strip().split("\n")[0].split())
    warn(
        f"{name}: no CUDA graph can be captured ({reason}), so each kernel is launched by Python: "
        "training is slower, and the result is the same up to rounding"
    )


@dataclass(eq=False)
class _Gradients:
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
class _PassGraphs:
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
    gradients: _Gradients
    positions: Sequence[int]
    forward: Any
    backward: Any
    token: Any = None

    @classmethod
    def capture(
        cls, module: Any, inputs: Mapping[str, Any], gradients: _Gradients, target: tuple[Any, Any]
    ) -> _PassGraphs:
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
        def forward(context: Any, _anchor: Tensor, graphs: _PassGraphs) -> tuple[Tensor, ...]:
            context.graphs, context.token = graphs, _Token()
            graphs.token = weakref.ref(context.token)
            return graphs.replay_forward()

        @staticmethod
        def backward(context: Any, *output_gradients: Tensor | None) -> tuple[None, None]:
            context.graphs.replay_backward(output_gradients)
            return None, None

    return Replay


MAX_GRAPHS = 64
"""Number of shapes of inputs of which passes are captured."""

_MIN_PASSES = 2
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
    graphs: dict[Any, _PassGraphs] = field(default_factory=dict)
    counts: Counter[Any] = field(default_factory=Counter)
    is_capturing: bool = False
    has_failed: bool = False

    def __post_init__(self) -> None:
        import torch

        self.compute = self.module.forward
        self.gradients = _Gradients(
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

    def _find_graph(self, inputs: Mapping[str, Any]) -> _PassGraphs | None:
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
        if self.counts[key] < _MIN_PASSES or len(self.graphs) == MAX_GRAPHS:
            return None
        self.is_capturing = True
        try:
            with _undo_failed_capture(self.gradients.device, self.target[0]):
                self.graphs[key] = _PassGraphs.capture(
                    self.module, inputs, self.gradients, self.target
                )
        except RuntimeError as error:
            self.has_failed = True
            self.graphs.clear()
            _warn_about_failure(self.name, error)
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


_WARM_UP = 3
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
            if self.n_steps <= _WARM_UP or not self._capture(batch):
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
            with _undo_failed_capture(device, pool, self.generators):
                for generator in self.generators:
                    graph.register_generator_state(generator)
                with torch.cuda.graph(graph, pool, stream, capture_error_mode="thread_local"):
                    self.total = self.step(*self.batch)
        except RuntimeError as error:
            self.has_failed = True
            self.clear()
            _warn_about_failure(self.name, error)
            return False
        self.graph = graph
        return True
