"""Runnable examples; each is a module to run from the checkout."""
