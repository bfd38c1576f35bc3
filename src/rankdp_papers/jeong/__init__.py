"""Ranking Recovery under Privacy Considerations (Jeong, Dytso and Cardone, 2022)."""

from rankdp_papers.jeong.as_printed import decode, map_decode, mechanism

__all__ = ["decode", "map_decode", "mechanism"]
