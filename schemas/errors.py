"""Errors that the user can correct."""


class InputError(ValueError):
    """An argument or an input is unusable.

    The message is one line that names the option or file, what was found and what was expected; commands print it
    on standard error and end with exit status 2.
    """
