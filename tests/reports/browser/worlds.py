"""A run folder that would break a page that does not escape."""

from __future__ import annotations

from support.run_folders import HOSTILE, RunSpec

HOSTILE_WORLD = RunSpec(
    models=HOSTILE,
    datasets=("<b>x</b>", 'y" onload="alert(1)'),
    users=30,
    parts=(("race=<i>", "price=$$"),),
    failures=[{"stage": "fit <X>", "message": "</style><script>alert(1)</script>", "help": "'\""}],
    warnings=["<img src=x onerror=alert(1)>"] * 2 + [f"warning {number}" for number in range(9)],
)
