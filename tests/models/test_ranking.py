"""Lists are stored as they come: an interrupted stage ranks only those that it lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from recbias.core.context import collect_warnings, stage_context
from recbias.core.dataset import AnyArray, Codes, TrainingData
from recbias.core.errors import BrokenContract, TooLittleMemory
from recbias.core.evidence import RankedLists
from recbias.core.plugins import FittedRecommender
from recbias.kernels import topk
from recbias.models import gpu, ranking
from recbias.models import ranking as score_blocks
from recbias.models.fitted import FittedFactors, FittedItemWeights
from recbias.models.gpu import Ranking, count_available_bytes, top_k
from recbias.models.knn import ItemKNN, UserKNN
from recbias.models.linear import EASE
from recbias.models.ranking import rank_by_scores, rank_rows, rank_tiles
from support.models.checkpoints import Interrupted, MemoryStore
from support.models.recommending import make_random_data, query_all_users
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

SCORES = np.array([[5, 4, 3, 2], [1, 1, 1, 1], [0, np.nan, 2, -np.inf]], dtype=np.float32)


def create_data() -> TrainingData:
    """u0 has i0, u1 has i0 and i2, u2 has i0; u3 and i3 have no training row."""
    return TrainingData(make_interactions([(0, 0), (1, 0), (1, 2), (2, 1)], n_users=4, n_items=4))


def look_up_scores(users: Codes) -> AnyArray:
    return SCORES[users]


def test_history_noncandidates_and_nan_are_excluded() -> None:
    lists = rank_by_scores(look_up_scores, make_queries(["a", "b", "c"]), 3, create_data())
    # u0: neither i0 (history) nor i3 (no candidate): i1 with 4, i2 with 3;  u1: i1;  u2: i2 and i0
    assert lists.items.tolist() == [[1, 2, -1], [1, -1, -1], [2, 0, -1]]
    expected = [[4, 3, np.nan], [1, np.nan, np.nan], [2, 0, np.nan]]
    np.testing.assert_array_equal(lists.scores, np.array(expected, dtype=np.float32))


@pytest.mark.parametrize("k", [1, 7, 60])
def test_compiled_loops_give_the_same_lists(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, k: int
) -> None:
    data = make_random_data(rng)
    queries = query_all_users(data)
    scores = rng.integers(-3, 4, (60, 45)).astype(np.float32)  # many ties
    scores[rng.random(scores.shape) < 0.1] = np.nan
    scores[rng.random(scores.shape) < 0.1] = -np.inf
    models: list[FittedRecommender] = [
        ItemKNN(neighbors=5).fit(data, rng),
        UserKNN(neighbors=5).fit(data, rng),
        EASE(reg=5.0).fit(data, rng),
    ]
    found = []
    for least in (0, np.inf):
        monkeypatch.setattr(topk, "MIN_SCORES", least)
        lists = [rank_by_scores(lambda users: scores[users], queries, k, data)]
        found.append([*lists, *(model.recommend(queries, k, data) for model in models)])
    for compiled, plain in zip(*found, strict=True):
        assert np.array_equal(compiled.items, plain.items)
        assert np.array_equal(compiled.scores, plain.scores, equal_nan=True)


@pytest.mark.parametrize("k", [1, 7, 60])
def test_tiles_give_the_same_lists(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, k: int
) -> None:
    data = make_random_data(rng)
    scores = rng.integers(-3, 4, (60, 45)).astype(np.float32)  # many ties
    scores[rng.random(scores.shape) < 0.1] = np.nan
    scores[rng.random(scores.shape) < 0.1] = -np.inf
    users = np.arange(-1, 59, dtype=np.int32)
    plain = rank_rows(lambda rows: scores[rows], users, k, data)
    for n_rows, n_items in ((60, 45), (7, 4), (1, 1), (128, 2048)):
        monkeypatch.setattr(ranking, "TILE_ROWS", n_rows)
        monkeypatch.setattr(ranking, "TILE_ITEMS", n_items)
        tiles = rank_tiles(
            lambda rows, first, last: scores[rows, first:last].copy(), users, k, data
        )
        assert np.array_equal(tiles.items, plain.items)
        assert np.array_equal(tiles.scores, plain.scores, equal_nan=True)


CPU = torch.device("cpu")


def score_products(state: Mapping[str, Any], users: Any) -> Any:
    return state["p"][users] @ state["q"]


def sample_integer_state(rng: np.random.Generator, data: TrainingData) -> dict[str, Any]:
    """Sample integers, so that products are exact and ties are frequent on every device."""
    shapes = {"p": (data.train.n_users, 3), "q": (3, data.train.n_items)}
    return {name: rng.integers(-2, 3, shape).astype(np.float32) for name, shape in shapes.items()}


class Recorder:
    """Records the block sizes and runs out of memory for blocks of more than ``max_users``."""

    def __init__(self, max_users: int = 10**9) -> None:
        self.max_users, self.sizes = max_users, [0]

    def __call__(self, state: Mapping[str, Any], users: Any) -> Any:
        self.sizes.append(len(users))
        if len(users) > self.max_users:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
        return score_products(state, users)


@pytest.mark.parametrize("memory_limit", [None, 1, 40_000])
@pytest.mark.parametrize("k", [1, 7, 100])
def test_tensors_and_arrays_give_the_same_lists(
    rng: np.random.Generator, k: int, memory_limit: int | None
) -> None:
    data = make_random_data(rng)
    ranking = Ranking(
        score_products, sample_integer_state(rng, data), "cpu", memory_limit=memory_limit
    )
    expected = ranking.lists(query_all_users(data), k, data)
    device_lists = ranking.rank_on_device(CPU, query_all_users(data), k, data)
    assert np.array_equal(device_lists.items, expected.items)
    np.testing.assert_array_equal(device_lists.scores, expected.scores)


@pytest.mark.parametrize("max_users", [1, 2, 5, 29])
def test_block_is_halved_when_memory_runs_out(rng: np.random.Generator, max_users: int) -> None:
    data = make_random_data(rng)
    state, recorder = sample_integer_state(rng, data), Recorder(max_users)
    device_lists = Ranking(recorder, state, "cpu").rank_on_device(
        CPU, query_all_users(data), 7, data
    )
    expected = Ranking(score_products, state, "cpu").lists(query_all_users(data), 7, data)
    assert np.array_equal(device_lists.items, expected.items)
    failed = [size for size in recorder.sizes if size > max_users]
    assert len(failed) <= 6  # the size is halved each time, and no size fails twice


def test_out_of_memory_error_has_a_remedy(rng: np.random.Generator) -> None:
    data = make_random_data(rng)
    ranking = Ranking(Recorder(max_users=0), sample_integer_state(rng, data), "cpu")
    with pytest.raises(TooLittleMemory, match="lists: the device has too little mem") as caught:
        ranking.rank_on_device(CPU, query_all_users(data), 7, data)
    assert caught.value.where == "device"
    assert caught.value.remedy == "set device: cpu"


@pytest.mark.gpu
def test_gpu_and_cpu_give_the_same_lists(rng: np.random.Generator) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    data = make_random_data(rng)
    state = sample_integer_state(rng, data)
    expected = Ranking(score_products, state, "cpu").lists(query_all_users(data), 7, data)
    device_lists = Ranking(score_products, state, "cuda").lists(query_all_users(data), 7, data)
    assert np.array_equal(device_lists.items, expected.items)
    np.testing.assert_array_equal(device_lists.scores, expected.scores)
    assert 0 < count_available_bytes(torch.device("cuda")) <= torch.cuda.mem_get_info()[1]


USERS = np.array([[1, 0], [2, 1], [np.nan, np.nan]], dtype=np.float32)


ITEMS = np.array([[1, 1], [0, 3], [2, 0], [np.nan, 0]], dtype=np.float32)


BIAS = np.array([0, 0, -4, 0], dtype=np.float32)


def create_data_of_factor_model() -> TrainingData:
    return TrainingData(make_interactions([(0, 3), (1, 0), (1, 1), (2, 2)], n_users=3, n_items=4))


@pytest.mark.parametrize(
    ("bias", "items", "scores"),
    [
        # u0 = (1, 0): i0 1, i1 0, i2 2;  u1 = (2, 1) has i0 and i1: i2 4
        (None, [[2, 0, 1], [2, -1, -1], [-1, -1, -1]], [[2, 1, 0], [4, np.nan, np.nan]]),
        (BIAS, [[0, 1, 2], [2, -1, -1], [-1, -1, -1]], [[1, 0, -2], [0, np.nan, np.nan]]),
    ],
)
def test_scores_are_dot_products_and_nan_vectors_have_no_score(
    bias: np.ndarray | None, items: list[list[int]], scores: list[list[float]]
) -> None:
    lists = FittedFactors(USERS, ITEMS, bias).recommend(
        make_queries(["a", "b", "c"]), 3, create_data_of_factor_model()
    )
    assert lists.items.tolist() == items
    np.testing.assert_array_equal(lists.scores[:2], np.array(scores, dtype=np.float32))


# W_ji: item 0 has the weight 2 for item 1 and 1 for item 2; item 1 has the weight 5 for item 2
WEIGHTS = np.array([[0, 2, 1, 0], [0, 0, 5, 0], [0, 0, 0, 0], [0, 0, 0, 0]], dtype=np.float64)


def create_data_of_item_weight_model() -> TrainingData:
    pairs = [(0, 0), (1, 0), (1, 1), (2, 2), (2, 3)]
    return TrainingData(make_interactions(pairs, n_users=4, n_items=4))


@pytest.mark.parametrize("make", [np.asarray, csr_array, coo_array])
def test_scores_are_sums_of_weights_over_the_history(make: type) -> None:
    lists = FittedItemWeights.from_matrix(make(WEIGHTS)).recommend(
        make_queries(["a", "b"]), 3, create_data_of_item_weight_model()
    )
    # u0 has 0: 1 -> 2, 2 -> 1, 3 -> 0;   u1 has 0 and 1: 2 -> 1 + 5, 3 -> 0
    assert lists.items.tolist() == [[1, 2, 3], [2, 3, -1]]
    np.testing.assert_array_equal(
        lists.scores, np.array([[2, 1, 0], [6, 0, np.nan]], dtype=np.float32)
    )


TENSORS_CPU = torch.device("cpu")


@pytest.mark.parametrize("shape", [(1, 4), (2, 3), (2, 5)])
def test_wrong_score_shape_raises_broken_contract(shape: tuple[int, int]) -> None:
    with pytest.raises(BrokenContract, match=r"scores have shape \(\d, \d\), expected \(2, 4\)"):
        rank_by_scores(lambda users: np.zeros(shape), make_queries(["a", "b"]), 1, create_data())


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 300),
    k=st.integers(1, 12),
    n_values=st.sampled_from([2, 20, 10**6]),
    special=st.sampled_from([0.0, 0.3, 0.97]),
)
def test_groups_of_columns_select_the_same_scores(
    seed: int, n: int, k: int, n_values: int, special: float
) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(-n_values, n_values, (5, n)).astype(np.float32)
    is_special = rng.random(scores.shape) < special
    scores[is_special] = rng.choice([-np.inf, np.inf, np.nan], is_special.sum(), p=[0.8, 0.1, 0.1])
    expected = top_k(torch.tensor(scores), k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu, "GROUP", 8)
        grouped = torch.tensor(scores)
        size = min(k, n)
        columns = gpu._select_by_groups(grouped, size).sort(dim=1).values
        others = gpu._select_largest(gpu._replace_special(torch.tensor(scores)), size)
    others = others.sort(dim=1).values
    is_infinite = torch.isneginf(gpu._replace_special(torch.tensor(scores)))
    for row in range(5):
        found, right = (
            [int(column) for column in part[row] if not is_infinite[row, column]]
            for part in (columns, others)
        )
        assert found == right
        assert len(found) == int((expected[0][row] >= 0).sum())


Rank = Callable[[Callable[[AnyArray], AnyArray], AnyArray], RankedLists]


@pytest.fixture(params=["processor", "device"])
def rank(request: pytest.FixtureRequest, rng: np.random.Generator) -> Rank:
    """Ranks with a function of users, in blocks of eight."""
    data = make_random_data(rng)
    queries, n_bytes = query_all_users(data), 8 * data.train.n_items

    def rank_on_processor(score: Any, scores: AnyArray) -> RankedLists:
        limit = n_bytes * score_blocks.BYTES_PER_SCORE * 2
        return rank_by_scores(
            lambda users: score(scores[users]), queries, 5, data, memory_limit=limit
        )

    def rank_on_device(score: Any, scores: AnyArray) -> RankedLists:
        import torch

        ranking = Ranking(
            lambda state, users: score(state["scores"][users]),
            {"scores": scores},
            "cpu",
            memory_limit=n_bytes * score_blocks.BYTES_PER_SCORE,
        )
        return ranking.rank_on_device(torch.device("cpu"), queries, 5, data)

    return rank_on_processor if request.param == "processor" else rank_on_device


def test_an_interrupted_ranking_goes_on(rank: Rank, rng: np.random.Generator) -> None:
    scores = rng.random((60, 45), dtype=np.float32)
    n_ranked = 0

    def count(block: Any) -> Any:
        nonlocal n_ranked
        n_ranked += len(block)
        return block

    whole = rank(count, scores)
    n_all = n_ranked
    store = MemoryStore(2)
    with stage_context(checkpoint_store=store, writes_lists=True):
        with pytest.raises(Interrupted):
            rank(count, scores)
        n_stored, n_ranked = len(store.arrays["items"]), 0
        resumed = rank(count, scores)
    assert 0 < n_stored < n_all
    assert n_ranked == n_all - n_stored
    assert np.array_equal(resumed.items, whole.items)
    assert np.array_equal(resumed.scores, whole.scores, equal_nan=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda items, scores: (items[:, :3], scores[:, :3]),
        lambda items, scores: (np.tile(items, (9, 1)), np.tile(scores, (9, 1))),
        lambda items, scores: (items, scores[:-1]),
        lambda items, scores: (items.astype(np.float64), scores),
        lambda items, scores: (items.astype(str), scores),
        lambda items, scores: (items[0, 0], scores),
    ],
    ids=["shorter lists", "more lists", "missing scores", "numbers", "texts", "one item"],
)
def test_a_checkpoint_of_other_lists_is_not_used(
    rank: Rank, rng: np.random.Generator, change: Any
) -> None:
    scores = rng.random((60, 45), dtype=np.float32)
    whole, store = rank(lambda block: block, scores), MemoryStore()
    items, values = change(whole.items[:8], whole.scores[:8])
    store.arrays = {"items": items, "scores": values}
    with stage_context(checkpoint_store=store, writes_lists=True), collect_warnings() as warnings:
        resumed = rank(lambda block: block, scores)
    assert "the checkpoint holds other lists than these; all queries are ranked again" in warnings
    assert np.array_equal(resumed.items, whole.items)
    assert np.array_equal(resumed.scores, whole.scores, equal_nan=True)
