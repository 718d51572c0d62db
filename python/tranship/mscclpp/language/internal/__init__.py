"""Words, values and the current program."""
