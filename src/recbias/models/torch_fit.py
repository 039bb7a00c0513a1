"""The one training loop of the models that learn by gradient."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.errors import MissingExtra, OutOfRange
from recbias.core.progress import report
from recbias.core.protocols import FittedRecommender
from recbias.core.split import TrainingData
from recbias.models.early_stopping import EarlyStopping

Tensor: TypeAlias = Any
"""A ``torch.Tensor``; torch is imported only where one is made."""

Device: TypeAlias = Literal["auto", "cpu", "cuda", "mps"]
"""Where tensors live: ``auto`` is the first of CUDA, MPS and CPU that is there."""

Fitted_co = TypeVar("Fitted_co", bound=FittedRecommender, covariant=True)


class Learner(Protocol[Fitted_co]):
    """A model under training: what ``train`` turns the handle of."""

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


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How a learner is trained.

    Args:
        name: The model, in progress and messages.
        epochs: How often an epoch is drawn and gone through, at most.
        batch_size: Samples in a step.
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


def train(
    learner: Learner[Fitted_co], schedule: Schedule, data: TrainingData, rng: np.random.Generator
) -> Fitted_co:
    """Train a learner and return what it learned.

    The same generator gives the same result on one kind of device. Nothing is read from or left
    in the random state of the process.

    Args:
        learner: The model under training.
        schedule: How it is trained.
        data: Its validation part is what early stopping looks at.
        rng: Draws the epochs.

    Raises:
        OutOfRange: The loss is no longer a finite number, or the device has too little memory.
    """
    parameters = learner.parameters()
    stopping = EarlyStopping(data, schedule.patience)
    optimizer = _optimizer(parameters, schedule)
    with _threads(schedule.threads), _enough_memory(schedule):
        for epoch in range(1, schedule.epochs + 1):
            loss = _run_epoch(learner, optimizer, schedule, rng)
            _check_finite(loss, parameters, epoch, schedule)
            report(f"{schedule.name} epochs", epoch, schedule.epochs)
            if stopping.judges and stopping.is_over(learner.fitted(), parameters):
                break
        stopping.restore(parameters)
        return learner.fitted()


def device_of(name: Device) -> Any:
    """Return the ``torch.device`` of a name.

    Raises:
        MissingExtra: This machine or this build of torch does not have it.
    """
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next((each for each in there if there[each]), "cpu"))
    if not there.get(name, True):
        found = f"device {name}: torch {torch.__version__} finds none on this machine"
        raise MissingExtra(found, where="device", remedy="set device: auto, or cpu")
    return torch.device(name)


def drawn_normal(
    shape: tuple[int, ...], std: float, device: Any, rng: np.random.Generator
) -> Tensor:
    """Return a parameter with entries of Normal(0, std²), the same on every device."""
    return parameter(rng.standard_normal(shape, dtype=np.float32) * np.float32(std), device)


def drawn_glorot(shape: tuple[int, int], device: Any, rng: np.random.Generator) -> Tensor:
    """Return a parameter with entries uniform within ± sqrt(6 / (rows + columns))."""
    limit = math.sqrt(6 / sum(shape))
    return parameter((2 * rng.random(shape, dtype=np.float32) - 1) * np.float32(limit), device)


def parameter(values: AnyArray, device: Any) -> Tensor:
    """Return a tensor that is learned, of these first values, ``float32``."""
    import torch

    return torch.tensor(values, dtype=torch.float32, device=device, requires_grad=True)


def torch_generator(rng: np.random.Generator, device: Any) -> Any:
    """Return a ``torch.Generator`` of a device, for noise that is drawn within a loss."""
    import torch

    return torch.Generator(device=device).manual_seed(int(rng.integers(2**63 - 1)))


def array_of(tensor: Tensor) -> AnyArray:
    """Return a copy of a tensor's values as an array."""
    array: AnyArray = tensor.detach().cpu().numpy().copy()
    return array


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

    device = learner.parameters()[0].device
    samples = [torch.from_numpy(each).to(device) for each in learner.epoch(rng)]
    n = len(samples[0])
    total = torch.zeros((), device=device)
    mixed = schedule.mixed and device.type == "cuda"
    for start in range(0, n, schedule.batch_size):
        batch = [each[start : start + schedule.batch_size] for each in samples]
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=mixed):
            loss = learner.loss(*batch)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return float(total) / max(n, 1)


def _check_finite(
    loss: float, parameters: Sequence[Tensor], epoch: int, schedule: Schedule
) -> None:
    if math.isfinite(loss) and all(bool(each.isfinite().all()) for each in parameters):
        return
    found = f"{schedule.name} diverged in epoch {epoch} of {schedule.epochs}: the loss is {loss:g}"
    remedy = f"lower learning_rate, which is {schedule.learning_rate:g}"
    raise OutOfRange(found, where="learning_rate", remedy=remedy)


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
    import torch

    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        found = f"{schedule.name}: the device has too little memory for its batches"
        remedy = f"lower batch_size, which is {schedule.batch_size:,}, or embedding_size"
        raise OutOfRange(found, where="batch_size", remedy=remedy) from error
