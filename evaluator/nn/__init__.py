"""The functional namespace that references are written against, and its backends."""
