"""The checkpoint of a training: everything that the next epoch depends on, as arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.models.ranking.tensors import Tensor, copy_to_array
from recbias.models.training.early_stopping import EarlyStopping


@runtime_checkable
class HasBuffers(Protocol):
    """A learner whose losses depend on tensors without gradients, such as a step count."""

    def buffers(self) -> Sequence[Tensor]:
        """Return these tensors, always the same objects; the learner changes them in place."""


@dataclass(frozen=True, eq=False)
class TrainingState:
    """Everything that the next epoch depends on."""

    parameters: Sequence[Tensor]  # The trainable tensors
    buffers: Sequence[Tensor]  # The other tensors of the learner
    optimizer: Any  # The ``torch.optim`` optimizer with its moments
    stopping: EarlyStopping  # The validation scores and the best epoch
    rng: np.random.Generator  # The generator that samples the epochs
    losses: list[float] = field(default_factory=list)  # The mean loss of each epoch

    def arrays(
        self, epoch: int, step: int = 0, rng_state: Mapping[str, Any] | None = None
    ) -> Mapping[str, AnyArray]:
        """Return the state after an epoch, or after ``step`` steps of the epoch that follows it.

        ``rng_state`` is the state of the generator before that epoch was sampled.
        """
        moments = self.optimizer.state_dict()["state"]
        generator = self.rng.bit_generator.state if rng_state is None else rng_state
        return {
            "epoch": np.array(epoch),
            "step": np.array(step),
            "rng": np.array(json.dumps(generator)),
            "losses": np.array(self.losses, dtype=np.float64),
            "curve": np.array(self.stopping.scores, dtype=np.float64),
            **_name_arrays("parameter", self.parameters),
            **_name_arrays("memory", self.buffers),
            **_name_arrays("kept", self.stopping.best),
            **{
                f"moment.{index}.{name}": copy_to_array(moment)
                for index, parameter_moments in moments.items()
                for name, moment in parameter_moments.items()
            },
        }

    def resume(self, arrays: Mapping[str, AnyArray] | None) -> tuple[int, int]:
        """Restore the state of a checkpoint, if there is one.

        Returns:
            The number of completed epochs, and of completed steps of the next epoch.
        """
        if arrays is None:
            return 0, 0
        import torch

        for kind, tensors in (("parameter", self.parameters), ("memory", self.buffers)):
            for index, tensor in enumerate(tensors):
                tensor.data.copy_(torch.from_numpy(arrays[f"{kind}.{index}"]))
        self._restore_moments(arrays)
        self.losses[:] = arrays["losses"].tolist()
        self.rng.bit_generator.state = json.loads(str(arrays["rng"]))
        device = self.parameters[0].device
        best = [
            torch.from_numpy(arrays[f"kept.{index}"]).to(device)
            for index in range(len(self.parameters))
            if f"kept.{index}" in arrays
        ]
        self.stopping.resume(arrays["curve"].tolist(), best)
        return int(arrays["epoch"]), int(arrays["step"])

    def _restore_moments(self, arrays: Mapping[str, AnyArray]) -> None:
        import torch

        moments: dict[int, dict[str, Any]] = {}
        for key, array in arrays.items():
            if key.startswith("moment."):
                _, index, name = key.split(".", 2)
                moments.setdefault(int(index), {})[name] = torch.from_numpy(array.copy())
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})


def _name_arrays(kind: str, tensors: Sequence[Tensor]) -> dict[str, AnyArray]:
    return {f"{kind}.{index}": copy_to_array(tensor) for index, tensor in enumerate(tensors)}
