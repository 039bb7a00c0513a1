from __future__ import annotations

import numpy as np

from recbias.core.evidence import Responses, SentenceScores, make_empty_ids


def test_sentences_and_responses_are_counted() -> None:
    ids = np.array(["s1", "s2"], dtype=object)
    groups = np.array(["T1", "T2"], dtype=object)
    pairs = np.array(["p", "p"], dtype=object)
    assert len(SentenceScores(ids, pairs, groups, np.array([3.0, 4.0]))) == 2
    assert len(Responses(ids, ids, np.array([None, "x"], dtype=object))) == 2
    assert len(Responses(make_empty_ids(), make_empty_ids(), make_empty_ids())) == 0
