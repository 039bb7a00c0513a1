from __future__ import annotations

import pytest

from recbias.reports.plots.drawing.file_names import FileNames, make_stem


@pytest.mark.parametrize(
    ("text", "stem"),
    [("../../etc/passwd", "etc-passwd"), ("nDCG@10", "ndcg-10"), ("🦊", "figure"), ("", "figure")],
)
def test_file_names_are_plain(text: str, stem: str) -> None:
    assert make_stem(text) == stem


def test_file_names_are_unique() -> None:
    names = FileNames()
    assert [names.free("a!"), names.free("a?"), names.free("a")] == ["a", "a-2", "a-3"]
