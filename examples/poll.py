"""Privatize a made-up poll and compare what people prefer before and after."""

import rankdp
from rankdp.data.synthetic import town_poll

poll = town_poll(voters=5000)
release = rankdp.privatize(poll, epsilon=3)

before, after = (table.ranks().mean(axis=0) for table in (poll, release.value))
for item in before.argsort():
    print(f"{poll.items[item]:15} mean rank {before[item]:.2f}, synthetic {after[item]:.2f}")
print(release.explain())
