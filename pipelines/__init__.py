"""Assembly and the command line: options, validated configuration, one module a command. No arithmetic."""
