from __future__ import annotations

from recbias.core.facts import state, stating


def test_facts_of_a_block_are_its_own() -> None:
    state("lost", 1)
    with stating() as outer:
        state("a", 1)
        with stating() as inner:
            state("b", "x")
        state("a", 2)
    assert outer == {"a": 2}
    assert inner == {"b": "x"}
