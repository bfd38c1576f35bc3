"""From released and public numbers to draws of the truth, and nothing else."""
