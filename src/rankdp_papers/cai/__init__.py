"""Optimal Differentially Private Ranking from Pairwise Comparisons (Cai, Chakraborty and Wang, 2023)."""
