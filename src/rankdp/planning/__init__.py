"""Planning: which epsilon, from public numbers only."""
