"""Adapter of LensKit scorers: interactions to its dataset, its scores to ranked lists."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import Output
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import report_progress, track_progress, warn
from recbias.models.ranking.fitted_models import FactorModel, FittedFactors
from recbias.models.ranking.score_blocks import rank_rows

LIBRARIES = ("lenskit",)

QUERY_BLOCK = 256  # Number of queries that are scored between two progress reports

ENVIRONMENT = {"LK_TORCH_COMPILE": "0"}
"""Compiling a model takes longer than training it on datasets of the usual size."""


class LensKitModel:
    """Base class of the models that train a scorer of LensKit."""

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = LIBRARIES

    def train(self, kind: Any, data: TrainingData, rng: np.random.Generator, **names: str) -> Any:
        """Return a trained scorer of a class whose settings are those of the model.

        ``names`` are LensKit's names of the settings that have another name.
        """
        settings = {names.get(name, name): value for name, value in vars(self).items()}
        return train_scorer(kind(**settings), data, rng)


class LensKitFactorModel(FactorModel, LensKitModel):
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
    options = TrainingOptions(rng=seed, device="cpu", environment=dict(ENVIRONMENT))
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
        starts = range(0, max(len(queries), 1), QUERY_BLOCK)
        with isolate_threads():
            blocks = [
                self._rank(queries.users[start : start + QUERY_BLOCK], k, data)
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
