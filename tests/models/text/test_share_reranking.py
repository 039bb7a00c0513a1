from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import MissingEvidence, NothingLeft, OutOfRange, UnknownColumn, UserError
from recbias.models.text.share_reranking import Rerank, create_selector
from recbias.models.text.text_ranking import ItemClasses
from recbias.numerics.sparse.topk import top_k
from support.commands import invoke_recbias
from support.worlds.small_worlds import make_interactions

# item 5 has no training row: the classes are 0 to 4, of which 0, 1, 2 cost 1, 3 costs 2, 4 nothing
TRAIN = make_interactions([(0, item) for item in range(5)], n_items=6)
PRICES = pd.DataFrame(
    {
        "price_level": [1.0, 1.0, 1.0, 2.0, np.nan, 2.0],
        "kind": ["a|b", "a", "b", "a", None, "a"],
        "blank": [None] * 6,
    }
)
DATA = TrainingData(TRAIN, items=Attributes(TRAIN.item_ids, PRICES))
CLASSES = ItemClasses.from_data(DATA)
SCORES = np.array([[-1.0, -2.0, -3.0, -4.0, -5.0]])


def select_columns(target: Literal["catalogue"] | Mapping[str, float], k: int = 5) -> list[int]:
    choose = create_selector(Rerank(attribute="price_level", target=target), CLASSES, DATA)
    selected, scores = choose(SCORES, k)
    np.testing.assert_allclose(scores[0], 1 / np.arange(1, k + 1), rtol=1e-6)
    lists: list[int] = selected[0].tolist()
    return lists


def test_without_a_target_the_highest_scores_are_selected() -> None:
    assert create_selector(None, CLASSES, DATA) is top_k


def test_target_shares_of_the_catalogue() -> None:
    # 3/5 cost 1, 1/5 cost 2, 1/5 have no price (of the classes; item 5 does not count)
    # rank 1: nobody short: 0; rank 2: price 1 is short of floor(1.2) = 1? it has 1: all below
    # their ceilings 2, 1, 1: 1; rank 3: floors 1, 0, 0, ceilings 2, 1, 1: price 1 is full: 3
    # rank 4: floors 2, 0, 0, ceilings 3, 1, 1: price 1 may have a third: 2; rank 5: the last
    assert select_columns("catalogue") == [0, 1, 3, 2, 4]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ({"1": 0.0, "2": 1.0}, [3, 0, 1, 2, 4]),
        ({"1": 0.5, "2": 0.5}, [0, 3, 1, 2, 4]),
        # what is left of 1 goes to price 1 and no price as 3 : 1, here 0.375 and 0.125; at rank 4
        # price 1 has its ceil(1.5) places already, price 2 has no item left, and 4 no price
        ({"2": 0.5}, [0, 3, 1, 4, 2]),
        # half for those without a price: of 2 places one
        ({"1": 0.5, "2": 0.0}, [0, 4, 1, 2, 3]),
    ],
)
def test_target_shares_by_name(target: Mapping[str, float], expected: list[int]) -> None:
    assert select_columns(target) == expected


def test_lists_with_too_few_items_are_padded() -> None:
    choose = create_selector(Rerank(attribute="price_level"), CLASSES, DATA)
    selected, scores = choose(np.array([[-1.0, -np.inf, -np.inf, -2.0, -np.inf]]), 3)
    assert selected.tolist() == [[0, 3, -1]]
    np.testing.assert_array_equal(scores, np.array([[1, 0.5, np.nan]], dtype=np.float32))


@pytest.mark.parametrize(
    ("rerank", "kind", "message"),
    [
        (Rerank(attribute="price"), UnknownColumn, "no column 'price'"),
        (Rerank(attribute="kind"), UnknownColumn, "2 values of 'kind'"),
        (Rerank(attribute="blank"), NothingLeft, "no item has a value of 'blank'"),
        (Rerank(attribute="price_level", target={"5": 0.1}), UnknownColumn, "value '5'"),
    ],
)
def test_targets_that_fit_no_item_are_errors(
    rerank: Rerank, kind: type[UserError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        create_selector(rerank, CLASSES, DATA)
    assert caught.value.where == "rerank"
    assert caught.value.remedy


def test_shares_that_do_not_add_up_to_one_are_errors() -> None:
    with pytest.raises(OutOfRange, match=r"add up to 1\.2"):
        Rerank(attribute="price_level", target={"1": 0.6, "2": 0.6})
    full = replace(DATA, items=Attributes(TRAIN.item_ids, PRICES.fillna({"price_level": 1.0})))
    with pytest.raises(OutOfRange, match=r"add up to 0\.9, and every value is named"):
        create_selector(
            Rerank(attribute="price_level", target={"1": 0.6, "2": 0.3}),
            CLASSES,
            full,
        )


def test_a_target_without_an_items_table_is_an_error() -> None:
    with pytest.raises(MissingEvidence, match="has no item attributes"):
        create_selector(Rerank(attribute="price_level"), CLASSES, replace(DATA, items=None))


SPEC = """
name: reranked
dataset: {{name: tables, items: items.csv, interactions: clicks.csv}}
models: [{{name: TFIDF-LR, rerank: {rerank}}}]
metrics: [ItemCoverage]
"""


@pytest.mark.parametrize(
    ("rerank", "message"),
    [
        ("{attribute: price, target: {'1': 1.4}}", "models[0].rerank.target"),
        ("{attribute: price, target: {'1': 0.9, '2': 0.9}}", "add up to 1.8"),
        ("{attribute: price, target: catalog}", "did you mean catalogue"),
        ("{target: catalogue}", "needs attribute"),
        ("{attribute: price, shares: {}}", "shares"),
    ],
)
def test_errors_in_a_spec_name_the_setting(tmp_path: Path, rerank: str, message: str) -> None:
    (tmp_path / "items.csv").write_text("item_id,price\ni1,1\n", encoding="utf-8")
    (tmp_path / "clicks.csv").write_text("user_id,item_id\nu1,i1\n", encoding="utf-8")
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC.format(rerank=rerank), encoding="utf-8")
    result = invoke_recbias("plan", spec, folder=tmp_path)
    assert result.code == 2
    assert message in result.err
