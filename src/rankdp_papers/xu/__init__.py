"""Ranking Differential Privacy (Xu, Sun and Cheng, 2023)."""

from rankdp_papers.xu.as_printed import algorithm1

__all__ = ["algorithm1"]
