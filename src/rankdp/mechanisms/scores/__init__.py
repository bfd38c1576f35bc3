"""Mechanisms that add noise to a vector of scores."""
