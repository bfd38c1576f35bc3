"""Mechanisms that release counts of comparisons."""
