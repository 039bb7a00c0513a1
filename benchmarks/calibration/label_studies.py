"""Labels of items by two raters who agree as often as planned."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from list_studies import make_study
from tally import Study, World
from vector_studies import make_evidence

from recbias.core.dataset.attributes import Attributes
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.label_agreement import CohenKappa, KrippendorffAlpha

N_ITEMS = 300
POSITIVE = 0.4
"""The share of items of which both say 1, if they say the same."""

AGREEMENT = 0.6
"""Rater B says what A says with this chance, otherwise 0 or 1 by chance, as often as A does."""


def sample(seed: int) -> Evidence:
    rng = np.random.default_rng(seed)
    a, other = (rng.random((2, N_ITEMS)) < POSITIVE).astype(np.float64)
    b = np.where(rng.random(N_ITEMS) < AGREEMENT, a, other)
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


def compute_truths(_study: Study, _seed: int) -> Mapping[str, float]:
    """Both are 1 - (1 - AGREEMENT) · 2 q (1 - q) / (2 q (1 - q)), q the share of 1: AGREEMENT."""
    return {"": AGREEMENT}


STUDIES = (
    make_study(CohenKappa(a="a", b="b"), "cohen_kappa"),
    make_study(KrippendorffAlpha(labels=("a", "b")), "krippendorff_alpha"),
    make_study(
        KrippendorffAlpha(labels=("a", "b"), level="interval"), "krippendorff_alpha, interval"
    ),
)

WORLDS = (
    World(
        "labels of two raters",
        "planted chance-corrected agreement",
        STUDIES,
        sample,
        compute_truths,
    ),
)
