"""A training as arrays, from which it goes on as if it had not been cut off."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.models.ranking.tensors import Tensor, array_of
from recbias.models.training.early_stopping import EarlyStopping


@runtime_checkable
class Remembers(Protocol):
    """A learner whose losses hang on tensors that no gradient changes, such as a step count."""

    def memory(self) -> Sequence[Tensor]:
        """Return those tensors, the same ones each time; the learner changes them in place."""
        ...


def memory_of(learner: Any) -> Sequence[Tensor]:
    """Return the memory of a learner, none where it has none."""
    return learner.memory() if isinstance(learner, Remembers) else ()


@dataclass(frozen=True, eq=False)
class TrainingState:
    """Everything that the next epoch hangs on.

    Args:
        parameters: What is learned.
        memory: What the learner keeps besides.
        optimizer: The ``torch.optim`` optimizer, with its moments.
        stopping: The judgements so far, and the best epoch.
        rng: What epochs are drawn with.
        losses: The mean loss of each epoch so far.
    """

    parameters: Sequence[Tensor]
    memory: Sequence[Tensor]
    optimizer: Any
    stopping: EarlyStopping
    rng: np.random.Generator
    losses: list[float] = field(default_factory=list)

    def arrays(
        self, epoch: int, step: int = 0, drawn_from: Mapping[str, Any] | None = None
    ) -> Mapping[str, AnyArray]:
        """Return the state after an epoch, or after some steps of the one behind it.

        Args:
            epoch: How many epochs are done.
            step: How many steps of the next one are done.
            drawn_from: The state of the generator from which that epoch was drawn.
        """
        moments = self.optimizer.state_dict()["state"]
        drawn = self.rng.bit_generator.state if drawn_from is None else drawn_from
        return {
            "epoch": np.array(epoch),
            "step": np.array(step),
            "rng": np.array(json.dumps(drawn)),
            "losses": np.array(self.losses, dtype=np.float64),
            "curve": np.array(self.stopping.curve, dtype=np.float64),
            **_named("parameter", self.parameters),
            **_named("memory", self.memory),
            **_named("kept", self.stopping.kept),
            **{
                f"moment.{place}.{name}": array_of(each)
                for place, found in moments.items()
                for name, each in found.items()
            },
        }

    def taken_up(self, arrays: Mapping[str, AnyArray] | None) -> tuple[int, int]:
        """Put a state back, where there is one.

        Returns:
            How many epochs are done, and how many steps of the next one.
        """
        if arrays is None:
            return 0, 0
        import torch

        for name, tensors in (("parameter", self.parameters), ("memory", self.memory)):
            for place, tensor in enumerate(tensors):
                tensor.data.copy_(torch.from_numpy(arrays[f"{name}.{place}"]))
        self._take_moments(arrays)
        self.losses[:] = arrays["losses"].tolist()
        self.rng.bit_generator.state = json.loads(str(arrays["rng"]))
        device = self.parameters[0].device
        kept = [
            torch.from_numpy(arrays[f"kept.{place}"]).to(device)
            for place in range(len(self.parameters))
            if f"kept.{place}" in arrays
        ]
        self.stopping.take_up(arrays["curve"].tolist(), kept)
        return int(arrays["epoch"]), int(arrays["step"])

    def _take_moments(self, arrays: Mapping[str, AnyArray]) -> None:
        import torch

        moments: dict[int, dict[str, Any]] = {}
        for key, each in arrays.items():
            kind, _, rest = key.partition(".")
            if kind == "moment":
                place, _, name = rest.partition(".")
                moments.setdefault(int(place), {})[name] = torch.from_numpy(each.copy())
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})


def _named(kind: str, tensors: Sequence[Tensor]) -> dict[str, AnyArray]:
    return {f"{kind}.{place}": array_of(each) for place, each in enumerate(tensors)}
