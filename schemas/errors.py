"""Errors that the user can correct, and how they show paths."""


class InputError(ValueError):
    """An argument or an input is unusable.

    The message is one line that names the option or file, what was found and what was expected; commands print it
    on standard error and end with exit status 2.
    """


def shown_path(path: str) -> str:
    """A path as text for tables and messages: bytes in it that are not UTF-8 are shown as escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
