"""Fuzzing of every parser of what others wrote."""
