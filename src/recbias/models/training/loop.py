"""The one training loop of the models that learn by gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import TrainingData
from recbias.core.protocols import FittedRecommender
from recbias.core.stage_context import Checkpoints, report_progress
from recbias.models.ranking.tensors import Tensor
from recbias.models.training.divergence import (
    check_finite,
    check_rate,
    enough_memory,
    warn_of_no_progress,
)
from recbias.models.training.early_stopping import EarlyStopping, has_judges, validation_ndcg
from recbias.models.training.schedule import Schedule
from recbias.models.training.state import TrainingState, memory_of

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
        OutOfRange: The loss is no longer a finite number, or no step can move anything.
        TooLittleMemory: The device has too little for a batch.
    """
    check_rate(schedule)
    parameters, stopping = learner.parameters(), EarlyStopping(has_judges(data), schedule.patience)
    optimizer = _optimizer(parameters, schedule)
    state = TrainingState(parameters, memory_of(learner), optimizer, stopping, rng)
    checkpoints = Checkpoints.current()
    by_samples = _steps_by_samples(learner, schedule)
    with _threads(schedule.threads), enough_memory(schedule, by_samples=by_samples):
        done, _ = state.taken_up(checkpoints.load())
        report_progress(f"{schedule.name} epochs", done, schedule.epochs)
        for epoch in range(done + 1, schedule.epochs + 1):
            if stopping.is_over:
                break
            loss = _run_epoch(learner, optimizer, schedule, rng)
            check_finite(loss, parameters, epoch, schedule)
            state.losses.append(loss)
            report_progress(f"{schedule.name} epochs", epoch, schedule.epochs)
            if stopping.judges:
                stopping.judge(validation_ndcg(learner.fitted(), data), parameters)
            checkpoints.save_if_due(lambda epoch=epoch: state.arrays(epoch))  # type: ignore[misc]
        stopping.restore(parameters)
        warn_of_no_progress(state.losses, schedule)
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
    if isinstance(learner, SingleSteps) and _steps_by_samples(learner, schedule):
        return learner.single_steps(schedule.learning_rate, *drawn) / max(n, 1)
    samples = [_on(device, each) for each in drawn]
    total = torch.zeros((), device=device)
    step = _step(learner, optimizer, schedule, device)
    for start in range(0, n, schedule.batch_size):
        total += step(*(each[start : start + schedule.batch_size] for each in samples))
    return float(total) / max(n, 1)


def _steps_by_samples(learner: Learner[Fitted_co], schedule: Schedule) -> bool:
    on_cpu = schedule.optimizer == "sgd" and learner.parameters()[0].device.type == "cpu"
    return on_cpu and isinstance(learner, SingleSteps)


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


@contextmanager
def _threads(n: int) -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)
