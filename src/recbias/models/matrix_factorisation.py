"""Matrix factorisations made for ratings, by squared error: MF and FunkSVD."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.protocols import Output, State
from recbias.core.split import TrainingData
from recbias.models.factor_tables import FactorLearner, FactorTables
from recbias.models.factors import FittedFactors
from recbias.models.rating_targets import drawn_coins, drawn_pairs, mean_value
from recbias.models.tensors import Device, Tensor, device_of, drawn_glorot
from recbias.models.torch_fit import Schedule, train

Variant: TypeAlias = Literal["paper", "elliot"]

FACTORS = frozenset[Output]({"lists", "embeddings"})


@dataclass(frozen=True, kw_only=True)
class MF:
    """Factorise ratings, or choices, by regularised squared error, without biases.

        minimise  Σ_(u,i) (r_ui - p_u · q_i)² + reg (|p_u|² + |q_i|²)

    ``r_ui`` is the rating. Where all ratings are equal it is 1 for a training pair and 0 for each
    of ``negatives`` items a pair that the user does not have, drawn anew each epoch. Steps are
    Adam's. A user without training items has an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: Passes over the training pairs, at most.
        batch_size: Pairs in a step, drawn ones among them.
        learning_rate: Length of a step.
        reg: Weight of the squared vectors of a pair.
        negatives: Items drawn for each training pair where all ratings are equal.
        patience: Epochs without a better nDCG@10 on the validation part, where there is one,
            before the best is taken; 0 does not look.
        device: Where it is trained and its lists are made.

    Raises:
        OutOfRange: It diverges.

    Source:
        Koren, Bell and Volinsky, "Matrix Factorization Techniques for Recommender Systems",
        Computer 42(8), 2009, equation 2.
    """

    version: ClassVar[int] = 1
    provides: ClassVar[frozenset[Output]] = FACTORS
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ("torch",)

    embedding_size: Annotated[int, Gt(0)] = 32
    epochs: Annotated[int, Gt(0)] = 25
    batch_size: Annotated[int, Gt(0)] = 4096
    learning_rate: Annotated[float, Gt(0)] = 0.002
    reg: Annotated[float, Ge(0)] = 0.01
    negatives: Annotated[int, Gt(0)] = 4
    patience: Annotated[int, Ge(0)] = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Learn from the ratings, or from the training pairs and drawn ones."""
        schedule = Schedule.of(self, "MF")
        device = device_of(self.device)
        tables = FactorTables.drawn(data.train, self.embedding_size, device=device, rng=rng)
        draw = drawn_pairs(data.train, self.negatives)
        learner = FactorLearner(tables, draw, partial(_squared_error, tables, self.reg))
        return train(learner, schedule, data, rng)

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.restored(state, self.device)


@dataclass(frozen=True, kw_only=True)
class FunkSVD:
    """Factorise ratings, or choices, by regularised squared error, with biases.

        minimise  Σ_(u,i) (r_ui - s_ui)² + reg (|p_u|² + |q_i|² + b_u² + b_i²)
        s_ui = mean + b_u + b_i + p_u · q_i

    ``r_ui`` is the rating, ``mean`` that of all of them. Where all ratings are equal r_ui is 1 for
    a training pair and 0 for each of ``negatives`` items a pair that the user does not have, drawn
    anew each epoch. All factors learn at once; ``lenskit/FunkSVD`` learns one after another. Steps
    are Adam's. A user without training items has an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: Passes over the training pairs, at most.
        batch_size: Pairs in a step, drawn ones among them.
        learning_rate: Length of a step.
        reg: Weight of the squared vectors and biases of a pair.
        negatives: Items drawn for each training pair where all ratings are equal.
        variant: ``elliot`` never looks at the ratings and has no mean and no ``reg``; it draws
            users alike and tosses a coin whether an item is the user's, and its factors and biases
            start uniform, by Glorot's limits.
        patience: Epochs without a better nDCG@10 on the validation part, where there is one,
            before the best is taken; 0 does not look.
        device: Where it is trained and its lists are made.

    Raises:
        OutOfRange: It diverges.

    Source:
        Funk, "Netflix Update: Try This at Home", 2006; Paterek, "Improving Regularized Singular
        Value Decomposition for Collaborative Filtering", KDD Cup 2007, section 3.3.
    """

    version: ClassVar[int] = 1
    provides: ClassVar[frozenset[Output]] = FACTORS
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ("torch",)

    embedding_size: Annotated[int, Gt(0)] = 32
    epochs: Annotated[int, Gt(0)] = 25
    batch_size: Annotated[int, Gt(0)] = 4096
    learning_rate: Annotated[float, Gt(0)] = 0.002
    reg: Annotated[float, Ge(0)] = 0.01
    negatives: Annotated[int, Gt(0)] = 4
    variant: Variant = "paper"
    patience: Annotated[int, Ge(0)] = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Learn from the ratings, or from the training pairs and drawn ones."""
        schedule = Schedule.of(self, "FunkSVD")
        own = self.variant == "paper"
        tables = self._tables(data, rng)
        draw = drawn_pairs(data.train, self.negatives) if own else drawn_coins(data.train)
        mean = mean_value(data.train, self.negatives) if own else 0.0
        loss = partial(_squared_error, tables, self.reg if own else 0.0, mean=mean)
        return train(FactorLearner(tables, draw, loss), schedule, data, rng)

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.restored(state, self.device)

    def _tables(self, data: TrainingData, rng: np.random.Generator) -> FactorTables:
        device, sides = device_of(self.device), (data.train.n_users, data.train.n_items)
        if self.variant == "elliot":
            widths = (self.embedding_size, 1)
            shapes = [(rows, width) for width in widths for rows in sides]
            return FactorTables(*(drawn_glorot(shape, device, rng) for shape in shapes))
        return FactorTables.drawn(
            data.train, self.embedding_size, device=device, rng=rng
        ).with_biases()


def _squared_error(tables: FactorTables, reg: float, *pairs: Tensor, mean: float = 0.0) -> Tensor:
    """Return the sum over pairs of the squared error and ``reg`` times the pair's squares."""
    users, items, values = pairs
    scores, squares = tables.scored(users, items)
    return (values - mean - scores).square().sum() + reg * squares
