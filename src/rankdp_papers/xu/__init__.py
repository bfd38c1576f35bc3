"""Ranking Differential Privacy (Xu, Sun and Cheng, 2023)."""
