"""The rankers: each computes a score, and the reason for it, of every current URL."""
