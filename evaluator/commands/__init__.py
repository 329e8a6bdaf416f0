"""Commands of the command line, a module each: `run(options) -> exit code`, and `add_arguments(parser)` if any."""
