"""The optimizer of the training loop: that of torch, and ``RowAdam`` for tables on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.models.ranking.tensors import Tensor, copy_to_array, place_like
from recbias.models.training.row_adam import RowAdam
from recbias.models.training.schedule import Schedule


@dataclass(frozen=True)
class Optimizer:
    """The optimizers of all parameters, as one."""

    dense: Any  # A ``torch.optim`` optimizer; None if all parameters are tables
    rows: RowAdam | None = None  # The optimizer of tables that are read by rows

    def record(self) -> AbstractContextManager[None]:
        """Record the rows that the losses in the block read."""
        return nullcontext() if self.rows is None else self.rows.record()

    def zero_grad(self) -> None:
        """Forget the gradients of the last step."""
        if self.dense is not None:
            self.dense.zero_grad()

    def step(self) -> None:
        """Move the parameters by their gradients."""
        if self.dense is not None:
            self.dense.step()
        if self.rows is not None:
            self.rows.step()

    def flush(self) -> None:
        """Bring all rows of the tables to the last step, before they are read."""
        if self.rows is not None:
            self.rows.flush()

    def state(self) -> Mapping[str, AnyArray]:
        """Return the moments as arrays, whose names say which parameter they belong to."""
        moments = {} if self.dense is None else self.dense.state_dict()["state"]
        tables = [] if self.rows is None else self.rows.state()
        return {
            f"{kind}.{index}.{name}": value if kind == "table" else copy_to_array(value)
            for kind, entries in (("moment", moments.items()), ("table", enumerate(tables)))
            for index, values in entries
            for name, value in values.items()
        }

    def restore(self, arrays: Mapping[str, AnyArray]) -> None:
        """Continue from the moments of a state."""
        if self.dense is not None:
            groups = self.dense.param_groups
            parameters = [parameter for group in groups for parameter in group["params"]]
            moments = {
                index: {
                    name: _place_moment(array.copy(), parameters[index])
                    for name, array in values.items()
                }
                for index, values in _group_by_index("moment", arrays).items()
            }
            groups = self.dense.state_dict()["param_groups"]
            self.dense.load_state_dict({"state": moments, "param_groups": groups})
        if self.rows is not None:
            tables = _group_by_index("table", arrays)
            self.rows.restore([tables[index] for index in sorted(tables)])


def create_optimizer(
    schedule: Schedule, parameters: Sequence[Tensor], tables: Sequence[Tensor]
) -> Optimizer:
    """Return the optimizer of a schedule; tables have their own if they are on the CPU."""
    import torch

    device = parameters[0].device.type
    has_rows = bool(tables) and device == "cpu" and schedule.optimizer == "adam"
    rows = RowAdam(tables, schedule.learning_rate) if has_rows else None
    identities = {id(table) for table in tables} if has_rows else set()
    others = [tensor for tensor in parameters if id(tensor) not in identities]
    if not others:
        return Optimizer(None, rows)
    options: dict[str, Any] = {"lr": schedule.learning_rate, "fused": device in {"cpu", "cuda"}}
    if schedule.optimizer == "sgd":
        return Optimizer(torch.optim.SGD(others, **options), rows)
    return Optimizer(torch.optim.Adam(others, **options, capturable=device == "cuda"), rows)


def _place_moment(array: AnyArray, parameter: Tensor) -> Tensor:
    """Return a moment beside its parameter; the number of steps stays where torch keeps it."""
    import torch

    return place_like(array, parameter.data) if array.ndim else torch.from_numpy(array)


def _group_by_index(
    kind: str, arrays: Mapping[str, AnyArray]
) -> Mapping[int, Mapping[str, AnyArray]]:
    """Return the arrays ``KIND.INDEX.NAME`` by index and name."""
    groups: dict[int, dict[str, AnyArray]] = {}
    for key, array in arrays.items():
        if key.startswith(f"{kind}."):
            _, index, name = key.split(".", 2)
            groups.setdefault(int(index), {})[name] = np.asarray(array)
    return groups
