from __future__ import annotations

import json

from recbias.core.records import Failure, StageRecord


def test_a_record_is_plain_json() -> None:
    record = StageRecord("fit EASE", "fit", "ab", failure=Failure("no", "yes", user=True))
    told = json.loads(json.dumps(record.as_json()))
    assert told["failure"] == {"message": "no", "help": "yes", "user": True, "traceback": ""}
    assert told["stage"] == "fit EASE"
