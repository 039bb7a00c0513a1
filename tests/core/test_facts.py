from __future__ import annotations

from recbias.core.stage_context import collect_facts, record_fact


def test_facts_of_a_block_are_its_own() -> None:
    record_fact("lost", 1)
    with collect_facts() as outer:
        record_fact("a", 1)
        with collect_facts() as inner:
            record_fact("b", "x")
        record_fact("a", 2)
    assert outer == {"a": 2}
    assert inner == {"b": "x"}
