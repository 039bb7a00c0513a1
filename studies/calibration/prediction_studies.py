"""Rankings for reviews in which the item reviewed is first as often as planned."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from list_studies import make_study
from tally import Study, World
from text_studies import make_text_evidence

from recbias.core.dataset import Attributes, FloatArray, Vocabulary
from recbias.core.evidence import Evidence, Predictions
from recbias.metrics import accuracy as category
from recbias.metrics import accuracy as classes

N_REVIEWS = 400
N_ITEMS, SHARED, K = 24, 6, 5
"""Items, how many items have the same category, and the cutoff."""

HIT = 0.3
"""The chance that the item reviewed is put first; all other orders are equally probable."""

SHARES = np.arange(N_ITEMS, 0, -1) / np.arange(N_ITEMS + 1).sum()
"""The chance that a review is about each item."""


def sample(seed: int, hit: float = HIT, *, rival: bool = False) -> Evidence:
    """Rankings for the reviews of a seed; a rival ranks for the same reviews."""
    reviewed = np.random.default_rng([seed, 1]).choice(N_ITEMS, N_REVIEWS, p=SHARES)
    rng = np.random.default_rng([seed, 2, int(rival)])
    keys = rng.random((N_REVIEWS, N_ITEMS))
    is_first = np.flatnonzero(rng.random(N_REVIEWS) < hit)
    keys[is_first, reviewed[is_first]] = -1.0
    ranked = np.argsort(keys, axis=1).astype(np.int32)
    reviews = np.array([f"r{index}" for index in range(N_REVIEWS)], dtype=object)
    item_ids = Vocabulary(np.array([f"i{index}" for index in range(N_ITEMS)], dtype=object))
    names = [f"c{index // SHARED}" for index in range(N_ITEMS)]
    items = Attributes(item_ids, pd.DataFrame({"categories": names}), "item")
    predictions = Predictions(reviews, reviewed.astype(np.int32), ranked)
    return make_text_evidence(seed, predictions=predictions, items=items)


def compute_truths(study: Study, _seed: int) -> Mapping[str, float]:
    return {"": compute_truth(study.name, HIT)}


def compute_null(study: Study, _seed: int) -> Mapping[str, float]:
    return {"": compute_truth(study.name, 0.0)}


def compute_truth(name: str, hit: float) -> float:
    """The expected value if the item reviewed is first with the chance ``hit``, else anywhere."""
    ranks = np.arange(1, N_ITEMS + 1)
    accuracy = hit + (1 - hit) / N_ITEMS
    predicted = hit * SHARES + (1 - hit) / N_ITEMS
    truths = {
        "class_accuracy": accuracy,
        "class_recall": accuracy,
        "class_precision": float((SHARES**2 * accuracy / predicted).sum()),
        "class_F1": float((2 * SHARES**2 * accuracy / (SHARES + predicted)).sum()),
        "class_MRR": hit + (1 - hit) * float((1 / ranks).mean()),
        "class_HR": hit + (1 - hit) * K / N_ITEMS,
    }
    if name in truths:
        return truths[name]
    chance = hit * compute_relevance(is_first=True) + (1 - hit) * compute_relevance(is_first=False)
    discounts = 1.0 / np.log2(ranks + 1)
    return {
        "category_precision": float(chance[:K].mean()),
        "category_R-precision": float(chance[:SHARED].mean()),
        "category_MAP": hit * average_precision(is_first=True)
        + (1 - hit) * average_precision(is_first=False),
        "category_MRR": hit + (1 - hit) * compute_reciprocal_rank(),
        "category_nDCG": float((chance * discounts).sum() / discounts[:SHARED].sum()),
    }[name]


def compute_relevance(*, is_first: bool) -> FloatArray:
    """The chance that each rank has the category, if the item reviewed is first or anywhere."""
    if not is_first:
        return np.full(N_ITEMS, SHARED / N_ITEMS)
    return np.append(1.0, np.full(N_ITEMS - 1, (SHARED - 1) / (N_ITEMS - 1)))


def average_precision(*, is_first: bool) -> float:
    """The expected average precision: a relevant rank r has (r - 1) ranks before it, of which a
    share is relevant that the remaining items have."""
    ranks = np.arange(1, N_ITEMS + 1)
    if is_first:
        before = 1 + (ranks - 2) * (SHARED - 2) / (N_ITEMS - 2)
        before[0] = 0
    else:
        before = (ranks - 1) * (SHARED - 1) / (N_ITEMS - 1)
    return float((compute_relevance(is_first=is_first) * (1 + before) / ranks).sum() / SHARED)


def compute_reciprocal_rank() -> float:
    """The expected reciprocal rank of the first relevant item of an order at random."""
    total, none_before = 0.0, 1.0
    for rank in range(1, N_ITEMS - SHARED + 2):
        left = N_ITEMS - rank + 1
        total += none_before * SHARED / left / rank
        none_before *= 1 - SHARED / left
    return total


STUDIES = (
    make_study(classes.ClassAccuracy(), "class_accuracy"),
    make_study(classes.ClassPrecision(), "class_precision"),
    make_study(classes.ClassRecall(), "class_recall"),
    make_study(classes.ClassF1(), "class_F1"),
    make_study(classes.ClassMRR(), "class_MRR"),
    make_study(classes.ClassHitRate(k=K), "class_HR"),
    make_study(category.CategoryPrecision(k=K), "category_precision"),
    make_study(category.CategoryRPrecision(), "category_R-precision"),
    make_study(category.CategoryMAP(), "category_MAP"),
    make_study(category.CategoryMRR(), "category_MRR"),
    make_study(category.CategoryNDCG(), "category_nDCG"),
)

WORLDS = (
    World(
        "rankings for reviews",
        "combinatorial formula",
        STUDIES,
        sample,
        compute_truths,
        lambda seed: (sample(seed), sample(seed, rival=True)),
        plants="the item reviewed is first with probability 0.3",
    ),
    World(
        "rankings for reviews, no effect",
        "combinatorial formula",
        STUDIES,
        lambda seed: sample(seed, 0.0),
        compute_null,
        plants="nothing: every order is equally probable",
    ),
)
