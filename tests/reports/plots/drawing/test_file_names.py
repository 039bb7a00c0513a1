from __future__ import annotations

import pytest

from recbias.reports.plots.drawing.file_names import FileNames, file_stem


@pytest.mark.parametrize(
    ("said", "stem"),
    [("../../etc/passwd", "etc-passwd"), ("nDCG@10", "ndcg-10"), ("🦊", "figure"), ("", "figure")],
)
def test_file_names_are_plain(said: str, stem: str) -> None:
    assert file_stem(said) == stem


def test_no_name_is_given_twice() -> None:
    names = FileNames()
    assert [names.free("a!"), names.free("a?"), names.free("a")] == ["a", "a-2", "a-3"]
