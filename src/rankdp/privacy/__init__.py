"""Guarantees, releases, secure bits and exact noise."""
