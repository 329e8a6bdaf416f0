"""Tasks: the catalog, a user's own, and the arrays and text that each gives."""
