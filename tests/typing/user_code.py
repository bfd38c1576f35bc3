"""What a user writes: checked by mypy --strict and by pyright, never run."""

from fractions import Fraction

import rankdp

poll = rankdp.Rankings.from_orders([["tea", "coffee"], ["coffee", "tea"]])
synthetic = rankdp.privatize(poll, epsilon=2)
orders: int = synthetic.value.orders.shape[0]
guarantee: rankdp.Guarantee | None = synthetic.guarantee
if guarantee is not None:
    spent: Fraction | float = guarantee.epsilon
    sentence: str = guarantee.explain()

ballots = rankdp.Ballots.from_orders([["Ann", "Bob"]], items=["Ann", "Bob"])
election = rankdp.elect(ballots, epsilon=1, rule="borda")
text: str = election.explain()

votes = rankdp.Comparisons.from_pairs(["tea"], ["coffee"], ["left"])
board = rankdp.rank(votes, epsilon=1, protect="comparison", items=["tea", "coffee"])
shown: str = repr(board.value)

summary = rankdp.aggregate(synthetic)
needed = rankdp.plan("ranking", items=5, epsilon=1)
