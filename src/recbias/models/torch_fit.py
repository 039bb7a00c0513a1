"""The one training loop of the models that learn by gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.checkpoints import Checkpoints
from recbias.core.errors import OutOfRange, TooLittleMemory
from recbias.core.notes import warn
from recbias.core.progress import report
from recbias.core.protocols import FittedRecommender
from recbias.core.split import TrainingData
from recbias.models.early_stopping import EarlyStopping, has_judges, validation_ndcg
from recbias.models.tensors import Tensor, is_out_of_memory
from recbias.models.training_state import TrainingState, memory_of

Fitted_co = TypeVar("Fitted_co", bound=FittedRecommender, covariant=True)


class Learner(Protocol[Fitted_co]):
    """A model under training: what ``train`` turns the handle of.

    One whose losses hang on more than its parameters and the samples has a ``memory`` too (see
    ``training_state.Remembers``); noise within a loss comes from a generator that ``epoch`` makes
    anew of ``rng``. So the training can go on at any epoch as if it had not been cut off.
    """

    def parameters(self) -> Sequence[Tensor]:
        """Return the tensors that are learned, all on one device, the same ones each time."""
        ...

    def epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        """Return what an epoch learns from: arrays of one length, one entry a sample, in order."""
        ...

    def loss(self, *batch: Tensor) -> Tensor:
        """Return the sum of the losses of some samples, those arrays cut and on the device."""
        ...

    def fitted(self) -> Fitted_co:
        """Return what is learned so far, as plain arrays; changes nothing."""
        ...


@runtime_checkable
class Steps(Protocol):
    """A learner that makes the steps of ``sgd`` itself, by gradients in closed form."""

    def step(self, learning_rate: float, *batch: Tensor) -> Tensor:
        """Move the parameters against the gradient of the batch's ``loss``; return that loss."""
        ...


@runtime_checkable
class SingleSteps(Protocol):
    """A learner that makes the steps of ``sgd`` itself and on a CPU one for each sample."""

    def single_steps(self, learning_rate: float, *samples: AnyArray) -> float:
        """Move the parameters by samples of an epoch, in order; return the sum of the losses."""
        ...


class Trained(Protocol):
    """The settings that all models have that are trained here."""

    @property
    def epochs(self) -> int:
        """How often an epoch is gone through, at most."""
        ...

    @property
    def batch_size(self) -> int:
        """Samples in a step, where a step is not one sample."""
        ...

    @property
    def learning_rate(self) -> float:
        """Length of a step."""
        ...

    @property
    def patience(self) -> int:
        """Epochs without a better one before the best is taken; 0 does not look."""
        ...


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How a learner is trained.

    Args:
        name: The model, in progress and messages.
        epochs: How often an epoch is drawn and gone through, at most.
        batch_size: Samples in a step; of a learner of ``SingleSteps`` only on a GPU.
        learning_rate: Length of a step.
        optimizer: ``adam`` with its usual moments, or plain ``sgd``. A loss is a sum, so that a
            step of ``sgd`` is about as many steps of one sample.
        patience: Epochs without a better nDCG@10 on the validation part, where there is one,
            before the best is taken; 0 does not look.
        threads: Cores that a CPU may use. One is fastest for look-ups of vectors, and sums come
            out the same on every machine; large matrix products gain by more.
        mixed: Do matrix products in bfloat16 on CUDA.
    """

    name: str
    epochs: int
    batch_size: int
    learning_rate: float
    optimizer: Literal["adam", "sgd"] = "adam"
    patience: int = 0
    threads: int = 1
    mixed: bool = False

    @classmethod
    def of(cls, model: Trained, name: str, optimizer: Literal["adam", "sgd"] = "adam") -> Schedule:
        """Return the schedule that a model's own settings say."""
        return cls(
            name=name,
            epochs=model.epochs,
            batch_size=model.batch_size,
            learning_rate=model.learning_rate,
            optimizer=optimizer,
            patience=model.patience,
        )


