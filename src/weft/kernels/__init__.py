"""Compiled by Numba: flat arrays in, flat arrays out; no objects, no input or output."""
