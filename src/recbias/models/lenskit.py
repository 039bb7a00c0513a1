"""Models of LensKit: settings, training of its scorers, and its scores as ranked lists."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from annotated_types import Ge, Gt, Le

from recbias.core.context import report_progress, track_progress, warn
from recbias.core.dataset import AnyArray, Interactions, TrainingData
from recbias.core.errors import Contradiction
from recbias.core.evidence import RankedLists
from recbias.core.plugins import OnlyWith, Output, State
from recbias.core.queries import Queries
from recbias.models.fitted import FactorModel, FittedFactors, FittedItemWeights, ItemWeightModel
from recbias.models.gpu import copy_to_array
from recbias.models.ranking import rank_rows

_LIBRARIES = ("lenskit",)

_QUERY_BLOCK = 256  # Number of queries that are scored between two progress reports

_ENVIRONMENT = {"LK_TORCH_COMPILE": "0"}
"""Compiling a model takes longer than training it on datasets of the usual size."""


_NAMES = {
    "reg": "regularization",
    "neighbors": "max_nbrs",
    "min_neighbors": "min_nbrs",
    "min_similarity": "min_sim",
    "saved_neighbors": "save_nbrs",
    "negatives": "negative_count",
    "layers": "convolution_layers",
}
"""LensKit's names of settings."""

_NAMES_OF_SCORERS = {
    "BiasedSVDScorer": {"iterations": "n_iter"},
    "NMFScorer": {"epochs": "max_iter", "reg": "alpha_W"},
    "FlexMFImplicitScorer": {"regularization": "reg_method"},
    "FlexMFExplicitScorer": {"regularization": "reg_method"},
    "SLIMScorer": {"iterations": "max_iters"},
}
"""Names that one scorer has."""


class _LensKitModel:
    """Base class of the models that train a scorer of LensKit."""

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = _LIBRARIES

    def train(self, kind: Any, data: TrainingData, rng: np.random.Generator) -> Any:
        """Return a trained scorer of a class whose settings are those of the model."""
        names = _NAMES | _NAMES_OF_SCORERS.get(kind.__name__, {})
        settings = {names.get(name, name): value for name, value in vars(self).items()}
        return train_scorer(kind(**settings), data, rng)


class _LensKitFactorModel(FactorModel, _LensKitModel):
    """Base class of LensKit's factorizations."""

    embedding_size: int


def export_factors(users: Any, items: Any, item_bias: Any = None) -> FittedFactors:
    """Return factors of any array type as contiguous ``float32`` arrays."""
    convert = partial(np.ascontiguousarray, dtype=np.float32)
    return FittedFactors(
        convert(users), convert(items), None if item_bias is None else convert(item_bias)
    )


def train_scorer(scorer: Any, data: TrainingData, rng: np.random.Generator) -> Any:
    """Train a LensKit scorer whose user and item numbers are the codes of the data; return it."""
    from lenskit.training import TrainingOptions, UsesTrainer

    seed = int(rng.integers(2**31))
    options = TrainingOptions(rng=seed, device="cpu", environment=dict(_ENVIRONMENT))
    dataset = to_lenskit_dataset(data.train)
    with isolate_threads(), forward_warnings():
        if isinstance(scorer, UsesTrainer):
            trainer = scorer.create_trainer(dataset, options)
            label = f"{type(scorer).__name__} epochs"
            for _ in track_progress(range(scorer.config.epochs), label):
                trainer.train_epoch()
            trainer.finalize()
        else:
            report_progress(f"fit {type(scorer).__name__}", 0, 1)
            scorer.train(dataset, options)
    return scorer


def to_lenskit_dataset(train: Interactions) -> Any:
    """Return a LensKit dataset that uses codes as identifiers; the last of repeated rows counts.

    It contains users and items without interactions, so that its numbers equal the codes.
    """
    from lenskit.data import from_interactions_df

    frame = pd.DataFrame({"user_id": train.users, "item_id": train.items, "rating": train.values})
    frame = frame.drop_duplicates(["user_id", "item_id"], keep="last")
    return from_interactions_df(
        frame, users=np.arange(train.n_users), items=np.arange(train.n_items)
    )


