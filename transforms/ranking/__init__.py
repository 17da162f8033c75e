"""The rankers: each gives every current URL a score and the reason for it."""
