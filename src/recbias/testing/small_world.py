"""Small data with a known pattern, on which plug-ins are checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.odds import Odds
from recbias.core.dataset.split import TrainingData
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.outputs.evidence import Embeddings, Evidence
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.outputs.text_outputs import Predictions, Responses, SentenceScores
from recbias.core.queries.queries import SAMPLE, Queries

K, N_USERS, N_ITEMS, N_SEEN = 6, 40, 24, 8
"""The length of the lists, and the users, items, and items of each user of the checkerboard."""

N_TEMPLATES, N_REVIEWS = 3, 30
"""The numbers of templates of the random evidence (of queries of one name), and of reviews."""


def make_checkerboard() -> TrainingData:
    """Return training data in which users interact only with items of their own colour.

    Users and items with an even code are white, the others black. A user has 8 of the 12 items of
    the same colour, so a recommender that learns ranks the other 4 first. All items are about
    equally popular. The last user and the last item have no interaction.
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
        _make_ids("user", N_USERS + 1),
        _make_ids("item", N_ITEMS + 1),
    )
    colours = pd.DataFrame({"colour": [["white", "black"][n % 2] for n in range(N_USERS + 1)]})
    columns = {
        "genres": ["a|b" if item % 3 else "c" for item in range(N_ITEMS + 1)],
        "price": rng.integers(1, 5, N_ITEMS + 1).astype(np.float64),
        "flag": (np.arange(N_ITEMS + 1) % 3 == 0).astype(np.float64),
    }
    user_table = Attributes(rows.user_ids, colours, "user")
    item_table = Attributes(rows.item_ids, pd.DataFrame(columns), "item")
    return TrainingData(rows, users=user_table, items=item_table)


def query_all_users(data: TrainingData) -> Queries:
    """Return a query for each user of the data, and as the last one a query that is no user."""
    users = data.train.user_ids.ids
    ids = Vocabulary(np.append(users, np.array(["nobody"], dtype=object)))
    labels = Attributes(ids, pd.DataFrame(index=range(len(ids))), "query")
    return Queries(ids, labels, np.append(np.arange(users.size), -1).astype(np.int32))


def make_random_evidence() -> Evidence:
    """Return random evidence of every kind for the users of the checkerboard.

    One list is empty and one is short. The queries have the labels ``colour``, ``name`` and
    ``template``: a name has one colour, and occurs with each template once. ``sample`` is 1 for
    the second name, and 0 otherwise.
    """
    data, rng = make_checkerboard(), np.random.default_rng(3)
    queries = query_all_users(data)
    scores = rng.random((len(queries), N_ITEMS + 1))
    scores[:-1] -= 2 * (data.train.binary.toarray() > 0)
    scores[:, ~data.candidates] = -2
    items = np.argsort(-scores, axis=1)[:, :K].astype(np.int32)
    items[0], items[1, 2:] = -1, -1
    ranks = np.where(items >= 0, -np.arange(K), np.nan).astype(np.float32)
    return Evidence(
        replace(queries, labels=_make_labels(queries)),
        data.train.item_ids,
        lists=RankedLists(items, ranks),
        relevant=_sample_relevant(data, rng),
        train=data.train,
        items=data.items,
        users=data.users,
        embeddings=Embeddings(
            *(rng.normal(size=(n + 1, 4)).astype(np.float32) for n in (N_USERS, N_ITEMS))
        ),
        sentence_scores=_sample_sentences(rng),
        responses=_make_responses(),
        predictions=_sample_predictions(data, rng),
        candidates=data.candidates,
        odds=_sample_odds(),
        n_bootstrap=50,
    )


def _make_ids(kind: str, n: int) -> Vocabulary:
    return Vocabulary(np.array([f"{kind} {code}" for code in range(n)], dtype=object))


def _make_labels(queries: Queries) -> Attributes:
    rows = range(len(queries))
    names = [row // N_TEMPLATES for row in rows]
    columns = {
        "colour": [["white", "black"][name % 2] for name in names],
        "name": [f"name {name}" for name in names],
        "template": [f"template {row % N_TEMPLATES}" for row in rows],
        SAMPLE: [float(name == 1) for name in names],
    }
    return Attributes(queries.ids, pd.DataFrame(columns), "query")


def _sample_sentences(rng: np.random.Generator) -> SentenceScores:
    """Return 12 pairs of sentences; the last pair lacks a sentence."""
    n = 23
    ids = _make_ids("sentence", n).ids
    pairs = np.array([f"pair {row // 2}" for row in range(n)], dtype=object)
    groups = np.array([["T1", "T2"][row % 2] for row in range(n)], dtype=object)
    return SentenceScores(ids, pairs, groups, 10.0 + 5.0 * rng.random(n))


def _sample_odds() -> Odds:
    """Return the log-odds of the items for white and black users."""
    rng = np.random.default_rng(4)
    return Odds(rng.standard_normal((2, N_ITEMS + 1)), np.arange(N_USERS + 1) % 2)


def _make_responses() -> Responses:
    texts = ["a cat sat on the mat", "a dog", "", "the mat sat on a cat and a dog"]
    references = ["the cat sat on the mat", "a dog ran", "nothing", "a dog sat on the mat"]
    ids = _make_ids("prompt", len(texts)).ids
    return Responses(ids, np.array(texts, dtype=object), np.array(references, dtype=object))


def _sample_predictions(data: TrainingData, rng: np.random.Generator) -> Predictions:
    """Return all candidates in random order for each review; one reviews another item."""
    codes = np.flatnonzero(data.candidates).astype(np.int32)
    items = rng.choice(codes, N_REVIEWS)
    items[0] = N_ITEMS
    ranked = rng.permuted(np.tile(codes, (N_REVIEWS, 1)), axis=1)
    return Predictions(_make_ids("review", N_REVIEWS).ids, items, ranked)


def _sample_relevant(data: TrainingData, rng: np.random.Generator) -> Any:
    """Return test items of each query that are not training items; the last query has none."""
    from scipy.sparse import csr_array

    relevant = (rng.random((N_USERS + 2, N_ITEMS + 1)) < 0.2).astype(np.float32)
    relevant[:-1][data.train.binary.toarray() > 0] = 0
    relevant[-1] = 0
    return csr_array(relevant)
