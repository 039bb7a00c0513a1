from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import recbias
from recbias.runner.stage import (
    NO_COST,
    CostMeter,
    Counter,
    read_card,
    read_packages,
    subtract_packages,
)
from support.specs import make_small_spec


def test_the_time_of_processors_is_that_of_the_process_and_its_children() -> None:
    meter = CostMeter()
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    own = meter.measure(0.05)
    assert own["cpu_seconds"] is not None
    assert own["cpu_seconds"] >= 0.05
    assert own["gpu_seconds"] == 0
    code = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
    both = meter.measure(0.2)
    assert both["cpu_seconds"] is not None
    assert both["cpu_seconds"] >= 0.15
    assert both["gpu_seconds"] is None  # the child may have used a card


def test_the_counters_of_packages_are_read_and_restart(tmp_path: Path) -> None:
    for name, kind in (("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "core")):
        (tmp_path / name).mkdir()
        for file, text in (("name", kind), ("energy_uj", "9000000"), ("max_energy_range_uj", "1")):
            (tmp_path / name / file).write_text(text)
    (tmp_path / "intel-rapl:0" / "max_energy_range_uj").write_text("262143000000")
    start = read_packages(tmp_path)
    assert start == {"intel-rapl:0": Counter(9.0, 262143.0)}
    end = {"intel-rapl:0": Counter(5.0, 262143.0)}
    assert subtract_packages(end, start, 60) == 262139.0
    assert subtract_packages(end, start, 3600) is None  # it may have restarted several times
    assert subtract_packages({}, {}, 1) is None
    assert read_packages(tmp_path / "absent") == {}


def test_a_card_that_is_not_there_tells_no_energy() -> None:
    assert read_card("GPU-00000000-0000-0000-0000-000000000000") is None


def test_the_manifest_has_the_cost_of_what_was_computed(tmp_path: Path) -> None:
    first = recbias.run(make_small_spec(), out=tmp_path).manifest["stages"]
    assert all(set(stage["cost"]) == set(NO_COST) for stage in first)
    assert sum(stage["cost"]["cpu_seconds"] for stage in first) > 0
    fit = next(stage for stage in first if stage["stage"] == "fit ItemKNN")
    assert fit["sizes"]["users"] == 60
    assert 0 < fit["sizes"]["training"] < fit["sizes"]["interactions"]
    again = recbias.run(make_small_spec(), out=tmp_path).manifest["stages"]
    assert all(stage["reused"] for stage in again)
    assert {value for stage in again for value in stage["cost"].values()} == {None}
    assert {stage["peak_memory_mb"] for stage in again} == {None}
