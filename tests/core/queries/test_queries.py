from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.queries.queries import Queries


def prompts() -> Queries:
    ids = Vocabulary(np.array(["q9", "q1", "q5"], dtype=object))
    labels = Attributes(ids, pd.DataFrame({"race": ["a", "b", None]}), "query")
    texts = np.array(["one", "two", "three"], dtype=object)
    return Queries(ids, labels, np.array([-1, 4, 2], dtype=np.int32), texts, "prompt")


@pytest.mark.parametrize("rows", [np.array([2, 0]), [2, 0]])
def test_taking_some_keeps_all_parts_aligned(rows: object) -> None:
    taken = prompts().take(np.asarray(rows))
    assert len(taken) == 2
    assert taken.ids.ids.tolist() == ["q5", "q9"]
    assert taken.users.tolist() == [2, -1]
    assert taken.labels.frame["race"].tolist() == [None, "a"]
    assert taken.labels.ids is taken.ids
    assert taken.texts is not None
    assert taken.texts.tolist() == ["three", "one"]
    assert taken.unit == "prompt"


def test_queries_without_texts_have_none_after_taking() -> None:
    ids = Vocabulary.of(["u1", "u2"])
    labels = Attributes(ids, pd.DataFrame(index=range(2)), "query")
    users = Queries(ids, labels, np.arange(2, dtype=np.int32))
    assert users.take(np.array([1])).texts is None
    assert users.take(np.array([1])).ids.ids.tolist() == ["u2"]
    assert len(users.take(np.array([], dtype=np.intp))) == 0
