"""Closed forms from the papers: plain mathematics on public numbers."""
