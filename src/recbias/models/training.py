"""The training loop of networks: batches, optimizers, early stopping, checkpoints and curves.

The tables of ``RowAdam`` are the values, both moments, and for each row the last step with a
gradient and the last step that was made; all are updated in place. The corrections are the
learning rate over ``1 - β1^t`` and ``1 / sqrt(1 - β2^t)`` for t = 1, 2, ... and the number of
steps so far.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from annotated_types import Ge

from recbias.core.context import (
    Checkpoints,
    has_validation_listener,
    report_progress,
    report_validation,
    warn,
)
from recbias.core.dataset import AnyArray, Attributes, Queries, TrainingData
from recbias.core.errors import OutOfRange
from recbias.core.evidence import normalize_gain, rank_discounts
from recbias.core.machine import FreedMemory
from recbias.core.plugins import FittedRecommender, OnlyOn, Output, select_settings
from recbias.kernels.devices import OnDevice
from recbias.kernels.sparse import compile_loop
from recbias.models.captured import CapturedStep
from recbias.models.gpu import (
    Tensor,
    copy_to_array,
    copy_to_device,
    create_parameter,
    initialize_glorot,
    place_like,
    report_full_device,
)

_CHUNK = 2**20
"""Number of samples that are copied to a device together, at least a batch."""


def iterate_batches(
    samples: Sequence[AnyArray], batch_size: int, device: Any, *, chunk: int = _CHUNK
) -> Iterator[Sequence[Tensor]]:
    """Yield the batches of an epoch as tensors on a ``torch.device``.

    Samples are copied in chunks: on CUDA from pinned memory, the next chunk while the batches of
    this one are computed. Codes become 64-bit integers, which ``index_add_`` requires.

    >>> import torch
    >>> samples = [np.arange(5, dtype=np.int32)]
    >>> [batch[0].tolist() for batch in iterate_batches(samples, 2, torch.device("cpu"))]
    [[0, 1], [2, 3], [4]]
    """
    import torch

    n_samples, size = len(samples[0]), max(1, chunk // batch_size) * batch_size

    def copy(start: int) -> list[Tensor]:
        tensors = [copy_to_device(array[start : start + size], device) for array in samples]
        return [tensor.long() if tensor.dtype == torch.int32 else tensor for tensor in tensors]

    following = copy(0)
    for start in range(0, n_samples, size):
        tensors = following
        if start + size < n_samples:
            following = copy(start + size)
        for first in range(0, len(tensors[0]), batch_size):
            yield [tensor[first : first + batch_size] for tensor in tensors]


_Arrays: TypeAlias = tuple[AnyArray, ...]

_DECAY, _SQUARE_DECAY = 0.9, 0.999
"""β1 and β2, which are those of torch."""

_IDLE = 200
"""After how many steps without a gradient a row stays where it is."""

_SETTLED = 20_000
"""After how many steps the corrections are those of infinitely many, in ``float32``."""

_B1, _B2, _EPS = np.float32(_DECAY), np.float32(_SQUARE_DECAY), np.float32(1e-8)
_A1, _A2 = (
    np.float32(1 - _DECAY),
    np.float32(1 - _SQUARE_DECAY),
)  # 1 - B2 is off by 5e-5 in float32


def _make_idle_steps(tables: _Arrays, codes: AnyArray, corrections: tuple[Any, ...]) -> None:
    """Make the steps without a gradient that rows have not made yet."""
    values, means, squares, last, done = tables
    rates, scales, n_steps = corrections
    for code in codes:
        row = np.uintp(code)
        stop = min(n_steps, last[row] + _IDLE)
        if last[row] == 0 or stop <= done[row]:
            continue
        vector, mean, square = values[row], means[row], squares[row]
        for step in range(done[row], stop):
            index = np.uintp(min(step, _SETTLED - 1))
            rate, scale = rates[index], scales[index]
            for f in range(vector.size):
                m, v = _B1 * mean[f], _B2 * square[f]
                mean[f], square[f] = m, v
                vector[f] -= rate * m / (np.sqrt(v) * scale + _EPS)
        done[row] = stop


def _make_steps(tables: _Arrays, batch: _Arrays, corrections: tuple[Any, ...]) -> None:
    """Make the step of the rows of a batch by the sums of their gradients, which are changed.

    The batch has the codes of the rows, their gradients, and -1 for each row of the table.
    """
    values, means, squares, last, done = tables
    codes, gradients, slots = batch
    rates, scales, n_steps = corrections
    index = np.uintp(min(n_steps, _SETTLED) - 1)
    rate, scale = rates[index], scales[index]
    for position in range(codes.size):
        first = slots[np.uintp(codes[position])]
        if first < 0:
            slots[np.uintp(codes[position])] = position
        else:
            gradients[np.uintp(first)] += gradients[position]
    for position in range(codes.size):
        row = np.uintp(codes[position])
        if slots[row] != position:
            continue
        slots[row] = -1
        vector, mean, square, gradient = values[row], means[row], squares[row], gradients[position]
        n_idle = n_steps - 1 - done[row]  # steps without a gradient after the row was left
        rest = np.float32(_SQUARE_DECAY**n_idle)
        memory = _B1 if n_idle == 0 else np.float32(0)
        for f in range(vector.size):
            g = gradient[f]
            m, v = memory * mean[f] + _A1 * g, _B2 * rest * square[f] + _A2 * g * g
            mean[f], square[f] = m, v
            vector[f] -= rate * m / (np.sqrt(v) * scale + _EPS)
        last[row] = done[row] = n_steps


_CURRENT: ContextVar[RowAdam | None] = ContextVar("row_adam", default=None)


def look_up(table: Tensor, codes: Tensor) -> Tensor:
    """Return rows of a table, ``(*codes.shape, d)``, through which gradients flow to the table."""
    optimizer = _CURRENT.get()
    if optimizer is not None and (rows := optimizer.read(table, codes)) is not None:
        return rows
    return table.index_select(0, codes.flatten()).unflatten(0, codes.shape)


class RowAdam:
    """Adam on tables that losses read by ``look_up`` only, in memory of the CPU.

        m = β1 m + (1 - β1) g,   v = β2 v + (1 - β2) g²
        p = p - η / (1 - β1^t) m / (sqrt(v / (1 - β2^t)) + 1e-8)

    A row outside the batch has the gradient 0 and still moves, as in ``torch.optim.Adam``. Its
    steps are made when it is next read: the values are the same, and a batch takes the time of its
    own rows, not of the table. After 200 steps without a gradient a row stays where it is, as the
    steps that follow would change it by less than 3e-8 η.

    Args:
        tables: ``float32 (n, d)`` tensors on the CPU, changed in place.
        learning_rate: η.

    Source:
        Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, algorithm 1.

    >>> import torch
    >>> table = torch.ones((3, 1), requires_grad=True)
    >>> optimizer = RowAdam([table], learning_rate=0.1)
    >>> with optimizer.record():
    ...     look_up(table, torch.tensor([1])).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 4) for value in table.detach().flatten().tolist()]
    [1.0, 0.9, 1.0]
    """

    def __init__(self, tables: Sequence[Tensor], learning_rate: float) -> None:
        steps = np.arange(1, _SETTLED + 1)
        self._rates = (learning_rate / (1 - _DECAY**steps)).astype(np.float32)
        self._scales = (1 / np.sqrt(1 - _SQUARE_DECAY**steps)).astype(np.float32)
        self._moments = {id(table): _Moments.create(table) for table in tables}
        self._n_steps = 0
        self._make_idle_steps = compile_loop(_make_idle_steps)
        self._make_steps = compile_loop(_make_steps)

    @contextmanager
    def record(self) -> Iterator[None]:
        """Record the rows that ``look_up`` reads in the block, and their gradients."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)

    def read(self, table: Tensor, codes: Tensor) -> Tensor | None:
        """Return recorded rows of a table, or None if it is not one of the tables."""
        moments = self._moments.get(id(table))
        if moments is None:
            return None
        flat = codes.flatten()
        self._catch_up(moments, flat.numpy())
        rows = table.detach().index_select(0, flat).requires_grad_()
        moments.reads.append((flat, rows))
        return rows.unflatten(0, codes.shape)

    def step(self) -> None:
        """Move the rows that were read since the last step by their gradients."""
        self._n_steps += 1
        for moments in self._moments.values():
            reads = [(codes, rows.grad) for codes, rows in moments.reads if rows.grad is not None]
            moments.reads.clear()
            if not reads:
                continue
            codes = np.concatenate([codes.numpy() for codes, _ in reads])
            gradients = np.concatenate([gradient.numpy() for _, gradient in reads])
            batch = codes, gradients, moments.slots
            self._make_steps(moments.arrays(), batch, self._corrections())

    def flush(self) -> None:
        """Make the steps of all rows, so that the tables can be read."""
        for moments in self._moments.values():
            self._catch_up(moments, np.arange(len(moments.values)))

    def state(self) -> Sequence[Mapping[str, AnyArray]]:
        """Return the moments and numbers of steps of each table."""
        n_steps = np.array(self._n_steps)
        return [{"n_steps": n_steps, **moments.state()} for moments in self._moments.values()]

    def restore(self, states: Sequence[Mapping[str, AnyArray]]) -> None:
        """Continue from a state; the tables have the values of that time."""
        for moments, state in zip(self._moments.values(), states, strict=True):
            self._n_steps = int(state["n_steps"])
            for name, array in moments.state().items():
                array[...] = state[name]

    def _catch_up(self, moments: _Moments, codes: AnyArray) -> None:
        self._make_idle_steps(moments.arrays(), codes, self._corrections())

    def _corrections(self) -> tuple[AnyArray, AnyArray, int]:
        return self._rates, self._scales, self._n_steps


