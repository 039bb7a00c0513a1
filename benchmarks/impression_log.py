"""A log of 100 million impressions: click-through rate, exposure and SNIPS by group of users.

    python benchmarks/impression_log.py FOLDER [--rows 100000000]

An invented shop shows five of 100 items at random to users of two segments, and its log is
written to FOLDER in blocks, once. The audit is a process of its own with an empty store; the table
has seconds on the clock and the peak memory of each stage, and of all.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

N_ITEMS, N_POSITIONS, N_USERS = 100, 5, 200_000
BLOCK = 200_000  # requests that are written at once
SPEC = """\
name: impression-log
dataset: {{name: impressions, path: {log}, users: users.csv, items: items.csv}}
models:
  - shown
  - {{name: policy, label: candidate, path: candidate.csv}}
metrics:
  - {{name: click_through_rate, by: segment, gap: difference}}
  - {{name: shown_share, attribute: kind, discount: true, by: segment}}
  - {{name: policy_value, estimator: snips, by: segment, gap: difference}}
report: {{formats: [md]}}
"""


def write_log(folder: Path, n_rows: int) -> None:
    """Write the log and its tables, but for a log that is there."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    items = np.array([f"i{code:02d}" for code in range(N_ITEMS)])
    kinds = np.where(np.arange(N_ITEMS) % 3 == 0, "new", "old")
    pd.DataFrame({"item_id": items, "kind": kinds}).to_csv(folder / "items.csv", index=False)
    segments = rng.choice(["new", "loyal"], N_USERS, p=[0.4, 0.6])
    users = {"user_id": np.arange(N_USERS), "segment": segments}
    pd.DataFrame(users).to_csv(folder / "users.csv", index=False)
    relevance = rng.uniform(0.02, 0.2, N_ITEMS)
    candidate = {"item_id": items, "probability": relevance / relevance.sum()}
    pd.DataFrame(candidate).to_csv(folder / "candidate.csv", index=False)
    path = folder / f"log-{n_rows}.parquet"
    if path.exists():
        return
    part, writer = path.with_suffix(".part"), None
    n_requests = n_rows // N_POSITIONS
    for start in range(0, n_requests, BLOCK):
        n = min(BLOCK, n_requests - start)
        shown = rng.integers(0, N_ITEMS, (n, N_POSITIONS))
        positions = np.tile(np.arange(1, N_POSITIONS + 1, dtype=np.int32), n)
        clicks = rng.random(n * N_POSITIONS) < relevance[shown.ravel()] / positions
        table = pa.table(
            {
                "request_id": np.repeat(np.arange(start, start + n), N_POSITIONS),
                "user_id": np.repeat(rng.integers(0, N_USERS, n), N_POSITIONS),
                "item_id": pa.DictionaryArray.from_arrays(shown.ravel(), items),
                "position": positions,
                "reward": clicks.astype(np.float64),
                "propensity": np.full(n * N_POSITIONS, 1 / N_ITEMS),
            }
        )
        writer = writer or parquet.ParquetWriter(part, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()
    part.rename(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=100_000_000)
    options = parser.parse_args()
    folder = options.folder.resolve()
    writer = get_context("spawn").Process(target=write_log, args=(folder, options.rows))
    writer.start()  # a process of its own: the peak of a command begins with that of its parent
    writer.join()
    (folder / "audit.yaml").write_text(SPEC.format(log=f"log-{options.rows}.parquet"))
    with tempfile.TemporaryDirectory(dir=folder) as out:
        command = (sys.executable, "-m", "recbias", "run", "audit.yaml", "--out", out, "--quiet")
        start = time.perf_counter()
        subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
        seconds = time.perf_counter() - start
        run = Path(out) / "impression-log" / "latest"
        manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
        print("stage,seconds,peak_memory_mb")
        for stage in manifest["stages"]:
            print(f"{stage['stage']},{stage['seconds']:.1f},{stage['peak_memory_mb']:.0f}")
        peak = max(stage["peak_memory_mb"] or 0 for stage in manifest["stages"])
        print(f"all,{seconds:.1f},{peak:.0f}")


if __name__ == "__main__":
    main()
