"""Ours and the peers side by side in one run: what counts is the ratio, not the machine.

    python -m benchmarks                                every table
    python -m benchmarks kendall files                  some of them
    python -m benchmarks --write docs/benchmarks.md     and put the results into the document
    python -m benchmarks files --rows 100000000         the long run: is the memory still flat?

Contenders take turns (peer, ours, peer, ours, …) and each is judged by its best turn. A busy machine slows what
uses all cores more than a peer that uses one: measure on a quiet one. One module makes one table.
"""