@dataclass(frozen=True, eq=False)
class _Moments:
    """A table with its moments, and for each row the last step with a gradient and of all."""

    values: AnyArray  # ``float32 (n, d)``, the memory of the tensor
    mean: AnyArray  # ``m``, ``float32 (n, d)``
    square: AnyArray  # ``v``, ``float32 (n, d)``
    last: AnyArray  # The last step with a gradient, ``int64[n]``; 0 if there was none
    done: AnyArray  # The last step that was made, ``int64[n]``
    slots: AnyArray  # -1, ``int64[n]``: where a row of a batch is in the sums of its gradients
    reads: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    @classmethod
    def create(cls, table: Tensor) -> _Moments:
        values = table.detach().numpy()
        last, done, slots = (np.full(len(values), start, dtype=np.int64) for start in (0, 0, -1))
        moments = np.zeros_like(values), np.zeros_like(values)
        return cls(values, *moments, last, done, slots)

    def arrays(self) -> tuple[AnyArray, ...]:
        return self.values, self.mean, self.square, self.last, self.done

    def state(self) -> Mapping[str, AnyArray]:
        names = ("mean", "square", "last", "done")
        return {name: getattr(self, name) for name in names}


Patience: TypeAlias = Annotated[int, Ge(0), OnlyOn("validation")]
"""The epochs without a better validation before a training stops; 0 for no early stopping."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The settings of a training.

    Args:
        name: The model, in progress and error messages.
        epochs: Maximum number of epochs.
        batch_size: Samples per step; for a learner with ``has_steps`` it is not used.
        learning_rate: The learning rate.
        adversarial_epochs: How many of the last epochs have a loss with one more term.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
    """

    name: str
    epochs: int
    batch_size: int = 1
    learning_rate: float
    adversarial_epochs: int = 0
    patience: int = 0


