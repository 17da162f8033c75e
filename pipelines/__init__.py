"""Assembly and the command line: options, validated configuration, one module a command. No arithmetic."""

__version__ = "0.1.0"
