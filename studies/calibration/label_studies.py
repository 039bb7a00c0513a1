"""Labels of items by two raters who agree as often as planned."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from list_studies import make_study
from tally import Study, World
from vector_studies import make_evidence

from recbias.core.dataset import Attributes
from recbias.core.evidence import Evidence
from recbias.metrics.labels import CohenKappa, KrippendorffAlpha, LabelAccuracy, LabelledItems

N_ITEMS = 300
POSITIVE = 0.4
"""The share of items of which both say 1, if they say the same."""

AGREEMENT = 0.6
"""Rater B says what A says with this chance, otherwise 0 or 1 by chance, as often as A does."""


def sample(seed: int, agreement: float = AGREEMENT) -> Evidence:
    rng = np.random.default_rng(seed)
    a, other = (rng.random((2, N_ITEMS)) < POSITIVE).astype(np.float64)
    b = np.where(rng.random(N_ITEMS) < agreement, a, other)
    frame = pd.DataFrame({"a": a, "b": b})
    evidence = make_evidence(np.ones((2, 1)), np.ones((N_ITEMS, 1)), seed)
    items = Attributes(evidence.item_ids, frame, "item")
    return Evidence(
        queries=evidence.queries,
        item_ids=evidence.item_ids,
        items=items,
        bootstrap_seed=seed,
        n_bootstrap=400,
        metric="calibration",
    )


def compute_truths(study: Study, _seed: int, agreement: float = AGREEMENT) -> Mapping[str, float]:
    """Alpha and kappa are 1 - (1 - agreement) · 2 q (1 - q) / (2 q (1 - q)) = agreement, where q
    is the share of 1; labels by chance are equal with the probability q² + (1 - q)²."""
    by_chance = POSITIVE**2 + (1 - POSITIVE) ** 2
    truths = {
        "label_accuracy": agreement + (1 - agreement) * by_chance,
        "labelled_items, share": POSITIVE,
    }
    return {"": truths.get(study.name, agreement)}


STUDIES = (
    make_study(LabelAccuracy(a="a", b="b"), "label_accuracy"),
    make_study(LabelledItems(label="a", form="share"), "labelled_items, share"),
    make_study(CohenKappa(a="a", b="b"), "cohen_kappa"),
    make_study(KrippendorffAlpha(labels=("a", "b")), "krippendorff_alpha"),
    make_study(
        KrippendorffAlpha(labels=("a", "b"), level="interval"), "krippendorff_alpha, interval"
    ),
)

WORLDS = (
    World(
        "labels of two raters",
        "planted agreement",
        STUDIES,
        sample,
        compute_truths,
        plants="6 of 10 labels of B are copied from A, the others are by chance",
    ),
    World(
        "labels of two raters, by chance",
        "0, or the share of equal labels by chance",
        STUDIES,
        lambda seed: sample(seed, 0.0),
        lambda study, seed: compute_truths(study, seed, 0.0),
        plants="nothing: the labels are independent",
    ),
)