def validate_finite(
    loss: float, parameters: Sequence[Tensor], epoch: int, schedule: Schedule
) -> None:
    """Raise OutOfRange if the loss or a parameter is not finite."""
    # 0 times a value that is not finite is NaN; this is much faster than torch.isfinite
    if math.isfinite(loss) and not any(
        float((tensor.detach() * 0).sum()) for tensor in parameters
    ):
        return
    setting = "learning_rate", schedule.learning_rate
    raise create_divergence_error(schedule, epoch, loss, setting)


def create_divergence_error(
    plan: Any,
    epoch: int,
    loss: float,
    setting: tuple[str, float],
    *,
    where: str = "",
    parts: Mapping[str, float] | None = None,
) -> OutOfRange:
    """Return the error for a training that diverged, with the setting of a plan to lower.

    ``setting`` is its name and value; ``where`` is the step within the epoch, ``parts`` are losses
    that the loss combines.
    """
    name, value = setting
    problem = f"{plan.name} diverged in epoch {epoch} of {plan.epochs}"
    problem += f", {where}: the loss is {loss:g}" if where else f": the loss is {loss:g}"
    if parts:
        problem += f" ({', '.join(f'{part} {size:g}' for part, size in parts.items())})"
    return OutOfRange(problem, where=name, remedy=f"lower {name}, which is {value:g}")


