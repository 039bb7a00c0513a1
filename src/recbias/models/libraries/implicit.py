"""The recommenders of the library ``implicit``, under their own names."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.dataset.split import TrainingData
from recbias.core.protocols import Output, State
from recbias.core.stage_context import report_progress
from recbias.models.ranking.factor_model import FittedFactors
from recbias.models.ranking.item_weight_model import FittedItemWeights

LIBRARIES = ("implicit",)
LISTS = frozenset[Output]({"lists"})
FACTORS = frozenset[Output]({"lists", "embeddings"})


@dataclass(frozen=True, kw_only=True)
class ImplicitALS:
    """Factorise the user-item matrix by alternating least squares (implicit's iALS).

        minimise  Σ_ui c_ui (x_ui - p_u · q_i)² + reg (Σ_u |p_u|² + Σ_i |q_i|²)

    ``x_ui`` is 1 for a training pair and 0 otherwise; ``c_ui`` is alpha for a training pair and 1
    otherwise. The library solves each half by three steps of conjugate gradients. Deterministic
    for a seed, whatever the number of threads.

    Args:
        embedding_size: Length of the vectors.
        reg: Weight of the squared lengths of the vectors.
        alpha: Confidence of a training pair.
        epochs: Passes over the users and the items.

    Source:
        Hu, Koren and Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM
        2008, equation 3; Takács, Pilászy and Tikk, "Applications of the Conjugate Gradient Method
        for Implicit Feedback Collaborative Filtering", RecSys 2011.
    """

    provides: ClassVar[frozenset[Output]] = FACTORS
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = LIBRARIES

    embedding_size: Annotated[int, Gt(0)] = 64
    reg: Annotated[float, Ge(0)] = 10.0
    alpha: Annotated[float, Gt(0)] = 1.0
    epochs: Annotated[int, Gt(0)] = 15

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Factorise the training rows."""
        from implicit.cpu.als import AlternatingLeastSquares

        model = _fitted(
            lambda: AlternatingLeastSquares(
                factors=self.embedding_size,
                regularization=self.reg,
                alpha=self.alpha,
                iterations=self.epochs,
                random_state=_seed(rng),
            ),
            data,
            _reporter("ALS", self.epochs),
        )
        return FittedFactors(model.user_factors, model.item_factors)

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.from_state(state)


@dataclass(frozen=True, kw_only=True)
class ImplicitBPR:
    """Factorise so that each user's items score above items drawn at random (implicit's BPR).

        maximise  Σ_(u,i,j) ln σ(s_ui - s_uj) - reg (|p_u|² + |q_i|² + |q_j|² + b_i² + b_j²)
        s_ui = p_u · q_i + b_i

    Stochastic gradient steps over training pairs (u, i), each with an item j drawn from the
    training rows that u does not have. One thread, since several would write over each other and
    no run would be like another.

    Args:
        embedding_size: Length of the vectors.
        learning_rate: Length of a step.
        reg: Weight of the squared vectors and biases.
        epochs: As many steps as training rows, this many times.

    Source:
        Rendle, Freudenthaler, Gantner and Schmidt-Thieme, "BPR: Bayesian Personalized Ranking from
        Implicit Feedback", UAI 2009, section 4.
    """

    provides: ClassVar[frozenset[Output]] = FACTORS
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = LIBRARIES

    embedding_size: Annotated[int, Gt(0)] = 64
    learning_rate: Annotated[float, Gt(0)] = 0.01
    reg: Annotated[float, Ge(0)] = 0.01
    epochs: Annotated[int, Gt(0)] = 100

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Learn from the training rows."""
        from implicit.cpu.bpr import BayesianPersonalizedRanking

        model = _fitted(
            lambda: BayesianPersonalizedRanking(
                factors=self.embedding_size,
                learning_rate=self.learning_rate,
                regularization=self.reg,
                iterations=self.epochs,
                num_threads=1,
                random_state=_seed(rng),
            ),
            data,
            _reporter("BPR", self.epochs),
        )
        return _without_bias_columns(model, n_columns=1)

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.from_state(state)


@dataclass(frozen=True, kw_only=True)
class ImplicitLMF:
    """Factorise the odds that a user takes an item (implicit's logistic factorisation).

        P(u takes i) = σ(p_u · q_i + b_u + b_i)

    The library draws ``negatives`` pairs for each training pair and takes AdaGrad steps. ``b_u``
    does not change the order of a user's list and is left out of the scores. One thread: with
    more, the draws depend on their number.

    Args:
        embedding_size: Length of the vectors.
        learning_rate: Length of a step.
        reg: Weight of the squared lengths of the vectors.
        epochs: Passes over the users and the items.
        negatives: Pairs drawn for each training pair.

    Source:
        Johnson, "Logistic Matrix Factorization for Implicit Feedback Data", NIPS workshop on
        distributed machine learning and matrix computations 2014, equations 2 to 5.
    """

    provides: ClassVar[frozenset[Output]] = FACTORS
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = LIBRARIES

    embedding_size: Annotated[int, Gt(0)] = 30
    learning_rate: Annotated[float, Gt(0)] = 1.0
    reg: Annotated[float, Ge(0)] = 0.6
    epochs: Annotated[int, Gt(0)] = 30
    negatives: Annotated[int, Gt(0)] = 30

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Learn from the training rows."""
        from implicit.cpu.lmf import LogisticMatrixFactorization

        model = _fitted(
            lambda: LogisticMatrixFactorization(
                factors=self.embedding_size,
                learning_rate=self.learning_rate,
                regularization=self.reg,
                iterations=self.epochs,
                neg_prop=self.negatives,
                num_threads=1,
                random_state=_seed(rng),
            ),
            data,
            _reporter("LMF", self.epochs),
        )
        return _without_bias_columns(model, n_columns=2)

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.from_state(state)


@dataclass(frozen=True, kw_only=True)
class ImplicitItemKNN:
    """Rank items by their likeness to the user's items (implicit's item neighbourhoods).

        score(u, i) = Σ_j∈I_u  s_ji   where i is among the neighbors of j

    The neighbourhood is that of the item j in the history (``ItemKNN`` takes that of the item i
    to be ranked) and counts j itself as one of its neighbours.

    Args:
        neighbors: How many items each item keeps.
        similarity: Cosine of the items' columns, plain (``cosine``) or with users weighted by
            TF-IDF (``tfidf``), or the dot product of BM25 weights (``bm25``).

    Source:
        Deshpande and Karypis, "Item-Based Top-N Recommendation Algorithms", TOIS 22(1), 2004.
    """

    provides: ClassVar[frozenset[Output]] = LISTS
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = LIBRARIES

    neighbors: Annotated[int, Gt(0)] = 20
    similarity: Literal["cosine", "tfidf", "bm25"] = "cosine"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemWeights:
        """Find the neighbours of each item."""
        from implicit.nearest_neighbours import (
            BM25Recommender,
            CosineRecommender,
            TFIDFRecommender,
        )

        kinds = {"cosine": CosineRecommender, "tfidf": TFIDFRecommender, "bm25": BM25Recommender}
        model = _fitted(lambda: kinds[self.similarity](K=self.neighbors), data, None)
        return FittedItemWeights.from_matrix(model.similarity)

    def restore(self, state: State) -> FittedItemWeights:
        """Return the fitted recommender of a stored state."""
        return FittedItemWeights.from_state(state)


def _fitted(make: Callable[[], Any], data: TrainingData, callback: Any) -> Any:
    """Return the library's model, fitted; BLAS keeps to one thread, as the library asks."""
    from implicit.utils import ParameterWarning
    from scipy.sparse import csr_matrix
    from threadpoolctl import threadpool_limits

    with warnings.catch_warnings(), threadpool_limits(limits=1, user_api="blas"):
        # its neighbourhood models warn of a conversion that they ask of themselves
        warnings.simplefilter("ignore", ParameterWarning)
        model = make()
        model.fit(csr_matrix(data.train.binary), show_progress=False, callback=callback)
    return model


def _reporter(what: str, epochs: int) -> Callable[..., None]:
    return lambda epoch, *_: report_progress(what, epoch + 1, epochs)


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def _without_bias_columns(model: Any, *, n_columns: int) -> FittedFactors:
    """Return the factors; the first of the last columns is the bias of an item."""
    users, items = model.user_factors, model.item_factors
    return FittedFactors(
        np.ascontiguousarray(users[:, :-n_columns]),
        np.ascontiguousarray(items[:, :-n_columns]),
        np.ascontiguousarray(items[:, -n_columns]),
    )
