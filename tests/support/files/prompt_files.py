"""Prompt files for tests; STATED states the year limit and its own mitigations."""

from __future__ import annotations

from pathlib import Path

PROMPT = """\
about: Asks for songs.
source: Me.
template: |-
  Heard: {history}
  - Write {n_items}
  - None after {year_limit}, please
history: {order: newest_first, max_items: 2, item: "* {title}, {year}"}
mitigations: {niche: Prefer rare songs.}
"""

STATED = """\
source: A. Author. A study. 2024
template: |-
  Watched:
  {history}
  # Output
  - List {n_items} movies.
  - Nothing newer than 2008.
  Go!
mitigations: {mitigate: Match the level., minimize: Stay niche.}
"""


def write_prompt(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path
