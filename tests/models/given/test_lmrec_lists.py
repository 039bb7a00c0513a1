from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from recbias.core.dataset import TrainingData
from recbias.core.evidence import check_lists
from recbias.core.queries import Queries
from recbias.data.lmrec import LMRecRelease, LMRecSentences
from recbias.models.given import LMRecLists
from support.files.lmrec_files import write_release

RNG = np.random.default_rng(0)


def create_data(folder: Path) -> tuple[Path, Queries, TrainingData]:
    path = write_release(folder)
    dataset = LMRecRelease().load(folder, RNG)
    data = TrainingData(dataset.interactions, users=dataset.users, items=dataset.items)
    return path, LMRecSentences().ask(dataset, RNG), data


def test_the_lists_are_those_of_the_file(tmp_path: Path) -> None:
    _, queries, data = create_data(tmp_path)
    lists = LMRecLists().fit(data, RNG).recommend(queries, 4, data)
    check_lists(lists, n_queries=4, seen=None, n_items=6, model="lmrec_lists")
    ids = np.append(data.train.item_ids.ids, "-")
    assert ids[lists.items].tolist() == [
        ["Pizza Place", "The Bar", "Chez Nous", "-"],
        ["Burger (1)", "Burger (2)", "Secret", "-"],
        ["The Bar", "Pizza Place", "Burger (1)", "-"],
        ["The Bar", "Burger (1)", "Burger (2)", "-"],
    ]
    assert np.isnan(lists.scores).all()


def test_prices_by_label_are_what_pandas_counts_in_the_file(tmp_path: Path) -> None:
    path, queries, data = create_data(tmp_path)
    lists = LMRecLists().fit(data, RNG).recommend(queries, 3, data)
    assert data.items is not None
    prices = data.items.frame["price_level"].to_numpy()[lists.items]
    raw = pd.read_csv(path)
    counted = raw.assign(price=raw["price"].astype(float)).groupby(["label", "price"]).size()
    # by hand, for $: white has The Bar, The Bar, Burger; black Burger, Burger, The Bar, Burger,
    # Burger. So black has 5 of the 8 places at $, white 3.
    for race, hand in {"white": 3, "black": 5}.items():
        mine = (queries.labels.frame["race"] == race).to_numpy()
        for level in (1.0, 2.0, 4.0):
            assert int((prices[mine] == level).sum()) == counted.get((race, level), 0)
        assert int((prices[mine] == 1.0).sum()) == hand
