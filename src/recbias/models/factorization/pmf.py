"""Probabilistic matrix factorisation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.dataset.split import TrainingData
from recbias.core.protocols import Output, State
from recbias.models.factorization.factor_tables import FactorLearner, FactorTables
from recbias.models.ranking.factor_model import FittedFactors
from recbias.models.ranking.tensors import Device, OnDevice, Tensor, device_of
from recbias.models.training.loop import train
from recbias.models.training.rating_targets import drawn_coins, drawn_pairs, n_samples
from recbias.models.training.schedule import Schedule

Variant: TypeAlias = Literal["paper", "elliot"]

FACTORS = frozenset[Output]({"lists", "embeddings"})

FIRST_SPREAD = {"paper": 0.1, "elliot": 0.01}
"""Standard deviation of the entries of the first vectors."""


@dataclass(frozen=True, kw_only=True)
class PMF(OnDevice):
    """Factorise ratings, or choices, as noisy values of a sigmoid, with priors on the vectors.

        minimise  Σ_(u,i) (r_ui - σ(p_u · q_i))² + reg (Σ_u |p_u|² + Σ_i |q_i|²)

    ``r_ui`` is the rating, brought from its range to 0 to 1. Where all ratings are equal it is 1
    for a training pair and 0 for each of ``negatives`` items a pair that the user does not have,
    drawn anew each epoch. ``reg`` is the variance of the noise over that of the prior. Steps are
    Adam's. A user without training items has an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: Passes over the training pairs, at most.
        batch_size: Pairs in a step, drawn ones among them.
        learning_rate: Length of a step.
        reg: Weight of the squared vectors, each counted once.
        negatives: Items drawn for each training pair where all ratings are equal.
        variant: ``elliot`` never looks at the ratings and has no ``reg``; it draws users alike and
            tosses a coin whether an item is the user's, and its vectors start at about 0.
        patience: Epochs without a better nDCG@10 on the validation part, where there is one,
            before the best is taken; 0 does not look.
        device: Where it is trained and its lists are made.

    Raises:
        OutOfRange: It diverges.

    Source:
        Salakhutdinov and Mnih, "Probabilistic Matrix Factorization", NIPS 2007, equations 4 and 5.
    """

    provides: ClassVar[frozenset[Output]] = FACTORS
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ("torch",)

    embedding_size: Annotated[int, Gt(0)] = 32
    epochs: Annotated[int, Gt(0)] = 30
    batch_size: Annotated[int, Gt(0)] = 4096
    learning_rate: Annotated[float, Gt(0)] = 0.002
    reg: Annotated[float, Ge(0)] = 1.0
    negatives: Annotated[int, Gt(0)] = 4
    variant: Variant = "paper"
    patience: Annotated[int, Ge(0)] = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Learn from the ratings, or from the training pairs and drawn ones."""
        schedule = Schedule.of(self, "PMF")
        own = self.variant == "paper"
        tables = FactorTables.drawn(
            data.train,
            self.embedding_size,
            device=device_of(self.device),
            rng=rng,
            spread=FIRST_SPREAD[self.variant],
        )
        draw = (
            drawn_pairs(data.train, self.negatives, unit=True) if own else drawn_coins(data.train)
        )
        reg = (self.reg if own else 0.0) / n_samples(data.train, self.negatives)
        loss = partial(_sigmoid_error, tables, reg)
        return train(FactorLearner(tables, draw, loss), schedule, data, rng)

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.restored(state, self.device)


def _sigmoid_error(tables: FactorTables, reg: float, *pairs: Tensor) -> Tensor:
    """Return the sum over pairs of the squared error and ``reg`` times the squares of all."""
    users, items, values = pairs
    scores, _ = tables.scored(users, items)
    squares = sum(each.square().sum() for each in tables.parameters())
    return (values - scores.sigmoid()).square().sum() + reg * len(users) * squares
