"""Several tests of one kind in a run."""

from __future__ import annotations

from pathlib import Path

import recbias
from support.specs import make_small_spec


def test_tests_that_differ_in_a_setting_are_told_apart_in_every_file(tmp_path: Path) -> None:
    signs = [{"name": "sign_flip", "permutations": n} for n in (100, 1000)]
    spec = make_small_spec(tests=[*signs, "paired_t"], report={"formats": ["md", "card"]})
    run = recbias.run(spec, out=tmp_path)
    of_metric = run.significance[run.significance["metric"] == "nDCG"]
    names = ["sign_flip(permutations=100)", "sign_flip(permutations=1000)", "paired_t"]
    assert of_metric["test"].tolist() == names
    assert (of_metric["family_size"] == 1).all()
    page = (run.folder / "report.md").read_text("utf-8")
    assert "sign-flip permutation test (permutations=1000)" in page
    assert recbias.verify(run.folder / "card.json", run).is_same
    alone = recbias.run({**spec, "tests": signs[1:], "name": "alone"}, out=tmp_path)
    assert alone.significance["test"].tolist() == ["sign_flip", "sign_flip"]
    again = run.significance[run.significance["test"] == names[1]]
    assert again["p"].tolist() == alone.significance["p"].tolist()
