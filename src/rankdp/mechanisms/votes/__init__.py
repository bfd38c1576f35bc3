"""Mechanisms that release what comparisons say of the items."""
