"""Damaged files of rankings and votes: `make fuzz`, or `python -m tests.fuzzing --help`.

`forging` makes file number n of a seed, `judging` reads it with rankdp and by independent means and compares,
`__main__` lets worker processes do that with many files and notices what kills or stalls them.
"""
