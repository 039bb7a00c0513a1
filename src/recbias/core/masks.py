"""What stands in a text for a word that is not to be seen."""

from __future__ import annotations

MASK = "[MASK]"
"""A masked word; a language model reads its own mask token here."""
