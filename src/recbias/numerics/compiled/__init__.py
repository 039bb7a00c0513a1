"""Loops that numba compiles to machine code."""
