from __future__ import annotations

from typing import Any

import pytest

from recbias.core.errors import OutOfRange
from recbias.language.chat.endpoints import HIDDEN, Credentials, validate_extra_body


@pytest.mark.parametrize(
    "text",
    ["key: XNlcjc6UEFTU1BMQU5UNzc= refused", "sk-ab...PLANT99abc", "PASSPLANT77", "user7:PASSPL"],
)
def test_parts_of_secrets_are_hidden(text: str) -> None:
    credentials = Credentials(key="sk-abKEYPLANT99abc", userinfo="user7:PASSPLANT77")
    hidden = credentials.hide_in(text)
    assert HIDDEN in hidden
    for secret in ("sk-abKEYPLANT99abc", "user7:PASSPLANT77", "dXNlcjc6UEFTU1BMQU5UNzc="):
        parts = [secret[i : i + 8] for i in range(len(secret) - 7)]
        assert not any(part in hidden for part in parts)


@pytest.mark.parametrize(
    "body",
    [{"api_key": "x"}, {"Authorization": "x"}, {"token": "x"}, {"auth": {"access_token": "x"}}],
)
def test_fields_named_like_a_secret_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(OutOfRange, match="secret"):
        validate_extra_body(body)


def test_other_fields_of_servers_are_accepted() -> None:
    validate_extra_body(
        {"prompt_cache_key": "a", "stop_token_ids": [1], "cache_prompt": False, "min_tokens": 2}
    )
