"""Entry point of ``recbias`` and of ``python -m recbias``."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress

from recbias.core.machine import claim_line, get_exit_code, handle_signals, share_heap

_ALLOCATIONS_PER_COLLECTION = 200_000
"""Instead of 700: objects of imported modules are no garbage, and to visit them takes 0.1 s."""


def main() -> None:
    """Run the command line; a signal that ends it has its handler before the slow imports."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # of 2>&-: no file gets its number
        os.set_inheritable(number, True)  # noqa: FBT003  it has no name
    os.close(number)
    share_heap()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it would read all packages
    gc.set_threshold(_ALLOCATIONS_PER_COLLECTION)
    try:
        with handle_signals():
            from recbias.cli.main import main as run_command

            run_command()
    except KeyboardInterrupt as error:
        _end(error)
    finally:
        gc.disable()  # at its end the interpreter would visit every object once more


def _end(error: KeyboardInterrupt) -> None:
    """Print the line of an interruption and exit; the streams may belong to a closed terminal."""
    with suppress(OSError, ValueError):
        if line := claim_line(error):
            sys.stderr.write(f"{line}\n")
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(get_exit_code(error))


if __name__ == "__main__":
    main()
