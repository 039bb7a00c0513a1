"""Lists of generated replies: invalid ranks, orders of candidates, and stated identities."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from list_studies import make_study
from scipy.stats import binom
from tally import Study, World
from text_studies import make_text_evidence

from recbias.core.dataset import AnyArray, Attributes, Queries, Vocabulary
from recbias.core.evidence import Evidence, RankedLists, Responses
from recbias.metrics.identity import IdentityEffect, ListOverlap, OverlapSpread
from recbias.metrics.labels import FIRST_SLOT, RANK, FirstSlotShare, OrderAgreement, Unmatched

N_QUERIES, K = 200, 10
INVALID = 0.2
"""The chance that a rank holds no item of the catalogue."""

N_CANDIDATES, N_ORDERS = 8, 4
STEADY, FIRST = 0.6, 0.2
"""The chances that a ranking is the same whatever the order shown, and that it is the order shown;
otherwise it is any order."""

N_TEMPLATES = 80
KEPT = {"f": 0.8, "m": 0.6, "neutral": 0.7}
"""The chance that an item of the neutral list is kept if an identity is stated, or none."""

ALIKE = dict.fromkeys(KEPT, 0.7)
SPREAD = 0.1
"""How far the chance of a template is from that of all, to either side."""


def sample_lists(seed: int, *, rival: bool = False) -> Evidence:
    """Lists in which some ranks hold items outside of the catalogue."""
    rng = np.random.default_rng([seed, int(rival)])
    is_invalid = rng.random((N_QUERIES, K)) < INVALID
    items = np.where(is_invalid, N_CANDIDATES, 0).astype(np.int32)
    scores = np.zeros(items.shape, dtype=np.float32)
    outside = np.array(["elsewhere"], dtype=object)
    lists = RankedLists(items, scores, outside)
    return make_reply_evidence(seed, number_queries(N_QUERIES), lists=lists)


def sample_orders(
    seed: int, steady: float = STEADY, first: float = FIRST, *, rival: bool = False
) -> Evidence:
    """Rankings of the candidates of each query, shown in several orders."""
    rng = np.random.default_rng([seed, int(rival)])
    shape = (N_QUERIES, N_ORDERS, N_CANDIDATES)
    shown, anyhow = (rng.random(shape).argsort(axis=2).argsort(axis=2) for _ in range(2))
    own = np.broadcast_to(rng.random(shape[::2]).argsort(axis=1).argsort(axis=1)[:, None], shape)
    by = rng.random(shape[:2])[..., None]
    ranks = np.where(by < steady, own, np.where(by < steady + first, shown, anyhow))
    queries = number_queries(N_QUERIES)
    at_first = np.take_along_axis(ranks, (shown == 0).argmax(axis=2)[..., None], axis=2)
    labels = pd.DataFrame(ranks.reshape(-1, N_CANDIDATES) + 1.0)
    labels.columns = pd.Index([f"{RANK}{code}" for code in range(N_CANDIDATES)])
    labels[FIRST_SLOT] = (at_first == 0).astype(np.float64).ravel()
    labels["order"] = np.tile(np.arange(1, N_ORDERS + 1), N_QUERIES)
    ids = np.repeat(queries.ids.ids, N_ORDERS)
    texts = np.full(ids.size, "", dtype=object)
    return make_reply_evidence(seed, queries, responses=Responses(ids, texts, texts, labels))


def sample_identities(
    seed: int, kept: Mapping[str, float] = KEPT, *, rival: bool = False
) -> Evidence:
    """Lists of prompts with either identity and without, and of the latter sampled again."""
    rng = np.random.default_rng([seed, int(rival)])
    shift = np.where(rng.random(N_TEMPLATES) < 0.5, -SPREAD, SPREAD)
    prompts = [("neutral", 1.0, 0.0), ("neutral", 1.0, 1.0), ("f", 0.0, 0.0), ("m", 0.0, 0.0)]
    lists = np.empty((N_TEMPLATES, len(prompts), K), dtype=np.int32)
    lists[:] = np.arange(lists.size).reshape(lists.shape)  # no item twice
    for column, (name, *_) in enumerate(prompts[1:], start=1):
        is_kept = rng.random((N_TEMPLATES, K)) < (kept[name] + shift)[:, None]
        lists[:, column] = np.where(is_kept, lists[:, 0], lists[:, column])
    names = [f"t{template:02d}" for template in range(N_TEMPLATES)]
    table = pd.DataFrame(
        {
            "template": np.repeat(np.array(names, dtype=object), len(prompts)),
            "gender": [None if name == "neutral" else name for name, *_ in prompts] * N_TEMPLATES,
            "neutral": [neutral for _, neutral, _ in prompts] * N_TEMPLATES,
            "sample": [again for *_, again in prompts] * N_TEMPLATES,
        }
    )
    items = lists.reshape(-1, K)
    ranked = RankedLists(items, np.zeros(items.shape, dtype=np.float32))
    queries = number_queries(len(table), table)
    return make_reply_evidence(seed, queries, n_items=lists.size, lists=ranked)


def number_queries(n: int, labels: pd.DataFrame | None = None) -> Queries:
    ids = Vocabulary(np.array([f"q{index}" for index in range(n)], dtype=object))
    frame = pd.DataFrame(index=range(n)) if labels is None else labels
    of_queries = Attributes(ids, frame, "query")
    return Queries(ids, of_queries, np.full(n, -1, dtype=np.int32), None, "prompt")


def make_reply_evidence(
    seed: int, queries: Queries, n_items: int = N_CANDIDATES, **facts: object
) -> Evidence:
    from dataclasses import replace

    item_ids = Vocabulary(np.array([f"i{index:05d}" for index in range(n_items)], dtype=object))
    evidence = make_text_evidence(seed, **facts)
    return replace(evidence, queries=queries, item_ids=item_ids)


def compute_truths(study: Study, _seed: int) -> Mapping[str, float]:
    """By formula: rankings that do not follow from one another have an expected tau of 0."""
    return {
        "": {
            "unmatched": K * INVALID,
            "order_agreement": STEADY**2,
            "first_slot_share": FIRST + (1 - FIRST) / N_CANDIDATES,
        }[study.name]
    }


def compute_null(study: Study, _seed: int) -> Mapping[str, float]:
    return {"": 0.0 if study.name == "order_agreement" else 1 / N_CANDIDATES}


def compute_truths_of_identities(
    study: Study, _seed: int, kept: Mapping[str, float] = KEPT
) -> Mapping[str, float]:
    """What the chances to keep an item say of the overlap, and of its difference."""
    f, m, again = (compute_overlap(kept[name]) for name in ("f", "m", "neutral"))
    if study.name == "list_overlap":
        return {"": (f + m) / 2, "gender=f": f, "gender=m": m, "control": again}
    if study.name == "overlap_spread":
        return {"": abs(f - m)}
    if study.name == "overlap_spread, std":
        return {"": abs(f - m) / 2}
    return {"": again - (f + m) / 2, "gender=f": again - f, "gender=m": again - m}


def compute_overlap(kept: float) -> float:
    """The expected Jaccard index: of K items, j are kept, so j of 2 K - j are common."""
    j: AnyArray = np.arange(K + 1)
    index = j / (2 * K - j)
    return float(np.mean([binom.pmf(j, K, kept + step) @ index for step in (-SPREAD, SPREAD)]))


OF_ORDERS = (
    make_study(OrderAgreement(), "order_agreement"),
    make_study(FirstSlotShare(), "first_slot_share"),
)
OF_IDENTITIES = (
    make_study(ListOverlap(label="gender"), "list_overlap"),
    make_study(IdentityEffect(label="gender"), "identity_effect"),
    make_study(OverlapSpread(label="gender", permutations=199), "overlap_spread"),
    make_study(
        OverlapSpread(label="gender", spread="std", permutations=199), "overlap_spread, std"
    ),
)

WORLDS = (
    World(
        "replies with invalid ranks",
        "planted probability",
        (make_study(Unmatched(), "unmatched"),),
        sample_lists,
        compute_truths,
        lambda seed: (sample_lists(seed), sample_lists(seed, rival=True)),
        plants="a rank is invalid with probability 0.2",
    ),
    World(
        "candidates in several orders",
        "planted probabilities",
        OF_ORDERS,
        sample_orders,
        compute_truths,
        lambda seed: (sample_orders(seed, 0.0, 0.0), sample_orders(seed, 0.0, 0.0, rival=True)),
        plants="6 of 10 rankings do not depend on the order shown, 2 repeat it",
    ),
    World(
        "candidates in several orders, no effect",
        "0, and 1 / number of candidates",
        OF_ORDERS,
        lambda seed: sample_orders(seed, 0.0, 0.0),
        compute_null,
        plants="nothing: every ranking is equally probable",
    ),
    World(
        "prompts that state an identity",
        "planted probabilities",
        OF_IDENTITIES,
        sample_identities,
        compute_truths_of_identities,
        lambda seed: (sample_identities(seed, ALIKE), sample_identities(seed, ALIKE, rival=True)),
        plants="an item is kept with probability 0.8 (f), 0.6 (m) or 0.7 (no identity)",
    ),
    World(
        "prompts that state an identity, no effect",
        "planted probabilities",
        OF_IDENTITIES[:2],
        lambda seed: sample_identities(seed, ALIKE),
        lambda study, seed: compute_truths_of_identities(study, seed, ALIKE),
        plants="nothing: the identities change the list as often as chance does",
    ),
)
