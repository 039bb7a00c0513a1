"""Prompt files for tests: one in the project's own format and one in that of a paper."""

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

PAPER = """\
source: {authors: A. Author, title: A study, year: 2024}
base_prompt: |-
  Watched:
  {watch_history}
  # Output
  - List {nr_items} movies.
  - Nothing newer than 2008.
  Go!
placeholders: {nr_items: ten}
extra_instructions:
  mitigate: {suffix: -mitigate, text: Match the level.}
  minimize: {suffix: -minimize, text: Stay niche.}
  note: where they go is not said
"""


def write_prompt(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path
