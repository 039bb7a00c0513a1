"""The kinds of backend, and their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Provider: TypeAlias = Literal["openai", "anthropic", "transformers"]
"""The kinds of backend."""


@dataclass(frozen=True)
class ProviderDefaults:
    """What a provider uses where the settings leave it out.

    Args:
        package: The package that it needs.
        base_url: The address of its server.
        api_key_env: The environment variable of its key.
        max_temperature: The highest temperature that it accepts.
    """

    package: str
    base_url: str
    api_key_env: str
    max_temperature: float


PROVIDERS: Mapping[str, ProviderDefaults] = {
    "openai": ProviderDefaults("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", 2.0),
    "anthropic": ProviderDefaults(
        "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", 1.0
    ),
    "transformers": ProviderDefaults("transformers", "", "", 2.0),
}
