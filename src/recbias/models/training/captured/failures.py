"""Captures that fail: the device is brought back, and a warning says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from recbias.core.stage_context import warn


@contextmanager
def undo_failed_capture(device: Any, pool: Any, generators: Sequence[Any] = ()) -> Iterator[None]:
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


def warn_about_failure(name: str, error: BaseException) -> None:
    """Warn that a model is trained without CUDA graphs, and why."""
    while error.__context__ is not None:  # the end of a capture fails where its middle did
        error = error.__context__
    reason = " ".join(str(error).strip().split("\n")[0].split())
    warn(
        f"{name}: no CUDA graph can be captured ({reason}), so each kernel is launched by Python: "
        "training is slower, and the result is the same up to rounding"
    )
