from __future__ import annotations

import json
from dataclasses import asdict

from recbias.core.context import Failure, StageRecord


def test_a_record_can_be_written_as_json() -> None:
    record = StageRecord("fit EASE", "fit", "ab", failure=Failure("no", "yes", user=True))
    values = json.loads(json.dumps(asdict(record)))
    failure = {"message": "no", "help": "yes", "user": True, "traceback": "", "because": ""}
    assert values["failure"] == failure
    assert values["stage"] == "fit EASE"
