"""Mechanisms for ranked ballots in a curator's hands."""
