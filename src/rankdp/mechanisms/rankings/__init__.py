"""Mechanisms that release a synthetic ranking."""
