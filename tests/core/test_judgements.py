from __future__ import annotations

import pytest

from recbias.core.stage_context import (
    Pruned,
    has_validation_listener,
    report_validation,
    stage_context,
)


def test_nobody_listens() -> None:
    assert not has_validation_listener()
    report_validation(1, 0.5)


def test_the_judge_is_told_inside_the_block_only() -> None:
    heard: list[tuple[int, float]] = []
    with stage_context(on_validation=lambda *each: heard.append(each)):
        assert has_validation_listener()
        report_validation(1, 0.25)
    report_validation(2, 0.5)
    assert heard == [(1, 0.25)]
    assert not has_validation_listener()


def test_the_judge_may_end_the_training() -> None:
    def judge(epoch: int, figure: float) -> None:
        if figure < 0.1:
            raise Pruned

    with stage_context(on_validation=judge), pytest.raises(Pruned):
        report_validation(3, 0.05)
