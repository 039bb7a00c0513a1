from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes, Vocabulary
from recbias.core.queries import Queries


def make_prompts() -> Queries:
    ids = Vocabulary(np.array(["q9", "q1", "q5"], dtype=object))
    labels = Attributes(ids, pd.DataFrame({"race": ["a", "b", None]}), "query")
    texts = np.array(["one", "two", "three"], dtype=object)
    return Queries(ids, labels, np.array([-1, 4, 2], dtype=np.int32), texts, "prompt")


@pytest.mark.parametrize("rows", [np.array([2, 0]), [2, 0]])
def test_taking_queries_keeps_labels_users_and_texts_aligned(rows: object) -> None:
    queries = make_prompts().take(np.asarray(rows))
    assert len(queries) == 2
    assert queries.ids.ids.tolist() == ["q5", "q9"]
    assert queries.users.tolist() == [2, -1]
    assert queries.labels.frame["race"].tolist() == [None, "a"]
    assert queries.labels.ids is queries.ids
    assert queries.texts is not None
    assert queries.texts.tolist() == ["three", "one"]
    assert queries.unit == "prompt"
