from __future__ import annotations

import json

from recbias.core.records import Failure, StageRecord


def test_a_record_can_be_written_as_json() -> None:
    record = StageRecord("fit EASE", "fit", "ab", failure=Failure("no", "yes", user=True))
    values = json.loads(json.dumps(record.as_json()))
    assert values["failure"] == {"message": "no", "help": "yes", "user": True, "traceback": ""}
    assert values["stage"] == "fit EASE"
