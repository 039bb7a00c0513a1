from __future__ import annotations

from pathlib import Path

import pytest

from recbias.cli.runs import chosen_formats, find_run
from recbias.core.errors import MissingRun, UnknownName


def test_a_run_is_found_by_its_folder_and_by_its_experiment(finished: Path) -> None:
    out = finished / "results"
    latest = (out / "one" / "latest").resolve()
    assert find_run("one", out) == latest
    assert find_run(str(latest), Path("elsewhere")) == latest
    assert find_run(str(out / "one"), Path("elsewhere")) == latest


def test_a_name_that_is_no_run_suggests_the_nearest(finished: Path) -> None:
    with pytest.raises(MissingRun, match="neither a run folder nor") as caught:
        find_run("tow", finished / "results")
    assert caught.value.remedy == "did you mean two?"


@pytest.mark.parametrize("text", ["md,html", " md , html ", "md,html,"])
def test_formats_are_named_with_commas(text: str) -> None:
    assert chosen_formats(text, ("csv", "md", "html")) == ["md", "html"]


def test_an_unknown_format_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="no format is called 'htlm'") as caught:
        chosen_formats("md,htlm", ("csv", "md", "html"))
    assert caught.value.remedy == "did you mean html?"
