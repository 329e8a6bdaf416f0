"""Stored baselines: times of other libraries on a task, and what they say of a program that was timed elsewhere."""