def warn_about_stalled_loss(losses: Sequence[float], schedule: Schedule) -> None:
    """Warn if the loss did not decrease; a bounded loss stays finite at any learning rate.

    Losses with the term of adversarial epochs are compared with each other only.
    """
    n_plain = max(schedule.epochs - schedule.adversarial_epochs, 0)
    first = n_plain if n_plain < len(losses) else 0
    if len(losses) > first + 1 and losses[-1] >= losses[first]:
        message = f"{schedule.name} learned nothing: its loss is {losses[-1]:.4g} after epoch"
        message += f" {len(losses)} and was {losses[first]:.4g} after epoch {first + 1}"
        warn(f"{message}; lower learning_rate, which is {schedule.learning_rate:g}")


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
            import torch

            moments = {
                index: {name: torch.tensor(array) for name, array in values.items()}
                for index, values in _group_by_index("moment", arrays).items()
            }
            groups = self.dense.state_dict()["param_groups"]
            self.dense.load_state_dict({"state": moments, "param_groups": groups})
        if self.rows is not None:
            tables = _group_by_index("table", arrays)
            self.rows.restore([tables[index] for index in sorted(tables)])


def _create_optimizer(
    schedule: Schedule, parameters: Sequence[Tensor], tables: Sequence[Tensor]
) -> Optimizer:
    """Return the optimizer of a schedule; tables have their own if they are on the CPU."""
    import torch

    device = parameters[0].device.type
    has_rows = bool(tables) and device == "cpu"
    rows = RowAdam(tables, schedule.learning_rate) if has_rows else None
    identities = {id(table) for table in tables} if has_rows else set()
    others = [tensor for tensor in parameters if id(tensor) not in identities]
    if not others:
        return Optimizer(None, rows)
    options: dict[str, Any] = {"lr": schedule.learning_rate, "fused": device in {"cpu", "cuda"}}
    return Optimizer(torch.optim.Adam(others, **options, capturable=device == "cuda"), rows)


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


_LIST_LENGTH = 10  # The length of the lists that are validated


