"""Privatize a made-up poll and compare what people prefer before and after."""

import rankdp
from rankdp.data.synthetic import town_poll
from rankdp.demo import mean_ranks

poll = town_poll(voters=5000)
release = rankdp.privatize(poll, epsilon=3)

before, after = mean_ranks(poll), mean_ranks(release.value)
for item in sorted(before, key=before.get):
    print(f"{item:15} mean rank {before[item]:.2f}, synthetic {after[item]:.2f}")
print(release.explain())
