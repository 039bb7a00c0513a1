"""A world small enough to check every plug-in on, in which it is known what there is to learn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import TrainingData
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.outputs.evidence import Embeddings, Evidence
from recbias.core.outputs.predictions import Predictions
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.outputs.sentences import Responses, SentenceScores
from recbias.core.queries.queries import Queries

K = 6
"""The length of the lists that are checked."""

N_USERS, N_ITEMS, N_SEEN = 40, 24, 8
"""The checkerboard: users and items of two colours, and the training items of each user."""

N_TEMPLATES = 3
"""How many queries of the random answers bear each name, one a template."""

N_REVIEWS = 30
"""How many reviews the random answers name items for."""


def checkerboard() -> TrainingData:
    """Return training data of two colours: users have items of their own colour only.

    User and item 0, 2, 4, ... are white, the others black. A user has 8 of the 12 items of its
    colour, so a recommender that learns lists the other 4 first. All items are about as popular.
    The last user has no training row, and neither has the last item.
    """
    rng = np.random.default_rng(1)
    order = np.argsort(rng.random((N_USERS, N_ITEMS // 2)), axis=1)[:, :N_SEEN]
    users = np.repeat(np.arange(N_USERS), N_SEEN)
    items = 2 * order.ravel() + users % 2
    rows = Interactions(
        users.astype(np.int32),
        items.astype(np.int32),
        rng.integers(3, 6, users.size).astype(np.float32),
        rng.integers(10**9, 2 * 10**9, users.size),
        _ids("user", N_USERS + 1),
        _ids("item", N_ITEMS + 1),
    )
    colours = [["white", "black"][each % 2] for each in range(N_USERS + 1)]
    kinds = ["a|b" if each % 3 else "c" for each in range(N_ITEMS + 1)]
    prices = rng.integers(1, 5, N_ITEMS + 1).astype(np.float64)
    flags = (np.arange(N_ITEMS + 1) % 3 == 0).astype(np.float64)
    return TrainingData(
        rows,
        users=Attributes(rows.user_ids, pd.DataFrame({"colour": colours}), "user"),
        items=Attributes(
            rows.item_ids, pd.DataFrame({"genres": kinds, "price": prices, "flag": flags}), "item"
        ),
    )


def everybody(data: TrainingData) -> Queries:
    """Return a query of each user of the data, and one, the last, that is no user."""
    users = data.train.user_ids.ids
    ids = Vocabulary(np.append(users, np.array(["nobody"], dtype=object)))
    labels = Attributes(ids, pd.DataFrame(index=range(len(ids))), "query")
    return Queries(ids, labels, np.append(np.arange(users.size), -1).astype(np.int32))


def random_evidence() -> Evidence:
    """Return random answers of every kind: lists of the checkerboard's users and all else.

    One list is empty and one is short. The queries have the labels ``colour``, ``name`` and
    ``template``, each name of one colour and with each template once.
    """
    data, rng = checkerboard(), np.random.default_rng(3)
    queries = everybody(data)
    chances = rng.random((len(queries), N_ITEMS + 1))
    chances[:-1] -= 2 * (data.train.binary.toarray() > 0)
    chances[:, ~data.candidates] = -2
    items = np.argsort(-chances, axis=1)[:, :K].astype(np.int32)
    items[0], items[1, 2:] = -1, -1
    scores = np.where(items >= 0, -np.arange(K), np.nan).astype(np.float32)
    return Evidence(
        queries=replace(queries, labels=_labels(queries)),
        item_ids=data.train.item_ids,
        lists=RankedLists(items, scores),
        relevant=_relevant(data, rng),
        train=data.train,
        items=data.items,
        users=data.users,
        embeddings=Embeddings(
            rng.normal(size=(N_USERS + 1, 4)).astype(np.float32),
            rng.normal(size=(N_ITEMS + 1, 4)).astype(np.float32),
        ),
        sentence_scores=_sentences(rng),
        responses=_responses(),
        predictions=_predictions(data, rng),
        candidates=data.candidates,
        n_bootstrap=50,
    )


def _ids(what: str, n: int) -> Vocabulary:
    return Vocabulary(np.array([f"{what} {each}" for each in range(n)], dtype=object))


def _labels(queries: Queries) -> Attributes:
    places = range(len(queries))
    names = [each // N_TEMPLATES for each in places]
    columns = {
        "colour": [["white", "black"][each % 2] for each in names],
        "name": [f"name {each}" for each in names],
        "template": [f"template {each % N_TEMPLATES}" for each in places],
    }
    return Attributes(queries.ids, pd.DataFrame(columns), "query")


def _sentences(rng: np.random.Generator) -> SentenceScores:
    """Return 12 pairs of sentences, the last of them without its partner."""
    n = 23
    ids = np.array([f"sentence {each}" for each in range(n)], dtype=object)
    pairs = np.array([f"pair {each // 2}" for each in range(n)], dtype=object)
    groups = np.array([["T1", "T2"][each % 2] for each in range(n)], dtype=object)
    return SentenceScores(ids, pairs, groups, 10.0 + 5.0 * rng.random(n))


def _responses() -> Responses:
    texts = ["a cat sat on the mat", "a dog", "", "the mat sat on a cat and a dog"]
    references = ["the cat sat on the mat", "a dog ran", "nothing", "a dog sat on the mat"]
    ids = np.array([f"prompt {each}" for each in range(len(texts))], dtype=object)
    return Responses(ids, np.array(texts, dtype=object), np.array(references, dtype=object))


def _predictions(data: TrainingData, rng: np.random.Generator) -> Predictions:
    """Return all candidates in random order for reviews of them, one of an item that is none."""
    codes = np.flatnonzero(data.candidates).astype(np.int32)
    ids = np.array([f"review {each}" for each in range(N_REVIEWS)], dtype=object)
    items = rng.choice(codes, N_REVIEWS)
    items[0] = N_ITEMS
    return Predictions(ids, items, rng.permuted(np.tile(codes, (N_REVIEWS, 1)), axis=1))


def _relevant(data: TrainingData, rng: np.random.Generator) -> Any:
    """Return some test items of each query, none of them a training item; the last has none."""
    from scipy.sparse import csr_array

    wanted = (rng.random((N_USERS + 2, N_ITEMS + 1)) < 0.2).astype(np.float32)
    wanted[:-1][data.train.binary.toarray() > 0] = 0
    wanted[-1] = 0
    return csr_array(wanted)