@dataclass
class EarlyStopping:
    """The validation scores of the epochs and the parameters of the best epoch."""

    is_possible: bool  # Whether there are validation data; without them no epoch is validated
    # Number of epochs without improvement before training stops; 0 never stops and uses the last
    # epoch
    patience: int
    scores: list[float] = field(default_factory=list)  # The validation score of each epoch
    # Copies of the parameters of the best epoch
    best: Sequence[Any] = field(default_factory=tuple)

    @property
    def is_active(self) -> bool:
        """Whether epochs are validated: it is possible and the scores are used."""
        return self.is_possible and (self.patience > 0 or has_validation_listener())

    @property
    def should_stop(self) -> bool:
        """Whether the patience is exhausted."""
        return 0 < self.patience <= len(self.scores) - 1 - self._best_epoch

    def record(self, score: float, parameters: Sequence[Any]) -> None:
        """Record an epoch's validation score; higher is better. Copy the tensors of the best."""
        self.scores.append(score)
        if self.patience > 0 and self._best_epoch == len(self.scores) - 1:
            self.best = [tensor.detach().clone() for tensor in parameters]
        report_validation(len(self.scores), score)

    def resume(self, scores: Sequence[float], best: Sequence[Any]) -> None:
        """Continue from the scores and the best parameters of a checkpoint; report the scores."""
        self.scores, self.best = list(scores), best
        for epoch, score in enumerate(scores, start=1):
            report_validation(epoch, score)

    def restore(self, parameters: Sequence[Any]) -> None:
        """Copy the values of the best epoch to the tensors, if epochs were validated."""
        for tensor, best in zip(parameters, self.best, strict=bool(self.best)):
            tensor.data.copy_(best)

    @property
    def _best_epoch(self) -> int:
        """The index of the first of the best epochs, -1 before the first epoch."""
        return max(range(len(self.scores)), key=self.scores.__getitem__, default=-1)


def has_validation_users(data: TrainingData) -> bool:
    """Return whether a user has rows in both the training and the validation part."""
    return bool(_select_validation_users(data).size)


def validation_ndcg(fitted: FittedRecommender, data: TrainingData, k: int = _LIST_LENGTH) -> float:
    """Return the mean nDCG@k on the validation part over the users with rows in both parts.

    The relevant items of a user are the validation items. NaN if no user has rows in both parts.
    """
    users = _select_validation_users(data)
    if data.validation is None or not users.size:
        return float("nan")
    relevant = data.validation.binary
    n_relevant = np.diff(relevant.indptr)[users]
    ids = data.train.user_ids.take(users)
    labels = Attributes(ids, pd.DataFrame(index=range(users.size)), "query")
    lists = fitted.recommend(Queries(ids, labels, users.astype(np.int32)), k, data)
    items = np.maximum(lists.items, 0)
    hits = np.asarray(relevant[users][np.arange(users.size)[:, None], items].todense())
    gains = (hits * lists.filled) @ rank_discounts(k)
    return float(np.mean(normalize_gain(gains, n_relevant, k)))


def _select_validation_users(data: TrainingData) -> AnyArray:
    if data.validation is None:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero((data.validation.user_counts() > 0) & (data.train.user_counts() > 0))


@dataclass(frozen=True, eq=False)
class TrainingState:
    """Everything that the next epoch depends on."""

    parameters: Sequence[Tensor]  # The trainable tensors
    buffers: Sequence[Tensor]  # The other tensors of the learner
    optimizer: Optimizer  # The optimizer with its moments
    stopping: EarlyStopping  # The validation scores and the best epoch
    rng: np.random.Generator  # The generator that samples the epochs
    losses: list[float] = field(
        default_factory=list
    )  # The mean loss of each epoch, or the losses of each step

    def arrays(
        self, epoch: int, step: int = 0, rng_state: Mapping[str, Any] | None = None
    ) -> Mapping[str, AnyArray]:
        """Return the state after an epoch, or after ``step`` steps of the epoch that follows it.

        ``rng_state`` is the state of the generator before that epoch was sampled.
        """
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
            **self.optimizer.state(),
        }

    def resume(self, arrays: Mapping[str, AnyArray] | None) -> tuple[int, int]:
        """Restore the state of a checkpoint, if there is one.

        Returns:
            The number of completed epochs, and of completed steps of the next epoch.
        """
        if arrays is None:
            return 0, 0
        for kind, tensors in (("parameter", self.parameters), ("memory", self.buffers)):
            for index, tensor in enumerate(tensors):
                tensor.data.copy_(place_like(arrays[f"{kind}.{index}"], tensor.data))
        self.optimizer.restore(arrays)
        self.losses[:] = arrays["losses"].tolist()
        self.rng.bit_generator.state = json.loads(str(arrays["rng"]))
        best = [
            place_like(arrays[f"kept.{index}"], tensor.data)
            for index, tensor in enumerate(self.parameters)
            if f"kept.{index}" in arrays
        ]
        self.stopping.resume(arrays["curve"].tolist(), best)
        return int(arrays["epoch"]), int(arrays["step"])


