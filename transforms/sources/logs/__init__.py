"""Readers of access logs and click logs: one module a format, Beam-free, and what they have in common."""
