from __future__ import annotations

from recbias.core.progress import listening, report, steps


def test_steps_are_reported_to_the_listener() -> None:
    heard: list[tuple[str, int, int]] = []
    with listening(lambda *told: heard.append(told)):
        assert list(steps(["a", "b"], "epochs")) == ["a", "b"]
    assert heard == [("epochs", 0, 2), ("epochs", 1, 2), ("epochs", 2, 2)]


def test_without_a_listener_nothing_happens() -> None:
    report("epochs", 1, 2)
    assert list(steps([1], "epochs")) == [1]
