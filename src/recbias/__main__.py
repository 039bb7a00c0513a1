"""Entry point of ``python -m recbias``."""

from __future__ import annotations

from recbias.cli.app import main

if __name__ == "__main__":
    main()
