"""Everyone chooses their own epsilon; one call serves them all."""

import numpy as np

import rankdp

items = ["jazz", "folk", "rock", "opera", "techno"]
orders = np.array([[0, 1, 2, 3, 4], [2, 4, 0, 1, 3], [3, 0, 1, 2, 4]])
poll = rankdp.Rankings.from_orders(orders, items=items, voters=["careful", "usual", "open"], epsilons=[0.5, 2, 6])

release = rankdp.privatize(poll)
for voter, true, synthetic in zip(poll.voters, poll, release.value, strict=True):
    print(f"{voter:8} {' > '.join(true):38} became {' > '.join(synthetic)}")
print(release.explain())
