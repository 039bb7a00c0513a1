"""The training loop of the models that learn by gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import ClassVar, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import TrainingData
from recbias.core.machine.memory import FreedMemory
from recbias.core.protocols import FittedRecommender, Output
from recbias.core.stage_context import Checkpoints, report_progress
from recbias.models.ranking.tensors import Tensor
from recbias.models.training.batches import iterate_batches
from recbias.models.training.gradient_step import GradientStep
from recbias.models.training.optimizer import Optimizer, create_optimizer
from recbias.models.training.progress import (
    EarlyStopping,
    HasBuffers,
    TrainingState,
    has_validation_users,
    validation_ndcg,
)
from recbias.models.training.schedule import (
    Schedule,
    report_out_of_memory,
    validate_finite,
    validate_learning_rate,
    warn_about_stalled_loss,
)
from recbias.numerics.devices import OnDevice

Fitted_co = TypeVar("Fitted_co", bound=FittedRecommender, covariant=True)


class Learner(Protocol[Fitted_co]):
    """A model in training.

    If its losses depend on more than the parameters and the samples, it also has ``buffers`` (see
    ``training.progress.HasBuffers``). Random noise within a loss comes from a generator that
    ``sample_epoch`` creates from ``rng``. A training that is resumed at any epoch then gives the
    same result as one that was never interrupted.
    """

    def parameters(self) -> Sequence[Tensor]:
        """Return the trainable tensors, all on one device, always the same objects."""

    def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        """Return the samples of an epoch in order: arrays of one length, one entry per sample."""

    def loss(self, *batch: Tensor) -> Tensor:
        """Return the sum of the losses of a batch: slices of these arrays, on the device."""

    def export(self) -> Fitted_co:
        """Return the fitted recommender of the current parameters, as arrays."""


@runtime_checkable
class ReadsRows(Protocol):
    """A learner with large tables of which a batch reads a few rows."""

    def row_tables(self) -> Sequence[Tensor]:
        """Return the parameters that ``loss`` reads by ``row_adam.look_up`` only."""


@runtime_checkable
class BatchSteps(Protocol):
    """A learner that computes the SGD steps of a batch itself, by gradients in closed form."""

    def step(self, learning_rate: float, *batch: Tensor) -> Tensor:
        """Move the parameters against the gradient of the batch's ``loss``; return the loss."""


@runtime_checkable
class SampleSteps(Protocol):
    """A learner that on a CPU computes one SGD step per sample itself."""

    def step_by_samples(self, learning_rate: float, *samples: AnyArray) -> float:
        """Move the parameters by each sample in order; return the sum of the losses."""


def train(
    learner: Learner[Fitted_co], schedule: Schedule, data: TrainingData, rng: np.random.Generator
) -> Fitted_co:
    """Train a learner and return the fitted recommender; the validation part may stop it early.

    The result is reproducible on one type of device, also if the training is interrupted and
    resumed from a checkpoint. The global random state is neither read nor changed.

    Raises:
        OutOfRange: The loss is not finite, or the learning rate is too small to change anything.
        TooLittleMemory: The device has too little memory for a batch.
    """
    validate_learning_rate(schedule)
    parameters = learner.parameters()
    stopping = EarlyStopping(has_validation_users(data), schedule.patience)
    tables = learner.row_tables() if isinstance(learner, ReadsRows) else ()
    optimizer = create_optimizer(schedule, parameters, tables)
    buffers = learner.buffers() if isinstance(learner, HasBuffers) else ()
    state = TrainingState(parameters, buffers, optimizer, stopping, rng)
    checkpoints = Checkpoints.current()
    by_samples = _steps_by_samples(learner, schedule)
    step, freed = _create_step(learner, optimizer, schedule), FreedMemory()
    with _limit_threads(schedule.threads), report_out_of_memory(schedule, by_samples=by_samples):
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
        optimizer: Literal["adam", "sgd"] = "adam",
    ) -> Fitted_co:
        """Train a learner by the settings of the model, which messages call ``name``."""
        return train(learner, Schedule.from_model(self, name, optimizer), data, rng)


def _run_epoch(
    learner: Learner[Fitted_co],
    step: Callable[..., Tensor],
    schedule: Schedule,
    rng: np.random.Generator,
    freed: FreedMemory,
) -> float:
    """Train for one epoch; return the mean loss of its samples."""
    import torch

    device, samples = learner.parameters()[0].device, learner.sample_epoch(rng)
    n_samples = len(samples[0])
    if isinstance(learner, SampleSteps) and _steps_by_samples(learner, schedule):
        return learner.step_by_samples(schedule.learning_rate, *samples) / max(n_samples, 1)
    if isinstance(step, GradientStep):
        step.expect(n_samples)
    total = torch.zeros((), device=device)
    for batch in iterate_batches(samples, schedule.batch_size, device):
        total += step(*batch)
        freed.release_if_due()
    return float(total) / max(n_samples, 1)


def _steps_by_samples(learner: Learner[Fitted_co], schedule: Schedule) -> bool:
    is_cpu_sgd = schedule.optimizer == "sgd" and learner.parameters()[0].device.type == "cpu"
    return is_cpu_sgd and isinstance(learner, SampleSteps)


def _create_step(
    learner: Learner[Fitted_co], optimizer: Optimizer, schedule: Schedule
) -> Callable[..., Tensor]:
    if schedule.optimizer == "sgd" and isinstance(learner, BatchSteps):
        return partial(learner.step, schedule.learning_rate)
    return GradientStep(learner, optimizer, schedule)


@contextmanager
def _limit_threads(n_threads: int) -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
