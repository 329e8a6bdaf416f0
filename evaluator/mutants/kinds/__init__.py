"""Kinds of fault: each is a function from a program to the edits that put one such fault into it."""
