from __future__ import annotations

import hashlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

import recbias
from recbias.core.errors import Faults
from support.loopback import answer_in_thread

COMMITS = {"main": "a" * 40, "v1": "b" * 40}
FILES = {
    ("main", "clicks.csv"): "user_id,item_id\nu1,i1\nu2,i2\n",
    ("v1", "clicks.csv"): "user_id,item_id\nu1,i1\nu2,i2\nu2,i3\n",
    ("main", "lists/mine.csv"): "query_id,item_id,rank\nu1,i2,1\nu2,i1,1\n",
}
"""The files of ``datasets/shop/clicks`` by revision."""


class Hub(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        _, _, path = self.path.partition("/datasets/shop/clicks/resolve/")
        revision, _, name = path.partition("/")
        revision = next((tag for tag, sha in COMMITS.items() if sha == revision), revision)
        content = FILES.get((revision, name), "").encode()
        self.send_response(200 if content else 404)
        self.send_header("Content-Length", str(len(content)))
        if content:
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMITS[revision])
        else:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    with answer_in_thread(server):
        yield


def make_spec(revision: str = "") -> dict[str, Any]:
    root = f"hf://datasets/shop/clicks{revision}"
    return {
        "name": "hub",
        "dataset": {"name": "tables", "interactions": f"{root}/clicks.csv"},
        "models": [{"name": "lists", "path": "hf://datasets/shop/clicks/lists/mine.csv"}],
        "metrics": ["ItemCoverage"],
        "k": 1,
        "report": {"formats": ["csv"]},
    }


@pytest.mark.parametrize(("revision", "coverage"), [("", 2 / 2), ("@v1", 2 / 3)])
@pytest.mark.usefixtures("hub")
def test_tables_and_lists_of_the_hub_are_recorded_with_their_commit(
    tmp_path: Path, revision: str, coverage: float
) -> None:
    run = recbias.run(make_spec(revision), out=tmp_path, progress=False)
    assert run.metrics["value"].tolist() == pytest.approx([coverage])
    spec = yaml.safe_load((run.folder / "spec.yaml").read_text())
    commit = COMMITS[revision.removeprefix("@") or "main"]
    pinned = f"hf://datasets/shop/clicks@{commit}/clicks.csv"
    assert spec["dataset"]["interactions"] == pinned
    assert run.manifest["datasets"][0]["parameters"]["interactions"] == pinned
    again = recbias.run(run.folder / "spec.yaml", out=tmp_path, progress=False)
    assert again.folder == run.folder


@pytest.mark.usefixtures("hub")
def test_offline_a_file_is_that_of_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for act in (recbias.run, recbias.plan):  # the hub, which has the file, is not asked
        with pytest.raises(Faults, match=r"clicks\.csv is not there and offline"):
            act(make_spec(), out=tmp_path, offline=True)
    run = recbias.run(make_spec(), out=tmp_path, progress=False)
    monkeypatch.setenv("RECBIAS_OFFLINE", "1")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert recbias.run(make_spec(), out=tmp_path, progress=False).folder == run.folder


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("hf://datasets/shop/clicks/absent.csv", "is not there"),
        ("hf://datasets/shop", "is not the address of a file"),
    ],
)
def test_what_the_hub_lacks_is_a_fault_of_its_setting(
    tmp_path: Path, address: str, words: str
) -> None:
    spec = make_spec() | {"dataset": {"name": "tables", "interactions": address}}
    with pytest.raises(Faults) as caught:
        recbias.run(spec, out=tmp_path, progress=False)
    (fault,) = caught.value.faults
    assert words in fault.message
    assert "dataset.interactions" in fault.where
