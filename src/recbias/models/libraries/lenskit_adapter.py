"""One adapter for every LensKit scorer: our rows to its dataset, its scores to our lists."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import report_progress, track_progress, warn
from recbias.models.ranking.score_blocks import rank_rows

LIBRARIES = ("lenskit",)
USERS_A_STEP = 256
"""How many users are scored between two reports of progress."""

NO_COMPILING = {"LK_TORCH_COMPILE": "0"}
"""Compiling a model takes longer than training it on any data that fits this bench."""


def trained(scorer: Any, data: TrainingData, rng: np.random.Generator) -> Any:
    """Return the LensKit scorer, trained; user and item numbers are our codes."""
    from lenskit.training import TrainingOptions, UsesTrainer

    options = TrainingOptions(
        rng=int(rng.integers(2**31)), device="cpu", environment=dict(NO_COMPILING)
    )
    dataset = as_dataset(data.train)
    with undisturbed(), noted_warnings():
        if isinstance(scorer, UsesTrainer):
            _train_epochs(scorer, dataset, options)
        else:
            report_progress(f"fit {type(scorer).__name__}", 0, 1)
            scorer.train(dataset, options)
    return scorer


def _train_epochs(scorer: Any, dataset: Any, options: Any) -> None:
    trainer = scorer.create_trainer(dataset, options)
    for _ in track_progress(range(scorer.config.epochs), f"{type(scorer).__name__} epochs"):
        trainer.train_epoch()
    trainer.finalize()


def as_dataset(train: Interactions) -> Any:
    """Return a LensKit dataset whose identifiers are our codes; the last of repeated rows counts.

    Users and items without a row are in it, so that the numbers of the dataset are our codes too.
    """
    from lenskit.data import from_interactions_df

    frame = pd.DataFrame({"user_id": train.users, "item_id": train.items, "rating": train.values})
    frame = frame.drop_duplicates(["user_id", "item_id"], keep="last")
    return from_interactions_df(
        frame, users=np.arange(train.n_users), items=np.arange(train.n_items)
    )


def note_equal_ratings(data: TrainingData, name: str) -> None:
    """Note where a model of ratings is given ratings that are all the same."""
    values = data.train.values
    if values.size and values.min() == values.max():
        warn(f"{name} learns from how ratings differ, but all training ratings are {values[0]:g}")


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let LensKit set up its threads inside this block, and put ours back after it.

    It sets the threads of BLAS and torch for the whole process; models that are fitted later would
    run slower, and round otherwise.
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
def noted_warnings() -> Iterator[None]:
    """Put what LensKit and scikit-learn warn a user of in the record."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        warnings.filterwarnings("ignore", "Sparse (invariant|CSR)", UserWarning)  # torch
        yield
    for each in caught:
        warn(str(each.message))


@dataclass(frozen=True, eq=False)
class FittedScorer:
    """A trained LensKit scorer that is asked for each user; it cannot be stored.

    Args:
        scorer: The scorer.
        dataset: What it was trained on, for the users' histories.
    """

    scorer: Any
    dataset: Any

    @classmethod
    def of(cls, scorer: Any, data: TrainingData) -> FittedScorer:
        """Return a trained scorer with the histories of the training rows."""
        return cls(scorer, as_dataset(data.train))

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return a list for each query, best first; a user without history has an empty list."""
        what = f"lists of {type(self.scorer).__name__}"
        starts = range(0, max(len(queries), 1), USERS_A_STEP)
        with undisturbed():
            blocks = [
                self._ranked(queries.users[start : start + USERS_A_STEP], k, data)
                for start in track_progress(starts, what)
            ]
        lacking = sum(int((block.items[:, :1] < 0).sum()) for block in blocks)
        if lacking:
            warn(f"{lacking:,} of {len(queries):,} queries have an empty list: nothing to score")
        return RankedLists(
            np.concatenate([block.items for block in blocks]),
            np.concatenate([block.scores for block in blocks]),
        )

    def _ranked(self, users: AnyArray, k: int, data: TrainingData) -> RankedLists:
        scores = np.full((users.size, data.train.n_items), np.nan, dtype=np.float32)
        counts = data.train.user_counts()
        for row in np.flatnonzero(users >= 0):
            if counts[users[row]]:
                scores[row] = self._scores(int(users[row]))
        return rank_rows(lambda rows: scores[rows], users, k, data)

    def _scores(self, user: int) -> AnyArray:
        from lenskit.data import ItemList, RecQuery

        items = ItemList(
            item_nums=np.arange(self.dataset.item_count), vocabulary=self.dataset.items
        )
        query = RecQuery(user_id=user, history_items=self.dataset.user_row(user))
        scores: AnyArray = self.scorer(query, items).scores()
        return scores
