"""Programs that answer as a Python with RecBole does, each in its own way."""

from __future__ import annotations

import sys
from pathlib import Path

FAKE = """\
#!{python}
import json, os, signal, sys, time
from pathlib import Path

def write(name, fields):
    Path(name).write_text(json.dumps(fields))

if sys.argv[1] == "-c":
    print(json.dumps({{**dict.fromkeys(sys.argv[3:]), "recbole": {metadata!r}}}))
    sys.exit()
request = json.loads(Path("request.json").read_text())
print("RecBole starts")
sys.stdout.flush()
{answer}
"""

POPULAR = """\
import numpy as np
if request["task"] == "fit":
    with np.load("rows.npz") as rows:
        counts = np.bincount(rows["items"])
    write("progress.txt", 0)
    Path("progress.txt").write_text("0.5\\n" * request["epochs"])
    np.savez("state.npz", **{"array.counts": counts})
else:
    counts, users = np.load("state.npz")["array.counts"], np.load("queries.npz")["users"]
    with np.load("rows.npz") as rows:
        seen = set(zip(rows["users"].tolist(), rows["items"].tolist()))
    items = np.full((len(users), request["k"]), -1)
    best = sorted(np.flatnonzero(counts).tolist(), key=lambda item: (-counts[item], item))
    for row, user in enumerate(users.tolist()):
        left = [item for item in best if (user, item) not in seen][: request["k"]]
        items[row, : len(left)] = left
    np.savez("lists.npz", items=items, scores=np.where(items < 0, np.nan, counts[items]))
write("facts.json", {"recbole": "9.9"})
"""
"""Learns the popularity of the items, and recommends by it."""


def write_fake(path: Path, answer: str = POPULAR, version: str = "9.9") -> Path:
    """Write a program that claims to have RecBole and answers a request by ``answer``."""
    metadata = path.with_suffix(".dist") / "METADATA"
    metadata.parent.mkdir(exist_ok=True)
    metadata.write_text(f"Name: recbole\nVersion: {version}\n", encoding="utf-8")
    text = FAKE.format(python=sys.executable, metadata=str(metadata), answer=answer)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path