def warn_about_equal_ratings(data: TrainingData, name: str) -> None:
    """Warn if all training ratings of a model of ratings are equal."""
    values = data.train.values
    if values.size and values.min() == values.max():
        warn(f"{name} learns from rating differences, but all training ratings are {values[0]:g}")


@contextmanager
def isolate_threads() -> Iterator[None]:
    """Limit LensKit to one thread in a block, and restore the number of threads after it.

    LensKit sets the threads of BLAS and torch for the whole process. Without this, models fitted
    later would be slower and have other rounding errors.
    """
    import torch
    from lenskit.parallel import ensure_parallel_init
    from threadpoolctl import threadpool_limits

    threads = torch.get_num_threads()
    with warnings.catch_warnings(), threadpool_limits(limits=1, user_api="blas"):
        warnings.filterwarnings("ignore", "failed to set .* threads", RuntimeWarning)
        try:
            ensure_parallel_init()
            torch.set_num_threads(1)
            yield
        finally:
            torch.set_num_threads(threads)


@contextmanager
def forward_warnings() -> Iterator[None]:
    """Report the UserWarnings of LensKit and scikit-learn as warnings of the stage."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        warnings.filterwarnings("ignore", "Sparse (invariant|CSR)", UserWarning)  # torch
        yield
    for warning in caught:
        warn(str(warning.message))


@dataclass(frozen=True, eq=False)
class FittedScorer:
    """A trained LensKit scorer, called once per query; it cannot be stored."""

    scorer: Any  # The trained scorer
    dataset: Any  # The training interactions, for the users' histories

    @classmethod
    def from_training(cls, scorer: Any, data: TrainingData) -> FittedScorer:
        """Return a trained scorer with the histories of its training data."""
        return cls(scorer, to_lenskit_dataset(data.train))

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first; a user without history has an empty list."""
        label = f"lists of {type(self.scorer).__name__}"
        starts = range(0, max(len(queries), 1), _QUERY_BLOCK)
        with isolate_threads():
            blocks = [
                self._rank(queries.users[start : start + _QUERY_BLOCK], k, data)
                for start in track_progress(starts, label)
            ]
        n_empty = sum(int((block.items[:, :1] < 0).sum()) for block in blocks)
        if n_empty:
            warn(f"{n_empty:,} of {len(queries):,} queries have no item with a score: empty lists")
        return RankedLists(
            np.concatenate([block.items for block in blocks]),
            np.concatenate([block.scores for block in blocks]),
        )

    def _rank(self, users: AnyArray, k: int, data: TrainingData) -> RankedLists:
        scores = np.full((users.size, data.train.n_items), np.nan, dtype=np.float32)
        counts = data.train.user_counts()
        for row in np.flatnonzero(users >= 0):
            if counts[users[row]]:
                scores[row] = self._score_items(int(users[row]))
        return rank_rows(lambda rows: scores[rows], users, k, data)

    def _score_items(self, user: int) -> AnyArray:
        from lenskit.data import ItemList, RecQuery

        numbers = np.arange(self.dataset.item_count)
        query = RecQuery(user_id=user, history_items=self.dataset.user_row(user))
        items = ItemList(item_nums=numbers, vocabulary=self.dataset.items)
        return np.asarray(self.scorer(query, items).scores())


class _ItemScoreModel(_LensKitModel):
    """Base class of the models that give all users the same scores."""

    def restore(self, state: State) -> _FittedItemScores:
        """Return the fitted recommender of a stored state."""
        return _FittedItemScores(state["item_scores"])


@dataclass(frozen=True, kw_only=True)
class LensKitPopular(_ItemScoreModel):
    """Rank items by their number of training interactions (LensKit's popularity).

        score(u, i) = n_i,   its rank,   or   Σ_{j : n_j ≤ n_i} n_j / Σ_j n_j

    ``n_i`` is the number of training interactions of i. The three ``score`` forms differ in the
    order of items with equal counts only.

    Args:
        score: ``quantile`` (LensKit's default), ``rank`` or ``count``.

    Source:
        Ekstrand, "LensKit for Python", CIKM 2020.
    """

    score: Literal["quantile", "rank", "count"] = "quantile"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedItemScores:
        """Count the interactions of each item."""
        from lenskit.basic import PopScorer

        return _FittedItemScores(self.train(PopScorer, data, rng).item_scores_)


