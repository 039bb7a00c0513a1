from __future__ import annotations

from pathlib import Path

import pytest

from recbias.cli.describing import describe_datasets
from recbias.core.errors import UserError

TWO = """\
name: two
dataset:
  - {name: demo, label: few, n_users: 30, n_items: 20}
  - {name: demo, label: more, n_users: 1200, n_items: 20}
models: [MostPop]
metrics: [ARP]
"""


def test_every_dataset_of_a_spec_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.yaml").write_text(TWO)
    lines = list(describe_datasets("two.yaml", None))
    assert [line for line in lines if not line.startswith(" ")] == ["few:", "more:"]
    assert lines[1:3] == ["  counts:", "    users: 30"]
    assert "    users: 1,200" in lines


def test_numbers_are_rounded_and_long_texts_shortened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = list(describe_datasets("demo", None))
    sparsity = next(line for line in lines if "sparsity" in line)
    interactions = next(line for line in lines if line.strip().startswith("interactions:"))
    rows = int(interactions.rpartition(" ")[2].replace(",", ""))
    # 600 users and 300 items: 1 - rows / 180,000, in four digits
    assert float(sparsity.rpartition(" ")[2]) == pytest.approx(1 - rows / 180_000, abs=5e-5)
    assert "  reviews: none" in lines
    assert max(map(len, lines)) <= 90, "a long text is not shortened"
    assert not [line for line in lines if "{" in line or line != line.rstrip()]


def test_missing_dataset_is_a_user_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="ml-1m"):
        list(describe_datasets("ml-1m", tmp_path))
