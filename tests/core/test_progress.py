from __future__ import annotations

from recbias.core.stage_context import report_progress, stage_context, track_progress


def test_steps_are_reported_to_the_listener() -> None:
    heard: list[tuple[str, int, int]] = []
    with stage_context(on_progress=lambda *told: heard.append(told)):
        assert list(track_progress(["a", "b"], "epochs")) == ["a", "b"]
    assert heard == [("epochs", 0, 2), ("epochs", 1, 2), ("epochs", 2, 2)]


def test_without_a_listener_nothing_happens() -> None:
    report_progress("epochs", 1, 2)
    assert list(track_progress([1], "epochs")) == [1]