@dataclass(frozen=True, kw_only=True)
class LensKitBias(_ItemScoreModel):
    """Rank items by their damped mean rating (LensKit's bias model).

        score(u, i) = b + b_i,   b_i = Σ_{u in U_i} (r_ui - b) / (|U_i| + damping)

    ``b`` is the mean rating and ``U_i`` are the users who rated i. The user bias does not change
    the order of a list and is excluded.

    Args:
        damping: Number of additional average ratings assumed for each item.

    Source:
        Ekstrand, "LensKit for Python", CIKM 2020; Funk, "Netflix Update: Try This at Home", 2006.
    """

    damping: Annotated[float, Ge(0)] = 0.0

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedItemScores:
        """Average the ratings of each item."""
        from lenskit.basic import BiasScorer

        warn_about_equal_ratings(data, "lenskit/Bias")
        model = self.train(BiasScorer, data, rng).model_
        return _FittedItemScores((model.global_bias + model.item_biases).astype(np.float32))


@dataclass(frozen=True, eq=False)
class _FittedItemScores:
    """One score per item, the same for all users, ``float32[n_items]``."""

    item_scores: npt.NDArray[np.float32]

    def state(self) -> State:
        """Return the scores as a named array."""
        return {"item_scores": self.item_scores}

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        scores = self.item_scores
        return rank_rows(lambda rows: np.tile(scores, (rows.size, 1)), queries.users, k, data)


