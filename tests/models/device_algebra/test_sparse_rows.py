from __future__ import annotations

import pytest
import torch

from recbias.core.errors import TooLittleMemory
from recbias.models.gpu import map_device_blocks, report_full_device


def test_a_full_device_is_one_error_with_a_remedy() -> None:
    def fail(start: int, stop: int) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")

    message = "neighbours: the device has too little memory"
    with pytest.raises(TooLittleMemory, match=message) as caught, report_full_device("neighbours"):
        next(map_device_blocks(fail, 8, 8))
    assert (caught.value.where, caught.value.remedy) == ("device", "set device: cpu")
