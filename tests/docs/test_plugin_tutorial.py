from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recbias import api
from recbias.testing import check_metric

PAGE = Path(__file__).parents[2] / "docs" / "plugins-of-your-own.md"

SHORT_METRIC = '''\
from recbias.plugin import Evidence, Measurement, dataclass, np


@dataclass(frozen=True)
class LongTailShare:
    """The share of each list with fewer training interactions than the median item."""

    needs, direction, unit = frozenset({"lists", "train"}), "higher", "query"

    def measure(self, evidence: Evidence) -> list[Measurement]:
        """Return the share of each query."""
        is_rare = evidence.popularity < np.median(evidence.popularity)
        return [evidence.measure_queries(is_rare[evidence.ranked.items].mean(axis=1))]
'''


def read_blocks(language: str) -> list[str]:
    return re.findall(
        rf"```{language}[^\n]*\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )


@pytest.fixture
def folder(tmp_path: Path, rng: np.random.Generator) -> Path:
    """A folder with the files of the page, and purchases to read."""
    *plugins, test = read_blocks("python")
    (tmp_path / "my_plugins.py").write_text("\n\n".join(plugins), encoding="utf-8")
    (tmp_path / "test_my_plugins.py").write_text(test, encoding="utf-8")
    (tmp_path / "spec.yaml").write_text(read_blocks("yaml")[0], encoding="utf-8")
    rows = pd.DataFrame({"customer": np.repeat(np.arange(40), 12)})
    rows["product"] = [product for _ in range(40) for product in rng.permutation(30)[:12]]
    rows["year"] = 1980 + rows["product"]
    rows.to_csv(tmp_path / "purchases.csv", index=False)
    return tmp_path


def test_the_plugins_of_the_tutorial_meet_their_contracts(folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_the_spec_of_the_tutorial_runs(folder: Path) -> None:
    run = api.run(folder / "spec.yaml", out=folder / "results")
    metrics = {name.partition("(")[0] for name in run.metrics["metric"]}
    assert {name.rpartition(":")[2] for name in metrics} == {"nDCG", "RecentShare", "HIT_BAD"}
    assert run.metrics["value"].notna().all()
    assert run.significance["test"].str.contains("SignTest").any()


def test_a_metric_takes_fifteen_lines_and_one_import(tmp_path: Path) -> None:
    path = tmp_path / "short.py"
    path.write_text(SHORT_METRIC, encoding="utf-8")
    lines = [line for line in SHORT_METRIC.splitlines() if line]
    assert len(lines) <= 15
    spec = importlib.util.spec_from_file_location("short", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    check_metric(module.LongTailShare())


def test_the_facade_has_every_name_that_it_lists() -> None:
    from recbias import plugin

    assert [name for name in plugin.__all__ if not hasattr(plugin, name)] == []
    assert sorted(plugin.__all__) == plugin.__all__
