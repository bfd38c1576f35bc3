"""Ranking Recovery under Privacy Considerations (Jeong, Dytso and Cardone, 2022)."""
