"""Readers of access logs and click logs: one module a format, without Beam, and what the formats share."""
