"""``find_model`` with a model hub on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from recbias.core.files import OFFLINE
from support.models.small_encoder import write_small_encoder

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(BaseHTTPRequestHandler):
    """A model hub with one repository."""

    folder: ClassVar[Path]

    def do_HEAD(self) -> None:
        self._respond(body=False)

    def do_GET(self) -> None:
        self._respond(body=True)

    def log_message(self, *_: Any) -> None:
        """Write no log."""

    def _respond(self, *, body: bool) -> None:
        content = self._read_content()
        self.send_response(200 if content is not None else 404)
        content = content or b""
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{len(content)}"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def _read_content(self) -> bytes | None:
        if self.path.startswith("/api/models/lab/encoder"):
            return json.dumps(self._describe_repository()).encode()
        path = self.folder / self.path.rpartition("/")[2]
        exists = self.path.startswith("/lab/encoder/resolve/") and path.is_file()
        return path.read_bytes() if exists else None

    def _describe_repository(self) -> Any:
        paths = sorted(self.folder.iterdir())
        if "/tree/" in self.path:
            return [
                {"type": "file", "path": path.name, "size": path.stat().st_size, "oid": "1"}
                for path in paths
            ]
        siblings = [{"rfilename": path.name} for path in paths]
        return {"id": "lab/encoder", "sha": COMMIT, "siblings": siblings}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[str]:
    Hub.folder = write_small_encoder(tmp_path / "published")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


SCRIPT = """
import json

from recbias.core.errors import RecbiasError
from recbias.core.context import collect_facts
from recbias.language.model_files import find_model

try:
    with collect_facts() as facts:
        folder = find_model(NAME).folder
    assert (folder / "model.safetensors").is_file()
    print(json.loads((folder / "config.json").read_text())["hidden_size"], facts["revision"])
except RecbiasError as error:
    print("\\n".join(error.lines()))
"""


def load_in_process(name: str, hub: str, cache: Path, *, offline: bool = False) -> str:
    """Return the output of another process, because the hub is read from the environment once."""
    variables = {"HF_ENDPOINT": hub, "HF_HOME": str(cache), OFFLINE: "1" if offline else ""}
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("NAME", repr(name))],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return process.stdout


def test_a_model_of_the_hub_is_downloaded_once_and_its_commit_is_recorded(
    hub: str, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    error = load_in_process("lab/encoder", hub, cache, offline=True)
    assert "lab/encoder is not on this machine, and the network may not be used" in error
    assert "hf download lab/encoder" in error
    assert load_in_process("lab/encoder", hub, cache) == f"16 {COMMIT}\n"
    assert load_in_process("lab/encoder", hub, cache, offline=True) == f"16 {COMMIT}\n"
    error = load_in_process("lab/other", hub, cache)
    assert "the model lab/other cannot be downloaded" in error


def test_an_incomplete_model_in_the_cache_is_completed(hub: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert load_in_process("lab/encoder", hub, cache) == f"16 {COMMIT}\n"
    (weights,) = cache.rglob("model.safetensors")
    weights.unlink()
    error = load_in_process("lab/encoder", hub, cache, offline=True)
    assert "lab/encoder is not on this machine" in error
    assert "hf download lab/encoder" in error
    assert load_in_process("lab/encoder", hub, cache) == f"16 {COMMIT}\n"
