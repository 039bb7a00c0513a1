"""Files made elsewhere that cannot be measured: said at their place of the spec."""

from __future__ import annotations

import json
from pathlib import Path

from commands import inside

SENTENCES = (
    "sentence_id,pair_id,group,perplexity\n"
    "s1,p1,T1,3\ns2,p1,T2,1\ns3,p2,T1,5\ns4,p2,T2,4\ns5,p3,T1,9\ns6,p3,T2,2\n"
)
GAP = """\
name: gap
dataset: tables
models:
  - {name: sentence_scores, label: ours, path: scores.csv}
metrics:
  - perplexity_gap
"""


def test_what_a_metric_finds_amiss_has_its_place_in_the_spec(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text(SENTENCES)
    (tmp_path / "gap.yaml").write_text(GAP + "  - {name: perplexity_gap, label: x, by: cat}\n")
    said = inside("run", "gap.yaml", folder=tmp_path)
    assert said.code == 2, said.err
    found = "gap.yaml:7:5: metrics[1]: the sentences have no column 'cat'"
    assert found in " ".join(said.err.split())
    manifest = json.loads((tmp_path / "results/gap/latest/manifest.json").read_text())
    assert [each["message"] for each in manifest["failures"]] == [found]


def test_sentences_without_partners_are_an_error(tmp_path: Path) -> None:
    lonely = SENTENCES.replace("p1,T2", "p7,T2").replace("p2,T2", "p8,T2").replace("p3,T2", ",T2")
    (tmp_path / "scores.csv").write_text(lonely)
    (tmp_path / "gap.yaml").write_text(GAP)
    said = inside("run", "gap.yaml", folder=tmp_path)
    assert said.code == 2, said.err
    assert "metrics[0]: none of the 6 sentences" in " ".join(said.err.split())
    assert "'s1'" in said.err
