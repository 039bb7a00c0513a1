from __future__ import annotations

from pathlib import Path

import pytest

from recbias.cli.store import age_seconds
from recbias.core.errors import WrongType
from support.commands import inside, recbias, small_spec


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90m", 5400.0), ("12h", 43200.0), ("30d", 2592000.0), ("2w", 1209600.0), (None, 0.0)],
)
def test_ages_are_written_short(text: str | None, seconds: float) -> None:
    assert age_seconds(text) == seconds


@pytest.mark.parametrize("text", ["30", "d", "-3d", "3 days", ""])
def test_what_is_no_age_is_refused(text: str) -> None:
    with pytest.raises(WrongType, match="is not an age"):
        age_seconds(text)


def test_cleaning_empties_the_store_and_leaves_the_runs(tmp_path: Path) -> None:
    spec = small_spec(tmp_path)
    assert inside("run", spec, "--quiet", folder=tmp_path).code == 0
    results = tmp_path / "results"
    before = sorted(results.glob("store/??/*"))
    dry = inside("clean", "--dry-run", folder=tmp_path)
    assert "would remove" in dry.out
    assert sorted(results.glob("store/??/*")) == before
    young = inside("clean", "--older-than", "1d", folder=tmp_path)
    assert "nothing to remove" in young.out
    wrong = inside("clean", "--older-than", "soon", folder=tmp_path)
    assert wrong.code == 2
    assert "help: write 30d, 12h, 90m or 2w" in wrong.err
    gone = recbias("clean", folder=tmp_path)
    assert gone.code == 0
    assert not sorted(results.glob("store/??/*"))
    assert (results / "small" / "latest" / "metrics.csv").is_file()
    assert inside("run", spec, "--quiet", folder=tmp_path).code == 0
