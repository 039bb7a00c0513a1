from __future__ import annotations

import json
import pickle  # noqa: TID251  weights of others may be pickles that hold code
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from recbias.core.context import collect_warnings
from recbias.core.errors import Contradiction, MalformedLine, MissingFile, Unwritable
from recbias.language.likelihood import score_sentences
from recbias.language.local_models import (
    ScoringSettings,
    SentenceModel,
    convert_weights,
    load_sentence_model,
)
from support.commands import invoke_recbias
from support.models.small_sentence_models import make_sentence_model

TEXTS = ["the soup was good", "He is old and she is, too."]


def write_pickled(folder: Path, name: str) -> SentenceModel:
    """Write a model as older versions of the library did."""
    model = make_sentence_model(name)
    model.tokenizer.save_pretrained(folder)
    model.network.config.architectures = [type(model.network).__name__]
    model.network.config.save_pretrained(folder)
    torch.save(model.network.state_dict(), folder / "pytorch_model.bin")
    return model


@pytest.mark.parametrize("name", ["gpt2", "llama", "t5", "bert"])
def test_a_converted_model_scores_as_the_original(name: str, tmp_path: Path) -> None:
    model = write_pickled(tmp_path / "old", name)
    converted = convert_weights(tmp_path / "old", tmp_path / "new")
    assert converted.architecture == type(model.network).__name__
    assert converted.n_parameters == model.network.num_parameters()
    read = load_sentence_model(str(tmp_path / "new"), device="cpu")
    scores, expected = (
        score_sentences(one, TEXTS, ScoringSettings()).perplexity for one in (read, model)
    )
    assert scores == pytest.approx(expected, rel=1e-5)
    assert not [*(tmp_path / "new").glob("*.bin")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old"]


def test_several_files_of_weights_are_joined(tmp_path: Path) -> None:
    model = write_pickled(tmp_path / "old", "gpt2")
    weights = model.network.state_dict()
    (tmp_path / "old" / "pytorch_model.bin").unlink()
    parts: list[dict[str, Any]] = [dict(list(weights.items())[part::2]) for part in (0, 1)]
    places: dict[str, str] = {}
    for number, part in enumerate(parts):
        file = f"pytorch_model-{number}.bin"
        torch.save(part, tmp_path / "old" / file)
        places |= dict.fromkeys(part, file)
    index = tmp_path / "old" / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": places}), encoding="utf-8")
    assert convert_weights(tmp_path / "old", tmp_path / "new").n_parameters
    (tmp_path / "old" / "pytorch_model-1.bin").unlink()
    with pytest.raises(MissingFile, match="is missing"):
        convert_weights(tmp_path / "old", tmp_path / "other")


def test_weights_keep_their_precision(tmp_path: Path) -> None:
    model = write_pickled(tmp_path / "old", "gpt2")
    torch.save(model.network.half().state_dict(), tmp_path / "old" / "pytorch_model.bin")
    convert_weights(tmp_path / "old", tmp_path / "new")
    auto: Any = transformers.AutoModelForCausalLM
    assert auto.from_pretrained(tmp_path / "new").dtype == torch.float16


class Attack:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("is_zip", [True, False])
def test_a_pickle_with_code_is_refused_and_not_run(is_zip: bool, tmp_path: Path) -> None:
    write_pickled(tmp_path / "old", "gpt2")
    file, mark = tmp_path / "old" / "pytorch_model.bin", tmp_path / "ran"
    if is_zip:
        torch.save({"weight": Attack(mark)}, file)
    else:
        file.write_bytes(pickle.dumps({"weight": Attack(mark)}))
    with pytest.raises(MalformedLine, match="holds code") as caught:
        convert_weights(tmp_path / "old", tmp_path / "new")
    assert "safetensors" in caught.value.remedy
    assert not mark.exists()
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("content", [[1, 2], {"weight": "text"}])
def test_other_objects_than_tensors_are_refused(content: Any, tmp_path: Path) -> None:
    write_pickled(tmp_path / "old", "gpt2")
    torch.save(content, tmp_path / "old" / "pytorch_model.bin")
    with pytest.raises(MalformedLine, match="tensor"):
        convert_weights(tmp_path / "old", tmp_path / "new")


def test_code_in_the_folder_is_neither_run_nor_copied(tmp_path: Path) -> None:
    model = write_pickled(tmp_path / "old", "gpt2")
    config = json.loads((tmp_path / "old" / "config.json").read_text(encoding="utf-8"))
    config["auto_map"] = {"AutoModelForCausalLM": "own.Model"}
    (tmp_path / "old" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "old" / "own.py").write_text("raise SystemExit", encoding="utf-8")
    with collect_warnings() as warnings:
        convert_weights(tmp_path / "old", tmp_path / "new")
    assert warnings == ["the folder holds code (own.py), which is neither run nor copied"]
    assert not (tmp_path / "new" / "own.py").exists()
    assert "auto_map" not in (tmp_path / "new" / "config.json").read_text(encoding="utf-8")
    assert model.kind == load_sentence_model(str(tmp_path / "new"), device="cpu").kind


def test_a_vocabulary_of_words_makes_a_tokenizer(tmp_path: Path) -> None:
    model = write_pickled(tmp_path / "old", "gpt2")
    for path in (tmp_path / "old").glob("*token*"):
        path.unlink()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[speaker1]", "你", "好", "。"]
    words += [
        f"[unused{number}]" for number in range(model.network.config.vocab_size - len(words))
    ]
    (tmp_path / "old" / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    convert_weights(tmp_path / "old", tmp_path / "new")
    read = load_sentence_model(str(tmp_path / "new"), device="cpu")
    assert read.tokenizer("你好。", add_special_tokens=False).input_ids == [6, 7, 8]
    made = score_sentences(read, ["你好。"], ScoringSettings(token_types="[speaker1]"))
    assert made.perplexity[0] > 1


def test_folders_that_cannot_be_converted_are_refused(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    with pytest.raises(MissingFile, match="is not a folder"):
        convert_weights(old, new)
    write_pickled(old, "bert")
    with pytest.raises(Unwritable, match="exists already"):
        convert_weights(old, tmp_path)
    (old / "pytorch_model.bin").write_bytes(b"cut")
    with pytest.raises((MissingFile, MalformedLine), match=r"cannot be read|holds code"):
        convert_weights(old, new)
    (old / "pytorch_model.bin").unlink()
    with pytest.raises(MissingFile, match=r"has no pytorch_model\.bin"):
        convert_weights(old, new)
    (old / "model.safetensors").touch()
    with pytest.raises(Contradiction, match="already"):
        convert_weights(old, new)
    (old / "model.safetensors").unlink()
    (old / "config.json").unlink()
    with pytest.raises(MissingFile, match="has no config"):
        convert_weights(old, new)


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_a_folder_without_a_tokenizer_is_refused(name: str, tmp_path: Path) -> None:
    write_pickled(tmp_path / "old", name)
    for path in (tmp_path / "old").iterdir():
        if path.name not in {"config.json", "pytorch_model.bin"}:
            path.unlink()
    with pytest.raises(MissingFile, match="tokenizer"):
        convert_weights(tmp_path / "old", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_weights_that_lack_some_are_refused(tmp_path: Path) -> None:
    model = write_pickled(tmp_path / "old", "gpt2")
    weights = {name: value for name, value in model.network.state_dict().items() if "h.1" in name}
    torch.save(weights, tmp_path / "old" / "pytorch_model.bin")
    with pytest.raises(MissingFile, match="belong to another model"):
        convert_weights(tmp_path / "old", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_command_writes_a_folder_beside(tmp_path: Path) -> None:
    model = write_pickled(tmp_path / "old", "gpt2")
    (tmp_path / "old" / "own.py").touch()
    done = invoke_recbias("convert", "old", folder=tmp_path)
    assert done.code == 0
    size = f"{model.network.num_parameters():,}"
    expected = [f"GPT2LMHeadModel, {size} parameters", "wrote old-safetensors"]
    assert done.out.splitlines() == expected
    assert "warning: the folder holds code (own.py)" in done.err
    assert (tmp_path / "old-safetensors" / "model.safetensors").is_file()
    again = invoke_recbias("convert", "old", folder=tmp_path)
    assert again.code == 2
    assert "error: " in again.err
    assert "help: name a new folder: --to NEW" in again.err


def test_the_command_converts_the_folder_in_which_it_is_called(tmp_path: Path) -> None:
    write_pickled(tmp_path / "old", "gpt2")
    assert invoke_recbias("convert", ".", folder=tmp_path / "old").code == 0
    assert (tmp_path / "old-safetensors" / "model.safetensors").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old", "old-safetensors"]
