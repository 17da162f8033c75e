"""Helpers of tests of several folders."""
