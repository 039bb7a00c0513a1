"""Every re-ranker against its definition in plain Python, and properties that all have."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.plugins import Candidates
from recbias.registry import REGISTRIES
from recbias.rerankers.fair import FAIR, CPFair, DetGreedy, adjust_alpha, compute_minimum
from recbias.rerankers.relevance import MMR, CalibratedPopularity, Calibration, XQuAD
from recbias.statistics.inequality import head
from support.worlds.candidate_worlds import make_candidates
from support.worlds.naive_selection import (
    compute_cosine,
    compute_js,
    compute_kl,
    select,
    share_values,
)

N_ITEMS, N_USERS, N_CANDIDATES, K = 14, 6, 9, 5
GENRES = ("drama", "comedy", "war", "noir")


def make_world(seed: int) -> tuple[Candidates, list[frozenset[str]]]:
    """Return candidates of users, some without history, and the genres of the items."""
    rng = np.random.default_rng(seed)
    genres = [
        frozenset(rng.choice(GENRES, rng.integers(0, 4), replace=False)) for _ in range(N_ITEMS)
    ]
    genres[0] = genres[0] or frozenset({"war"})
    orders = [rng.permutation(N_ITEMS).tolist() for _ in range(N_USERS)]
    lists = [order[:N_CANDIDATES] for order in orders]
    lengths = [int(rng.integers(0 if user == 0 else 1, 5)) for user in range(N_USERS)]
    histories = [
        order[N_CANDIDATES : N_CANDIDATES + n] for order, n in zip(orders, lengths, strict=True)
    ]
    scores = -np.sort(-np.round(rng.random((N_USERS, N_CANDIDATES)), 1), axis=1)
    cells = ["|".join(sorted(values)) or None for values in genres]
    return make_candidates(lists, histories, scores.tolist(), genres=cells), genres


def scale(candidates: Candidates, user: int) -> dict[int, float]:
    items, values = candidates.lists.items[user], candidates.lists.scores[user].astype(float)
    spread = values.max() - values.min()
    scaled = (values - values.min()) / spread if spread else np.ones_like(values)
    return dict(zip(items.tolist(), scaled.tolist(), strict=True))


def get_lists(reranker: Any, candidates: Candidates) -> list[list[int]]:
    with collect_warnings():
        positions = reranker.rerank(candidates, K)
    rows = np.arange(N_USERS)[:, None]
    lists: list[list[int]] = candidates.lists.items[rows, positions].tolist()
    return lists


def get_histories(candidates: Candidates) -> list[list[int]]:
    return [candidates.histories[[user]].indices.tolist() for user in range(N_USERS)]


@pytest.mark.parametrize(("seed", "strength"), [*itertools.product(range(8), (0.3, 0.8, 1.0))])
def test_calibration_is_that_of_the_paper(seed: int, strength: float) -> None:
    candidates, genres = make_world(seed)
    lists = get_lists(Calibration(attribute="genres", strength=strength), candidates)
    for user, history in enumerate(get_histories(candidates)):
        scores = scale(candidates, user)
        items = candidates.lists.items[user].tolist()
        if not any(genres[item] for item in history):
            assert lists[user] == items[:K]
            continue
        p = share_values(history, genres)

        def objective(chosen: list[int], item: int, p: Any = p, scores: Any = scores) -> float:
            q = (
                share_values([*chosen, item], genres)
                if any(genres[i] for i in [*chosen, item])
                else {}
            )
            total = float(sum(scores[each] for each in [*chosen, item]))
            return (1 - strength) * total - strength * compute_kl(p, q)

        assert lists[user] == select(items, K, objective), user


@pytest.mark.parametrize(("seed", "strength"), [*itertools.product(range(8), (0.3, 0.9))])
def test_calibrated_popularity_is_that_of_the_paper(seed: int, strength: float) -> None:
    candidates, _ = make_world(seed)
    lists = get_lists(CalibratedPopularity(strength=strength), candidates)
    counts = candidates.data.train.item_counts()
    popular, others = head(counts, 0.2), head(counts, 0.8)
    groups = [
        frozenset({"H" if popular[i] else "M" if others[i] else "T"}) for i in range(N_ITEMS)
    ]
    for user, history in enumerate(get_histories(candidates)):
        scores = scale(candidates, user)
        items = candidates.lists.items[user].tolist()
        p = share_values(history, groups) if history else None

        def objective(chosen: list[int], item: int, p: Any = p, scores: Any = scores) -> float:
            total = float(sum(scores[each] for each in [*chosen, item]))
            q = share_values([*chosen, item], groups)
            return total if p is None else (1 - strength) * total - strength * compute_js(p, q)

        assert lists[user] == select(items, K, objective), user


@pytest.mark.parametrize(("seed", "strength"), [*itertools.product(range(8), (0.3, 0.9))])
def test_mmr_is_that_of_the_paper(seed: int, strength: float) -> None:
    candidates, genres = make_world(seed)
    lists = get_lists(MMR(attribute="genres", strength=strength), candidates)
    for user in range(N_USERS):
        scores = scale(candidates, user)

        def objective(chosen: list[int], item: int, scores: Any = scores) -> float:
            similar = [compute_cosine(genres[item], genres[other]) for other in chosen]
            return float((1 - strength) * scores[item] - strength * max(similar, default=0.0))

        assert lists[user] == select(candidates.lists.items[user].tolist(), K, objective), user


@pytest.mark.parametrize(("seed", "form"), [*itertools.product(range(8), ("smooth", "binary"))])
def test_xquad_is_that_of_the_paper(seed: int, form: Any) -> None:
    candidates, _ = make_world(seed)
    lists = get_lists(XQuAD(strength=0.6, form=form, head=0.6), candidates)
    is_head = head(candidates.data.train.item_counts(), 0.6)
    for user, history in enumerate(get_histories(candidates)):
        scores = scale(candidates, user)

        def objective(
            chosen: list[int], item: int, history: Any = history, scores: Any = scores
        ) -> float:
            if not history:
                return float(scores[item])
            same = [is_head[each] == is_head[item] for each in chosen]
            covered = (any(same) if form == "binary" else np.mean(same)) if same else 0.0
            preference = np.mean([is_head[each] == is_head[item] for each in history])
            return float(0.4 * scores[item] + 0.6 * preference * (1 - covered))

        assert lists[user] == select(candidates.lists.items[user].tolist(), K, objective), user


@pytest.mark.parametrize(("seed", "share"), [*itertools.product(range(6), (0.4, 0.8))])
def test_fa_ir_is_that_of_the_paper(seed: int, share: float) -> None:
    candidates, genres = make_world(seed)
    lists = get_lists(FAIR(attribute="genres", protected="war", share=share), candidates)
    minimum = compute_minimum(K, share, adjust_alpha(K, share, 0.1))
    for user in range(N_USERS):
        items = candidates.lists.items[user].tolist()
        protected = [item for item in items if "war" in genres[item]]
        others = [item for item in items if "war" not in genres[item]]
        expected: list[int] = []
        for least in minimum:
            n = sum("war" in genres[item] for item in expected)
            takes_protected = protected and (
                n < least or not others or items.index(protected[0]) < items.index(others[0])
            )
            expected.append((protected if takes_protected else others).pop(0))
        assert lists[user] == expected, user


@pytest.mark.parametrize("seed", range(12))
def test_det_greedy_is_that_of_the_paper(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = [*range(4), *rng.integers(0, 4, N_ITEMS - 4).tolist()]
    lists = [rng.permutation(N_ITEMS)[:N_CANDIDATES].tolist() for _ in range(N_USERS)]
    parts = rng.integers(0, 5, 4) + np.eye(4, dtype=int)[0]
    shares = (parts / parts.sum()).tolist()
    candidates = make_candidates(lists, [[0]] * N_USERS, genres=[GENRES[code] for code in groups])
    target = dict(zip(GENRES, shares, strict=True))
    found = get_lists(DetGreedy(attribute="genres", target=target), candidates)
    for user, items in enumerate(lists):
        expected: list[int] = []
        for rank in range(1, K + 1):
            counts = np.bincount([groups[item] for item in expected], minlength=4)
            left = [item for item in items if item not in expected]
            fewest, most = (
                [item for item in left if counts[groups[item]] < places[groups[item]]]
                for places in (
                    [math.floor(share * rank + 1e-9) for share in shares],
                    [math.ceil(share * rank - 1e-9) for share in shares],
                )
            )
            expected.append((fewest or most or left)[0])
        assert found[user] == expected, user


PLAIN: list[Any] = [
    Calibration(attribute="genres", strength=0),
    CalibratedPopularity(strength=0),
    MMR(attribute="genres", strength=0),
    XQuAD(strength=0),
    XQuAD(strength=0, form="binary"),
    FAIR(attribute="genres", protected="war", share=0),
    CPFair(strength=0),
]
"""Re-rankers that change nothing."""


@pytest.mark.parametrize("reranker", PLAIN, ids=lambda reranker: type(reranker).__name__)
def test_strength_0_is_the_list_of_the_model(reranker: Any) -> None:
    for seed in range(5):
        candidates, _ = make_world(seed)
        assert get_lists(reranker, candidates) == candidates.lists.items[:, :K].tolist()


def test_there_is_one_for_each_dial() -> None:
    dials = {name: REGISTRIES["rerankers"].load(name) for name in REGISTRIES["rerankers"].table}
    plain = {type(reranker) for reranker in PLAIN}
    assert {cls for cls in dials.values() if getattr(cls, "dial", "")} == plain