def _name_arrays(kind: str, tensors: Sequence[Tensor]) -> dict[str, AnyArray]:
    return {f"{kind}.{index}": copy_to_array(tensor) for index, tensor in enumerate(tensors)}


MIN_CAPTURED_STEPS = 20
"""Number of steps of an epoch from which on a step is captured."""


@dataclass
class _GradientStep:
    """A step of an optimizer.

    Args:
        learner: The model in training.
        optimizer: Moves its parameters.
        schedule: The settings of the training.
    """

    learner: Learner[Any]
    optimizer: Optimizer
    schedule: Schedule

    def __post_init__(self) -> None:
        self.device = self.learner.parameters()[0].device
        self.captured: CapturedStep | None = None

    def expect(self, n_samples: int) -> None:
        """Capture the step on CUDA if epochs of this size have many of one shape."""
        size = self.schedule.batch_size
        is_worth_it = self.device.type == "cuda" and n_samples >= MIN_CAPTURED_STEPS * size
        generators = self.learner.generators
        if generators is not None and is_worth_it and self.captured is None:
            self.captured = CapturedStep(
                self.schedule.name, self._take_step, self.optimizer.zero_grad, size, generators
            )

    def __call__(self, *batch: Tensor) -> Tensor:
        """Return the loss of a batch, and move the parameters."""
        if self.captured is not None:
            total = self.captured(*batch)
            if total is not None:
                return total
        self.optimizer.zero_grad()
        return self._take_step(*batch)

    def _take_step(self, *batch: Tensor) -> Tensor:
        """Add the gradients of a batch, and move the parameters; return the loss."""
        with self.optimizer.record():
            loss = self.learner.loss(*batch)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


@dataclass(frozen=True, eq=False)
class Dense:
    """A dense layer ``y = x W + b`` of tensors or arrays.

    Args:
        weight: ``W``, ``float32 (n_in, n_out)``.
        bias: ``b``, ``float32 (n_out,)``.
    """

    weight: Any
    bias: Any

    @classmethod
    def initialize(cls, n_in: int, n_out: int, device: Any, rng: np.random.Generator) -> Dense:
        """Return a layer with Glorot-uniform weights and zero biases."""
        weight = initialize_glorot((n_in, n_out), device, rng)
        return cls(weight, create_parameter(np.zeros(n_out), device))

    def __call__(self, x: Any) -> Any:
        """Return the layer's output for the rows of ``x``, ``(..., n_out)``."""
        return x @ self.weight + self.bias

    def parameters(self) -> Sequence[Tensor]:
        """Return both tensors."""
        return [self.weight, self.bias]


def initialize_layers(
    sizes: Sequence[int], device: Any, rng: np.random.Generator
) -> Sequence[Dense]:
    """Return one layer for each pair of consecutive ``sizes``."""
    return [Dense.initialize(n_in, n_out, device, rng) for n_in, n_out in pairwise(sizes)]


def collect_parameters(layers: Sequence[Dense]) -> Sequence[Tensor]:
    """Return the tensors of the layers, in order."""
    return [tensor for layer in layers for tensor in layer.parameters()]


