"""The three papers, reproduced: experiments as data, our numbers next to their claims.

One TOML file a figure (or table, or erratum) says what is run and what the paper claims; see ``specification``. A
*cell* is one point of its grid; an *experiment* is a function from a cell to rows of a tidy table. ``runner`` runs
cells on all cores and keeps what is done, ``verdicts`` judges claims by tables, ``pictures`` draws them,
``documents`` puts everything on one page.
"""