@dataclass(frozen=True, kw_only=True)
class LensKitImplicitMF(_LensKitFactorModel):
    """Factorize the user-item matrix by alternating least squares (LensKit's implicit ALS).

        minimise  Σ_ui c_ui (x_ui - p_u · q_i)² + reg (Σ_u |p_u|² + Σ_i |q_i|²)

    ``x_ui`` is 1 for a training pair and 0 otherwise; ``c_ui`` is 1 + weight for a training pair
    and 1 otherwise. Each half is solved exactly. LensKit can recompute the vector of a user from
    the history; here the vectors from training are used.

    Args:
        embedding_size: Size of the vectors.
        reg: Weight of the squared norms of the vectors.
        weight: Additional confidence of a training pair. LensKit's default is large: weight 1 with
            reg 10 is far better on MovieLens-1M.
        epochs: Passes over all users and items.
        use_ratings: Whether the weight is multiplied by the rating.

    Source:
        Hu, Koren and Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM
        2008, equation 3; Ekstrand, "LensKit for Python", CIKM 2020.
    """

    embedding_size: Annotated[int, Gt(0)] = 50
    reg: Annotated[float, Gt(0)] = 0.1
    weight: Annotated[float, Gt(0)] = 40.0
    epochs: Annotated[int, Gt(0)] = 10
    use_ratings: bool = False

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Factorize the training matrix."""
        from lenskit.als import ImplicitMFScorer

        scorer = self.train(ImplicitMFScorer, data, rng)
        return export_factors(scorer.user_embeddings, scorer.item_embeddings)


@dataclass(frozen=True, kw_only=True)
class LensKitBiasedMF(_LensKitFactorModel):
    """Factorize the deviations of ratings from their biases, by ALS (LensKit's BiasedMF).

        r_ui ≈ b + b_u + b_i + p_u · q_i

    The biases are damped means; the vectors are then fitted to the residuals of the observed
    ratings. The model predicts ratings, not which items a user chooses. ``b_u`` does not change
    the order of a list and is excluded from the scores.

    Args:
        embedding_size: Size of the vectors.
        reg: Weight of the squared norms, times the number of ratings of the user or item.
        damping: Number of additional average ratings assumed for each user and item.
        epochs: Passes over all users and items.

    Source:
        Zhou, Wilkinson, Schreiber and Pan, "Large-Scale Parallel Collaborative Filtering for the
        Netflix Prize", AAIM 2008, section 3; Ekstrand, "LensKit for Python", CIKM 2020.
    """

    embedding_size: Annotated[int, Gt(0)] = 50
    reg: Annotated[float, Gt(0)] = 0.1
    damping: Annotated[float, Ge(0)] = 5.0
    epochs: Annotated[int, Gt(0)] = 10

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Factorize the training ratings."""
        from lenskit.als import BiasedMFScorer

        warn_about_equal_ratings(data, "lenskit/BiasedMF")
        return _export_biased(self.train(BiasedMFScorer, data, rng))


@dataclass(frozen=True, kw_only=True)
class LensKitFunkSVD(_LensKitFactorModel):
    """Factorize ratings by SGD, one dimension after the other (LensKit's FunkSVD).

        r_ui ≈ b + b_u + b_i + Σ_f p_uf q_if

    Each dimension is trained on the residuals of those before it. ``b_u`` does not change the
    order of a list and is excluded from the scores.

    Args:
        embedding_size: Number of dimensions.
        learning_rate: Learning rate.
        reg: Weight of the squared entries.
        damping: Number of additional average ratings assumed for each user and item.
        epochs: Passes over the ratings per dimension.

    Source:
        Funk, "Netflix Update: Try This at Home", 2006; Ekstrand, "LensKit for Python", CIKM 2020.
    """

    embedding_size: Annotated[int, Gt(0)] = 50
    learning_rate: Annotated[float, Gt(0)] = 0.001
    reg: Annotated[float, Ge(0)] = 0.015
    damping: Annotated[float, Ge(0)] = 5.0
    epochs: Annotated[int, Gt(0)] = 100

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Factorize the training ratings."""
        from lenskit.funksvd import FunkSVDScorer

        warn_about_equal_ratings(data, "lenskit/FunkSVD")
        return _export_biased(self.train(FunkSVDScorer, data, rng))


@dataclass(frozen=True, kw_only=True)
class LensKitBiasedSVD(_LensKitFactorModel):
    """Decompose the deviations of ratings from their biases (LensKit's BiasedSVD).

        r_ui - b - b_u - b_i ≈ (U Σ Vᵀ)_ui,    score(u, i) = b + b_i + (U Σ)_u · V_i

    A pair without a rating counts as 0. ``b_u`` does not change the order of a list and is
    excluded from the scores.

    Args:
        embedding_size: Number of singular vectors.
        damping: Number of additional average ratings assumed for each user and item.
        algorithm: ``randomized`` or ``arpack``.
        iterations: Power iterations of the randomized algorithm.

    Source:
        Koren, "Factorization Meets the Neighborhood", KDD 2008, section 2; Ekstrand, "LensKit for
        Python", CIKM 2020.
    """

    libraries: ClassVar[tuple[str, ...]] = (*_LIBRARIES, "scikit-learn")

    embedding_size: Annotated[int, Gt(0)] = 50
    damping: Annotated[float, Ge(0)] = 5.0
    algorithm: Literal["randomized", "arpack"] = "randomized"
    iterations: Annotated[int, Gt(0)] = 5

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Decompose the training ratings."""
        from lenskit.sklearn.svd import BiasedSVDScorer

        warn_about_equal_ratings(data, "lenskit/BiasedSVD")
        with seed_global_numpy(rng):
            scorer = self.train(BiasedSVDScorer, data, rng)
        bias = scorer.bias_.global_bias + scorer.bias_.item_biases
        return export_factors(scorer.user_components_, scorer.factorization_.components_.T, bias)


@dataclass(frozen=True, kw_only=True)
class LensKitNMF(_LensKitFactorModel):
    """Factorize the user-item matrix into non-negative factors (LensKit's NMF).

        minimise  ½ |X - W H|² + reg (R(W) n_items + R(H) n_users),    W, H ≥ 0
        R(A) = l1_ratio |A|₁ + ½ (1 - l1_ratio) |A|²

    ``X`` is 1 for a training pair and 0 otherwise.

    Args:
        embedding_size: Number of factors.
        epochs: Maximum number of iterations.
        reg: Weight of the penalty.
        l1_ratio: Share of the L1 norm in the penalty.

    Source:
        Lee and Seung, "Learning the Parts of Objects by Non-Negative Matrix Factorization", Nature
        401, 1999; Ekstrand, "LensKit for Python", CIKM 2020.
    """

    libraries: ClassVar[tuple[str, ...]] = (*_LIBRARIES, "scikit-learn")

    embedding_size: Annotated[int, Gt(0)] = 50
    epochs: Annotated[int, Gt(0)] = 200
    reg: Annotated[float, Ge(0)] = 0.0
    l1_ratio: Annotated[float, Ge(0), Le(1), OnlyWith("reg")] = 0.0

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Factorize the training matrix."""
        from lenskit.sklearn.nmf import NMFScorer

        with seed_global_numpy(rng):
            scorer = self.train(NMFScorer, data, rng)
        return export_factors(scorer.user_components, scorer.item_components)


@contextmanager
def seed_global_numpy(rng: np.random.Generator) -> Iterator[None]:
    """Seed numpy's global generator in a block: LensKit passes no other to scikit-learn."""
    previous = np.random.get_state()  # noqa: NPY002  the only generator that these scorers use
    np.random.set_state(np.random.RandomState(int(rng.integers(2**31))).get_state())  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(previous)  # noqa: NPY002


def _export_biased(scorer: Any) -> FittedFactors:
    bias = scorer.bias.global_bias + scorer.bias.item_biases
    return export_factors(scorer.user_embeddings, scorer.item_embeddings, bias)


_Regularization: TypeAlias = Literal["AdamW", "L2"]


@dataclass(frozen=True, kw_only=True)
class LensKitFlexMFImplicit(_LensKitFactorModel):
    """Factorize so that training pairs score above sampled ones (LensKit's implicit FlexMF).

        s_ui = p_u · q_i + b_i (+ b_u)
        logistic   maximise  Σ weight ln σ(s_ui) + Σ ln σ(-s_uj)
        pairwise   maximise  Σ ln σ(s_ui - s_uj)
        warp       as pairwise, weighted by the rank of i; j is sampled until s_uj > s_ui

    ``j`` is an item that u does not have in training. ``b_u`` does not change the order of a list
    and is excluded from the scores. Training uses the CPU, so that results are reproducible.

    Args:
        embedding_size: Size of the vectors.
        learning_rate: Learning rate of Adam.
        reg: Weight decay (``AdamW``), or weight of the squared norms of a batch (``L2``).
        regularization: How ``reg`` is applied.
        epochs: Passes over the training interactions.
        batch_size: Training interactions per step.
        loss: ``logistic``, ``pairwise`` (BPR) or ``warp``, which is many times slower.
        negatives: Items sampled per training interaction; 1 for ``warp``.
        positive_weight: Weight of the training pairs in the logistic loss.
        layers: Number of LightGCN layers between the vectors and the scores; 0 for none.

    Raises:
        Contradiction: ``warp`` with more than one sampled item.

    Source:
        Rendle et al., "BPR", UAI 2009; Johnson, "Logistic Matrix Factorization", NIPS workshop
        2014; Weston, Bengio and Usunier, "WSABIE", IJCAI 2011; He et al., "LightGCN", SIGIR 2020;
        Ekstrand, "LensKit for Python", CIKM 2020.
    """

    libraries: ClassVar[tuple[str, ...]] = (*_LIBRARIES, "torch")

    embedding_size: Annotated[int, Gt(0)] = 64
    learning_rate: Annotated[float, Gt(0)] = 0.01
    reg: Annotated[float, Ge(0)] = 0.01
    regularization: _Regularization = "AdamW"
    epochs: Annotated[int, Gt(0)] = 10
    batch_size: Annotated[int, Gt(0)] = 8192
    loss: Literal["logistic", "pairwise", "warp"] = "logistic"
    negatives: Annotated[int, Gt(0)] = 1
    positive_weight: Annotated[float, Gt(0)] = 1.0
    layers: Annotated[int, Ge(0)] = 0

    def __post_init__(self) -> None:
        """Refuse more than one negative for ``warp``, which samples until one scores higher."""
        if self.loss == "warp" and self.negatives > 1:
            message = "loss: warp samples one item per training interaction"
            raise Contradiction(message, where="negatives", remedy="remove negatives")

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Train on the training interactions."""
        from lenskit.flexmf import FlexMFImplicitScorer

        return _export_factors(self.train(FlexMFImplicitScorer, data, rng).model)


@dataclass(frozen=True, kw_only=True)
class LensKitFlexMFExplicit(_LensKitFactorModel):
    """Factorise ratings by stochastic gradients (LensKit's FlexMF, explicit).

        r_ui ≈ b + b_u + b_i + p_u · q_i

    A model of ratings, not of choices: it ranks what a user would rate well. ``b`` and ``b_u`` do
    not change the order of a list and are left out of the scores. On the CPU, so that a seed gives
    the same lists.

    Args:
        embedding_size: Size of the vectors.
        learning_rate: Learning rate of Adam.
        reg: Weight of the norms in a batch (``L2``), or weight decay (``AdamW``).
        regularization: How ``reg`` is applied.
        epochs: Passes over the training interactions.
        batch_size: Training interactions per step.

    Source:
        Koren, Bell and Volinsky, "Matrix Factorization Techniques for Recommender Systems",
        Computer 42(8), 2009, equation 5; Ekstrand, "LensKit for Python", CIKM 2020.
    """

    libraries: ClassVar[tuple[str, ...]] = (*_LIBRARIES, "torch")

    embedding_size: Annotated[int, Gt(0)] = 64
    learning_rate: Annotated[float, Gt(0)] = 0.01
    reg: Annotated[float, Ge(0)] = 0.1
    regularization: _Regularization = "L2"
    epochs: Annotated[int, Gt(0)] = 10
    batch_size: Annotated[int, Gt(0)] = 8192

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Train on the training ratings."""
        from lenskit.flexmf import FlexMFExplicitScorer

        warn_about_equal_ratings(data, "lenskit/FlexMFExplicit")
        return _export_factors(self.train(FlexMFExplicitScorer, data, rng).model)


def _export_factors(model: Any) -> FittedFactors:
    users = model.u_embed.weight if model.u_layers is None else model.u_layers.mean(0)
    items = model.i_embed.weight if model.i_layers is None else model.i_layers.mean(0)
    bias = None if model.i_bias is None else copy_to_array(model.i_bias.weight).ravel()
    return FittedFactors(copy_to_array(users), copy_to_array(items), bias)


_Feedback = Literal["implicit", "explicit"]


class _KNN(_LensKitModel):
    feedback: _Feedback

    def _fit_knn(self, kind: Any, data: TrainingData, rng: np.random.Generator) -> FittedScorer:
        if self.feedback == "explicit":
            warn_about_equal_ratings(data, kind.__name__)
        return FittedScorer.from_training(self.train(kind, data, rng), data)


class _ItemWeightModel(ItemWeightModel, _LensKitModel):
    def _fit_weights(
        self, kind: Any, data: TrainingData, rng: np.random.Generator
    ) -> FittedItemWeights:
        return FittedItemWeights.from_matrix(self.train(kind, data, rng).weights)


@dataclass(frozen=True, kw_only=True)
class LensKitItemKNN(_KNN):
    """Rank items by the user's most similar items (LensKit's item neighbourhoods).

        score(u, i) = Σ_{j in N(i; u)} s_ij                                    implicit
        score(u, i) = m_i + Σ_{j in N(i; u)} s_ij (r_uj - m_j) / Σ |s_ij|      explicit

    ``N(i; u)`` are the ``neighbors`` items of u's history that are most similar to i by cosine,
    ``m`` the mean ratings. LensKit scores one user at a time, which takes minutes for thousands of
    users, and the fitted model is not stored between runs.

    Args:
        neighbors: Maximum number of neighbours that a score uses.
        min_neighbors: Items with fewer neighbours have no score.
        min_similarity: Minimum similarity of a neighbour.
        saved_neighbors: Number of neighbours stored per item; null for all.
        feedback: ``implicit`` replaces ratings by 1; ``explicit`` (LensKit's default) uses them.

    Source:
        Deshpande and Karypis, "Item-Based Top-N Recommendation Algorithms", TOIS 22(1), 2004;
        Ekstrand, "LensKit for Python", CIKM 2020.
    """

    neighbors: Annotated[int, Gt(0)] = 20
    min_neighbors: Annotated[int, Gt(0)] = 1
    min_similarity: Annotated[float, Gt(0)] = 1e-6
    saved_neighbors: Annotated[int, Gt(0)] | None = None
    feedback: _Feedback = "implicit"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedScorer:
        """Find the neighbours of each item."""
        from lenskit.knn import ItemKNNScorer

        return self._fit_knn(ItemKNNScorer, data, rng)


@dataclass(frozen=True, kw_only=True)
class LensKitUserKNN(_KNN):
    """Rank items by the most similar users who have them (LensKit's user neighbourhoods).

        score(u, i) = Σ_{v in N(u; i)} s_uv                                    implicit
        score(u, i) = m_u + Σ_{v in N(u; i)} s_uv (r_vi - m_v) / Σ |s_uv|      explicit

    ``N(u; i)`` are the ``neighbors`` users most similar to u by cosine among those who have i,
    ``m`` the mean ratings. LensKit scores one user at a time, which takes minutes for thousands of
    users, and the fitted model is not stored between runs.

    Args:
        neighbors: Maximum number of neighbours that a score uses.
        min_neighbors: Items with fewer neighbours have no score.
        min_similarity: Minimum similarity of a neighbour.
        feedback: ``implicit`` replaces ratings by 1; ``explicit`` (LensKit's default) uses them.

    Source:
        Herlocker, Konstan and Riedl, "An Empirical Analysis of Design Choices in
        Neighborhood-Based Collaborative Filtering Algorithms", Information Retrieval 5, 2002;
        Ekstrand, "LensKit for Python", CIKM 2020.
    """

    neighbors: Annotated[int, Gt(0)] = 20
    min_neighbors: Annotated[int, Gt(0)] = 1
    min_similarity: Annotated[float, Gt(0)] = 1e-6
    feedback: _Feedback = "implicit"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedScorer:
        """Store the users' rows; neighbours are searched at recommendation time."""
        from lenskit.knn import UserKNNScorer

        return self._fit_knn(UserKNNScorer, data, rng)


@dataclass(frozen=True, kw_only=True)
class LensKitEASE(_ItemWeightModel):
    """Rank items by a linear regression of each item on all others (LensKit's EASE).

        W = I - P / diag(P),   P = (Xᵀ X + reg I)⁻¹,   score(u, i) = (x_u W)_i

    Args:
        reg: Weight of the squared entries of W. LensKit's default is small; 500 is far better on
            MovieLens-1M.

    Source:
        Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019, equation 8.
    """

    libraries: ClassVar[tuple[str, ...]] = (*_LIBRARIES, "torch")
    reg: Annotated[float, Gt(0)] = 1.0

    def least_memory(self, n_users: int, n_items: int) -> float:
        """Return the bytes of two dense item-item matrices."""
        del n_users
        return 8.0 * n_items**2

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemWeights:
        """Solve for the weights."""
        from lenskit.knn import EASEScorer

        return self._fit_weights(EASEScorer, data, rng)


@dataclass(frozen=True, kw_only=True)
class LensKitSLIM(_ItemWeightModel):
    """Rank items by a sparse regression of each item on all others (LensKit's SLIM).

        minimise  ½ |x_i - X w_i|² + l1_reg |w_i|₁ + ½ l2_reg |w_i|²,   w_i ≥ 0, w_ii = 0

    Args:
        l1_reg: Weight of the L1 norm.
        l2_reg: Weight of the squared L2 norm.
        iterations: Maximum number of passes of coordinate descent per item.
        neighbors: Number of similar items in the regression of an item (fsSLIM); null for all.

    Source:
        Ning and Karypis, "SLIM: Sparse Linear Methods for Top-N Recommender Systems", ICDM 2011,
        equation 4.
    """

    l1_reg: Annotated[float, Gt(0)] = 1.0
    l2_reg: Annotated[float, Gt(0)] = 1.0
    iterations: Annotated[int, Gt(0)] = 100
    neighbors: Annotated[int, Gt(0)] | None = None

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemWeights:
        """Solve for the weights of each item."""
        from lenskit.knn.slim import SLIMScorer

        return self._fit_weights(SLIMScorer, data, rng)