def store_layers(name: str, layers: Sequence[Dense]) -> Mapping[str, AnyArray]:
    """Return the tensors of the layers as arrays named ``NAME.0.weight``, ``NAME.0.bias``, ..."""
    return {
        f"{name}.{index}.{field}": copy_to_array(getattr(layer, field))
        for index, layer in enumerate(layers)
        for field in ("weight", "bias")
    }


def restore_layers(name: str, state: Mapping[str, Any]) -> Sequence[Dense]:
    """Return the layers of a state, as arrays or tensors."""
    n_layers = sum(key.startswith(f"{name}.") and key.endswith(".weight") for key in state)
    return [
        Dense(state[f"{name}.{index}.weight"], state[f"{name}.{index}.bias"])
        for index in range(n_layers)
    ]


def apply_dropout(x: Tensor, rate: float, generator: Any) -> Tensor:
    """Set a random share ``rate`` of the entries to 0 and scale the others by 1 / (1 - rate)."""
    if rate == 0:
        return x
    import torch

    mask = torch.rand(x.shape, generator=generator, device=x.device) >= rate
    return x * mask / (1 - rate)


Fitted_co = TypeVar("Fitted_co", bound=FittedRecommender, covariant=True)


class Learner(Generic[Fitted_co]):
    """A model in training.

    Random noise within a loss comes from a generator that ``sample_epoch`` creates from ``rng``. A
    training that is resumed at any epoch then gives the same result as one that was never
    interrupted.
    """

    has_steps: ClassVar[bool] = False
    """Whether ``make_steps`` takes the place of ``loss``; the parameters are on the CPU."""

    def parameters(self) -> Sequence[Tensor]:
        """Return the trainable tensors, all on one device, always the same objects."""
        raise NotImplementedError

    def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        """Return the samples of an epoch in order: arrays of one length, one entry per sample."""
        raise NotImplementedError

    def loss(self, *batch: Tensor) -> Tensor:
        """Return the sum of the losses of a batch: slices of these arrays, on the device."""
        raise NotImplementedError

    def export(self) -> Fitted_co:
        """Return the fitted recommender of the current parameters, as arrays."""
        raise NotImplementedError

    def buffers(self) -> Sequence[Tensor]:
        """Return what losses depend on besides, such as a step count, always the same objects."""
        return ()

    def row_tables(self) -> Sequence[Tensor]:
        """Return the parameters of which ``loss`` reads a few rows, by ``look_up`` only."""
        return ()

    @property
    def generators(self) -> Sequence[Any] | None:
        """The generators of the loss, if it is the same kernels for each batch of a size."""
        return None

    def make_steps(self, learning_rate: float, *samples: AnyArray) -> float:
        """Move the parameters by each sample in order; return the sum of the losses."""
        raise NotImplementedError


