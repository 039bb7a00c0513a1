"""Models of the libraries LensKit, whose scores become ranked lists, and implicit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from annotated_types import Ge, Gt

from recbias.core.context import report_progress, track_progress, warn
from recbias.core.dataset import AnyArray, Interactions, Queries, TrainingData
from recbias.core.evidence import RankedLists
from recbias.core.plugins import Output
from recbias.models.fitted import FactorModel, FittedFactors, FittedItemWeights, ItemWeightModel
from recbias.models.ranking import rank_rows

_QUERY_BLOCK = 256  # Number of queries that are scored between two progress reports

_ENVIRONMENT = {"LK_TORCH_COMPILE": "0"}
"""Compiling a model takes longer than training it on datasets of the usual size."""


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
    def train(cls, scorer: Any, data: TrainingData, rng: np.random.Generator) -> FittedScorer:
        """Train a LensKit scorer whose user and item numbers are the codes of the data."""
        from lenskit.training import TrainingOptions

        seed, dataset = int(rng.integers(2**31)), to_lenskit_dataset(data.train)
        options = TrainingOptions(rng=seed, device="cpu", environment=dict(_ENVIRONMENT))
        with isolate_threads(), forward_warnings():
            report_progress(f"fit {type(scorer).__name__}", 0, 1)
            scorer.train(dataset, options)
        return cls(scorer, dataset)

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


@dataclass(frozen=True, kw_only=True)
class _KNN:
    """Base class of the models that train a neighbourhood scorer of LensKit."""

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ("lenskit",)

    neighbors: Annotated[int, Gt(0)] = 20
    feedback: Literal["implicit", "explicit"] = "implicit"

    def _fit_knn(self, kind: Any, data: TrainingData, rng: np.random.Generator) -> FittedScorer:
        if self.feedback == "explicit":
            warn_about_equal_ratings(data, kind.__name__)
        scorer = kind(max_nbrs=self.neighbors, feedback=self.feedback)
        return FittedScorer.train(scorer, data, rng)


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
        feedback: ``implicit`` replaces ratings by 1; ``explicit`` (LensKit's default) uses them.

    Source:
        Deshpande and Karypis, "Item-Based Top-N Recommendation Algorithms", TOIS 22(1), 2004;
        Ekstrand, "LensKit for Python", CIKM 2020.
    """

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
        feedback: ``implicit`` replaces ratings by 1; ``explicit`` (LensKit's default) uses them.

    Source:
        Herlocker, Konstan and Riedl, "An Empirical Analysis of Design Choices in
        Neighborhood-Based Collaborative Filtering Algorithms", Information Retrieval 5, 2002;
        Ekstrand, "LensKit for Python", CIKM 2020.
    """

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedScorer:
        """Store the users' rows; neighbours are searched at recommendation time."""
        from lenskit.knn import UserKNNScorer

        return self._fit_knn(UserKNNScorer, data, rng)


@dataclass(frozen=True, kw_only=True)
class ImplicitALS(FactorModel):
    """Factorize the user-item matrix by alternating least squares (implicit's iALS).

        minimise  Σ_ui c_ui (x_ui - p_u · q_i)² + reg (Σ_u |p_u|² + Σ_i |q_i|²)

    ``x_ui`` is 1 for a training pair and 0 otherwise; ``c_ui`` is alpha for a training pair and 1
    otherwise. The library solves each half by three steps of conjugate gradients. A seed gives
    the same result with any number of threads.

    Args:
        embedding_size: Size of the vectors.
        reg: Weight of the squared norms of the vectors.
        alpha: Confidence of a training pair.
        epochs: Passes over all users and items.

    Source:
        Hu, Koren and Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM
        2008, equation 3; Takács, Pilászy and Tikk, "Applications of the Conjugate Gradient Method
        for Implicit Feedback Collaborative Filtering", RecSys 2011.
    """

    libraries: ClassVar[tuple[str, ...]] = ("implicit",)

    embedding_size: Annotated[int, Gt(0)] = 64
    reg: Annotated[float, Ge(0)] = 10.0
    alpha: Annotated[float, Gt(0)] = 1.0
    epochs: Annotated[int, Gt(0)] = 15

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Factorize the training matrix."""
        from implicit.cpu.als import AlternatingLeastSquares

        model = _fit_library_model(
            AlternatingLeastSquares,
            data,
            lambda epoch, *_: report_progress("ALS", epoch + 1, self.epochs),
            factors=self.embedding_size,
            regularization=self.reg,
            alpha=self.alpha,
            iterations=self.epochs,
            random_state=int(rng.integers(2**31)),
        )
        return FittedFactors(model.user_factors, model.item_factors)


@dataclass(frozen=True, kw_only=True)
class ImplicitItemKNN(ItemWeightModel):
    """Rank items by their similarity to the user's items (implicit's item neighbourhoods).

        score(u, i) = Σ_j∈I_u  s_ji   where i is among the neighbors of j

    ``I_u`` is the history of u and ``s`` the cosine. The neighbourhood is that of the item j
    in the history, and contains j itself. ``ItemKNN`` uses that of the item i to be ranked.

    Args:
        neighbors: Number of neighbours of an item.

    Source:
        Deshpande and Karypis, "Item-Based Top-N Recommendation Algorithms", TOIS 22(1), 2004.
    """

    libraries: ClassVar[tuple[str, ...]] = ("implicit",)

    neighbors: Annotated[int, Gt(0)] = 20

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemWeights:
        """Find the neighbours of each item."""
        from implicit.nearest_neighbours import CosineRecommender

        model = _fit_library_model(CosineRecommender, data, None, K=self.neighbors)
        return FittedItemWeights.from_matrix(model.similarity)


def _fit_library_model(kind: Any, data: TrainingData, callback: Any, **settings: Any) -> Any:
    """Fit a model of the library, with one BLAS thread as the library requires."""
    from implicit.utils import ParameterWarning
    from scipy.sparse import csr_matrix
    from threadpoolctl import threadpool_limits

    with warnings.catch_warnings(), threadpool_limits(limits=1, user_api="blas"):
        # its neighbourhood models warn of a conversion that they make themselves
        warnings.simplefilter("ignore", ParameterWarning)
        model = kind(**settings)
        model.fit(csr_matrix(data.train.binary), show_progress=False, callback=callback)
    return model
