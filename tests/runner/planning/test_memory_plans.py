"""Which built-in plug-ins say how much memory they need."""

from __future__ import annotations

import pytest

from recbias.registry import REGISTRIES

WITHOUT = {
    "recbole": "its processes are of another Python, whose memory is RecBole's",
    "lenskit/SLIM": "the number of its weights follows from the data, not from their sizes",
    "LMRec": "",
    "TFIDF-LR": "",
    "Encoder-LR": "",
    "WOK": "",
    "LMRerank": "",
    "ChatRecommender": "",
    "LMLikelihood": "",
    "language_model": "",
    "lists": "",
    "lmrec_lists": "",
    "vectors": "",
    "sentence_scores": "",
    "responses": "",
    "names": "",
    "causal_lm": "",
    "masked_lm": "",
    "column": "",
    "sentences": "",
    "llm_judge": "",
}
"""Those that do not, with the reason."""


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind in ("models", "rerankers", "detectors")
        for name in REGISTRIES[kind].table
    ],
)
def test_plug_ins_plan_their_memory(kind: str, name: str) -> None:
    has_plan = hasattr(REGISTRIES[kind].load(name), "plan_memory")
    assert has_plan != (name in WITHOUT)
