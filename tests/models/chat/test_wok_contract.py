"""WOK meets the contract of recommenders with a server that recommends unseen titles."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, TrainingData
from recbias.models.wok import WOK
from recbias.testing import check_recommender
from support.chat.chat_requests import make_model
from support.chat.chat_server import serve_chat
from support.worlds.film_worlds import TITLES, read_history, show, write_list
from support.worlds.small_worlds import make_interactions


def recommend_unseen(payload: dict[str, Any]) -> str:
    """Return as many unseen films as the prompt asks for."""
    asked = re.search(r"Recommend (\d+) films", payload["messages"][-1]["content"])
    assert asked is not None
    seen = read_history(payload)
    unseen = [show(film) for film in range(1, len(TITLES) + 1) if film not in seen]
    return write_list(unseen[: int(asked[1])])


@collect_warnings()
def test_wok_meets_the_contract_of_recommenders(rng: np.random.Generator) -> None:
    n_items = len(TITLES)
    pairs = [(user, item) for user in range(8) for item in rng.permutation(n_items)[:6].tolist()]
    pairs += [(8, item) for item in range(n_items - 1)]
    pairs += [(9, n_items - 1)]
    train = make_interactions(pairs, n_items=n_items)
    titles = pd.DataFrame({"title": [show(film) for film in range(1, n_items + 1)]})
    data = TrainingData(train, items=Attributes(train.item_ids, titles, "item"))
    with serve_chat(recommend_unseen) as server:
        check_recommender(WOK(llm=make_model(server, max_tokens=4096)), data=data)
