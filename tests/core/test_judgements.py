from __future__ import annotations

import pytest

from recbias.core.judgements import Pruned, is_judged, judged, judging


def test_nobody_listens() -> None:
    assert not is_judged()
    judged(1, 0.5)


def test_the_judge_is_told_inside_the_block_only() -> None:
    heard: list[tuple[int, float]] = []
    with judging(lambda *each: heard.append(each)):
        assert is_judged()
        judged(1, 0.25)
    judged(2, 0.5)
    assert heard == [(1, 0.25)]
    assert not is_judged()


def test_the_judge_may_end_the_training() -> None:
    def judge(epoch: int, figure: float) -> None:
        if figure < 0.1:
            raise Pruned

    with judging(judge), pytest.raises(Pruned):
        judged(3, 0.05)
