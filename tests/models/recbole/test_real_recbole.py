"""With the real RecBole, where it is installed or RECBIAS_RECBOLE_PYTHON names a Python of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.errors import PluginError
from recbias.core.evidence import RankedLists, rank_discounts
from recbias.models.linear import EASE
from recbias.models.recbole import RecBole, clean_environment, find_interpreter
from recbias.testing import make_checkerboard, query_all_users
from support.models.sequence_worlds import make_chain
from support.worlds.query_sets import make_queries

INTERPRETER = find_interpreter()

pytestmark = [
    pytest.mark.skipif(INTERPRETER is None, reason="no RecBole: set RECBIAS_RECBOLE_PYTHON"),
    pytest.mark.usefixtures("stage_warnings"),
]


def recommend(k: int = 4, **settings: Any) -> RankedLists:
    data = make_checkerboard()
    fitted = RecBole(**settings).fit(data, np.random.default_rng(0))
    return fitted.recommend(query_all_users(data), k, data)


def test_bpr_learns_the_colours_and_a_seed_repeats() -> None:
    config = {"learning_rate": 0.05, "train_batch_size": 32}
    settings: dict[str, Any] = {
        "model": "BPR",
        "epochs": 60,
        "embedding_size": 8,
        "config": config,
    }
    lists = recommend(**settings)
    same_colour = (lists.items[:40] - np.arange(40)[:, None]) % 2 == 0
    assert same_colour.mean() > 0.6  # by chance 4 of the 16 items that a user lacks
    assert (lists.items[40:] == -1).all()
    again = recommend(**settings)
    assert np.array_equal(lists.items, again.items)


def test_ease_equals_ours() -> None:
    data = make_checkerboard()
    ours = EASE(reg=20.0).fit(data, np.random.default_rng(0))
    theirs = recommend(6, model="EASE", config={"reg_weight": 20.0})
    expected = ours.recommend(query_all_users(data), 6, data)
    assert np.allclose(theirs.scores, expected.scores, atol=1e-5, equal_nan=True)
    gaps = np.diff(expected.scores[:40], axis=1)
    clear = np.abs(np.pad(gaps, ((0, 0), (1, 1)), constant_values=1)) > 1e-4
    is_clear = clear[:, 1:] & clear[:, :-1]
    is_clear[:, -1] = False  # the seventh item is not known
    assert np.array_equal(theirs.items[:40][is_clear], expected.items[:40][is_clear])


def test_a_sequential_model_learns_the_order() -> None:
    data, following = make_chain()
    model = RecBole(
        model="GRU4Rec",
        epochs=30,
        embedding_size=16,
        config={"learning_rate": 0.01, "train_batch_size": 64, "MAX_ITEM_LIST_LENGTH": 5},
    )
    fitted = model.fit(data, np.random.default_rng(0))
    lists = fitted.recommend(make_queries([f"u{user}" for user in range(60)]), 1, data)
    assert (lists.items[:, 0] == following).mean() > 0.95


EVALUATE = """
import json, sys
import numpy as np
np.float, np.float_, np.complex_, np.unicode_ = float, np.float64, np.complex128, np.str_
from recbole.evaluator.metrics import NDCG, Recall
hits, counts = map(np.array, json.load(sys.stdin))
config = {"topk": [hits.shape[1]], "metric_decimal_place": 9}
print(json.dumps([float(metric(config).metric_info(hits, counts)[:, -1].mean())
                  for metric in (NDCG, Recall)]))
"""


def test_recbole_evaluates_the_lists_as_we_do() -> None:
    assert INTERPRETER is not None
    lists = recommend(5, model="ItemKNN", config={"k": 8}).items[:40]
    relevant = np.arange(24) % 2 == (np.arange(40) % 2)[:, None]  # the colour of the user
    hits = relevant[np.arange(40)[:, None], lists]
    counts = relevant.sum(1)
    process = subprocess.run(
        [INTERPRETER.path, "-c", EVALUATE],
        input=json.dumps([hits.tolist(), counts.tolist()]),
        capture_output=True,
        text=True,
        check=True,
        env=clean_environment(),
    )
    ndcg, recall = json.loads(process.stdout.splitlines()[-1])
    weights = rank_discounts(5)
    assert ndcg == pytest.approx((hits @ weights).mean() / weights.sum(), abs=1e-6)
    assert recall == pytest.approx((hits.sum(1) / counts).mean(), abs=1e-6)


def test_the_process_ends_with_the_folder(tmp_path: Path) -> None:
    data = make_checkerboard()
    with pytest.raises(PluginError, match="its timeout"):
        RecBole(model="BPR", timeout=0.2).fit(data, np.random.default_rng(0))
