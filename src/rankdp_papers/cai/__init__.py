"""Optimal Differentially Private Ranking from Pairwise Comparisons (Cai, Chakraborty and Wang, 2023)."""

from rankdp_papers.cai.as_printed import algorithm1, algorithm2

__all__ = ["algorithm1", "algorithm2"]