def train(
    learner: Learner[Fitted_co], schedule: Schedule, data: TrainingData, rng: np.random.Generator
) -> Fitted_co:
    """Train a learner and return what it learned.

    The same generator gives the same result on one kind of device, also where the training is cut
    off and goes on from a checkpoint. Nothing is read from or left in the random state of the
    process.

    Args:
        learner: The model under training.
        schedule: How it is trained.
        data: Its validation part is what early stopping looks at.
        rng: Draws the epochs.

    Raises:
        OutOfRange: The loss is no longer a finite number.
        TooLittleMemory: The device has too little for a batch.
    """
    parameters, stopping = learner.parameters(), EarlyStopping(has_judges(data), schedule.patience)
    optimizer = _optimizer(parameters, schedule)
    state = TrainingState(parameters, memory_of(learner), optimizer, stopping, rng)
    checkpoints = Checkpoints.here()
    with _threads(schedule.threads), _enough_memory(schedule):
        done, _ = state.taken_up(checkpoints.last())
        report(f"{schedule.name} epochs", done, schedule.epochs)
        for epoch in range(done + 1, schedule.epochs + 1):
            if stopping.is_over:
                break
            loss = _run_epoch(learner, optimizer, schedule, rng)
            _check_finite(loss, parameters, epoch, schedule)
            state.losses.append(loss)
            report(f"{schedule.name} epochs", epoch, schedule.epochs)
            if stopping.judges:
                stopping.judge(validation_ndcg(learner.fitted(), data), parameters)
            checkpoints.offer(lambda epoch=epoch: state.arrays(epoch))  # type: ignore[misc]
        stopping.restore(parameters)
        _warn_of_no_progress(state.losses, schedule)
        return learner.fitted()


def _optimizer(parameters: Sequence[Tensor], schedule: Schedule) -> Any:
    import torch

    kind = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[schedule.optimizer]
    fused = parameters[0].device.type in {"cpu", "cuda"}
    return kind(list(parameters), lr=schedule.learning_rate, fused=fused)


def _run_epoch(
    learner: Learner[Fitted_co], optimizer: Any, schedule: Schedule, rng: np.random.Generator
) -> float:
    """Go through one epoch; return the mean loss of its samples."""
    import torch

    device, drawn = learner.parameters()[0].device, learner.epoch(rng)
    n = len(drawn[0])
    on_cpu = schedule.optimizer == "sgd" and device.type == "cpu"
    if on_cpu and isinstance(learner, SingleSteps):
        return learner.single_steps(schedule.learning_rate, *drawn) / max(n, 1)
    samples = [_on(device, each) for each in drawn]
    total = torch.zeros((), device=device)
    step = _step(learner, optimizer, schedule, device)
    for start in range(0, n, schedule.batch_size):
        total += step(*(each[start : start + schedule.batch_size] for each in samples))
    return float(total) / max(n, 1)


def _on(device: Any, samples: AnyArray) -> Tensor:
    """Return samples on the device; codes as 64-bit integers, which tables are added to by."""
    import torch

    tensor = torch.from_numpy(samples).to(device)
    return tensor.long() if samples.dtype == np.int32 else tensor


def _step(
    learner: Learner[Fitted_co], optimizer: Any, schedule: Schedule, device: Any
) -> Callable[..., Tensor]:
    """Return what learns from a batch, and returns the sum of its losses."""
    import torch

    if schedule.optimizer == "sgd" and isinstance(learner, Steps):
        return partial(learner.step, schedule.learning_rate)
    mixed = schedule.mixed and device.type == "cuda"

    def step(*batch: Tensor) -> Tensor:
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = learner.loss(*batch)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def _check_finite(
    loss: float, parameters: Sequence[Tensor], epoch: int, schedule: Schedule
) -> None:
    # 0 times what is not finite is not a number; it is many times as fast as torch.isfinite
    if math.isfinite(loss) and not any(float((each.detach() * 0).sum()) for each in parameters):
        return
    found = f"{schedule.name} diverged in epoch {epoch} of {schedule.epochs}: the loss is {loss:g}"
    remedy = f"lower learning_rate, which is {schedule.learning_rate:g}"
    raise OutOfRange(found, where="learning_rate", remedy=remedy)


def _warn_of_no_progress(losses: Sequence[float], schedule: Schedule) -> None:
    """Say so where the loss did not fall: a bounded loss stays finite whatever the steps."""
    if len(losses) > 1 and losses[-1] >= losses[0]:
        said = f"{schedule.name} learned nothing: its loss is {losses[-1]:.4g} after epoch"
        said += f" {len(losses)} and was {losses[0]:.4g} after the first"
        warn(f"{said}; lower learning_rate, which is {schedule.learning_rate:g}")


@contextmanager
def _threads(n: int) -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _enough_memory(schedule: Schedule) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        found = f"{schedule.name}: the device has too little memory for its batches"
        remedy = f"lower batch_size, which is {schedule.batch_size:,}, or embedding_size"
        raise TooLittleMemory(found, where="batch_size", remedy=remedy) from error
