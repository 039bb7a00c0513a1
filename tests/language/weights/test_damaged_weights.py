"""Models whose files are damaged, cut or of another kind have no shape, and raise nothing."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from recbias.language.weights.model_shapes import read_shape

CONFIG = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1, "vocab_size": 9}
WEIGHTS = {"a": {"dtype": "F32", "shape": [9, 4], "data_offsets": [0, 144]}}
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0f\nsize 144\n"


def write_model(folder: Path, weights: bytes, **settings: object) -> str:
    """Write the folder of a model without a vocabulary."""
    (folder / "config.json").write_text(json.dumps(CONFIG | settings))
    (folder / "model.safetensors").write_bytes(weights)
    return str(folder)


def join_header(header: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header


@pytest.mark.parametrize(
    "weights",
    [
        POINTER,
        struct.pack("<Q", 2**60) + b"{}",
        struct.pack("<Q", 2**64 - 1) + b"{}",
        b"\x01\x00\x00",
        join_header(b"[" * 100_000),
        join_header(b'{"a": {"shape": [NaN]}}'),
        join_header(b'{"a": {"shape": [1e308, 1e308]}}'),
        join_header(b'{"a": {"shape": [1000000000000000, "abc"]}}'),
        join_header(b'{"a": {"shape": [1' + b"0" * 400 + b"]}}"),
    ],
)
def test_a_file_without_a_header_has_no_shape(tmp_path: Path, weights: bytes) -> None:
    assert read_shape(write_model(tmp_path, weights)) is None


@pytest.mark.parametrize("settings", [{"vocab_size": 10**400}, {"architectures": 5}])
def test_a_configuration_with_absurd_values_has_no_shape(
    tmp_path: Path, settings: dict[str, object]
) -> None:
    weights = join_header(json.dumps(WEIGHTS).encode())
    assert read_shape(write_model(tmp_path, weights, **settings)) is None


def test_a_size_below_zero_is_unknown(tmp_path: Path) -> None:
    weights = join_header(json.dumps(WEIGHTS).encode())
    shape = read_shape(write_model(tmp_path, weights, max_position_embeddings=-1))
    assert shape is not None
    assert (shape.parameters, shape.positions) == (36, 0)


def render_text(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def write_gguf(path: Path, n_tensors: int, n_settings: int, body: bytes) -> str:
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, n_tensors, n_settings) + body)
    return str(path)


def test_arrays_of_arrays_without_end_are_refused(tmp_path: Path) -> None:
    body = render_text(b"x") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 5000
    assert read_shape(write_gguf(tmp_path / "nested.gguf", 0, 1, body)) is None


@pytest.mark.parametrize("n_dimensions", [4, 100, 2**20])
def test_absurd_tensors_are_refused(tmp_path: Path, n_dimensions: int) -> None:
    shape = struct.pack("<Q", 2**64 - 1) * n_dimensions
    body = render_text(b"w") + struct.pack("<I", n_dimensions) + shape + bytes(12)
    assert read_shape(write_gguf(tmp_path / "tensor.gguf", 1, 0, body)) is None


def test_a_second_copy_of_the_weights_does_not_count(tmp_path: Path) -> None:
    weights = join_header(json.dumps(WEIGHTS).encode()) + bytes(144)
    name = write_model(tmp_path, weights)
    (tmp_path / "consolidated.safetensors").write_bytes(weights)
    shape = read_shape(name)
    assert shape is not None
    assert shape.parameters == 36