@dataclass(eq=False)
class NetworkLearner(Learner[Fitted_co]):
    """Tensors that are trained by a sampler and a loss.

    Args:
        tensors: The trainable tensors.
        sampler: Samples an epoch.
        batch_loss: Takes a batch and, with ``has_noise``, the generator; returns its loss.
        make_fitted: Returns the fitted recommender of the tensors.
        tables: The tensors that ``batch_loss`` reads by ``look_up`` only.
        has_noise: Whether ``batch_loss`` draws random numbers; each epoch seeds the generator.
        is_uniform: Whether the loss is the same kernels for each batch of a size.
    """

    tensors: Sequence[Tensor]
    sampler: Callable[[np.random.Generator], Sequence[AnyArray]]
    batch_loss: Callable[..., Tensor]
    make_fitted: Callable[[], Fitted_co]
    tables: Sequence[Tensor] = ()
    has_noise: bool = False
    is_uniform: bool = False
    noise: tuple[Any, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        """Create the generator."""
        import torch

        if self.has_noise:
            self.noise = (torch.Generator(self.tensors[0].device),)

    @property
    def generators(self) -> Sequence[Any] | None:
        """The generator, if steps can be captured."""
        return self.noise if self.is_uniform else None

    def parameters(self) -> Sequence[Tensor]:
        """Return the trainable tensors."""
        return self.tensors

    def row_tables(self) -> Sequence[Tensor]:
        """Return the tables."""
        return self.tables

    def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        """Return the samples of an epoch."""
        for generator in self.noise:
            generator.manual_seed(int(rng.integers(2**63 - 1)))
        return self.sampler(rng)

    def loss(self, *batch: Tensor) -> Tensor:
        """Return the sum of the losses of a batch."""
        return self.batch_loss(*batch, *self.noise)

    def export(self) -> Fitted_co:
        """Return the fitted recommender."""
        return self.make_fitted()


def train(
    learner: Learner[Fitted_co], schedule: Schedule, data: TrainingData, rng: np.random.Generator
) -> Fitted_co:
    """Train a learner and return the fitted recommender; the validation part may stop it early.

    The result is reproducible on one type of device, also if the training is interrupted and
    resumed from a checkpoint. The global random state is neither read nor changed.

    Raises:
        OutOfRange: The loss is not finite.
        TooLittleMemory: The device has too little memory for a batch.
    """
    parameters = learner.parameters()
    stopping = EarlyStopping(has_validation_users(data), schedule.patience)
    optimizer = Optimizer(None)
    if not learner.has_steps:
        optimizer = _create_optimizer(schedule, parameters, learner.row_tables())
    state = TrainingState(parameters, learner.buffers(), optimizer, stopping, rng)
    checkpoints = Checkpoints.current()
    step, freed = _GradientStep(learner, optimizer, schedule), FreedMemory()
    with (
        _use_one_thread(),
        report_full_device(schedule.name, "batch_size", "lower batch_size or embedding_size"),
    ):
        completed, _ = state.resume(checkpoints.load())
        report_progress(f"{schedule.name} epochs", completed, schedule.epochs)
        for epoch in range(completed + 1, schedule.epochs + 1):
            if stopping.should_stop:
                break
            loss = _run_epoch(learner, step, schedule, rng, freed)
            optimizer.flush()
            validate_finite(loss, parameters, epoch, schedule)
            state.losses.append(loss)
            report_progress(f"{schedule.name} epochs", epoch, schedule.epochs)
            if stopping.is_active:
                stopping.record(validation_ndcg(learner.export(), data), parameters)
            checkpoints.save_if_due(lambda epoch=epoch: state.arrays(epoch))  # type: ignore[misc]
        stopping.restore(parameters)
        warn_about_stalled_loss(state.losses, schedule)
        return learner.export()


class TrainedModel(OnDevice):
    """Base class of the models that are trained by gradient descent and have embeddings."""

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "embeddings"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ("torch",)

    def train(
        self,
        name: str,
        learner: Learner[Fitted_co],
        data: TrainingData,
        rng: np.random.Generator,
    ) -> Fitted_co:
        """Train a learner by the settings of the model, which messages call ``name``."""
        return train(learner, select_settings(self, Schedule, name=name), data, rng)


def _run_epoch(
    learner: Learner[Fitted_co],
    step: _GradientStep,
    schedule: Schedule,
    rng: np.random.Generator,
    freed: FreedMemory,
) -> float:
    """Train for one epoch; return the mean loss of its samples."""
    import torch

    device, samples = learner.parameters()[0].device, learner.sample_epoch(rng)
    n_samples = len(samples[0])
    if learner.has_steps:
        return learner.make_steps(schedule.learning_rate, *samples) / max(n_samples, 1)
    step.expect(n_samples)
    total = torch.zeros((), device=device)
    for batch in iterate_batches(samples, schedule.batch_size, device):
        total += step(*batch)
        freed.release_if_due()
    return float(total) / max(n_samples, 1)


@contextmanager
def _use_one_thread() -> Iterator[None]:
    """Use one thread: fastest for embedding look-ups, with the same sums on every machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
