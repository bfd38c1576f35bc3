"""A private leaderboard from made-up votes, with all votes of each person protected."""

import numpy as np
import pyarrow as pa

import rankdp

random = np.random.default_rng(1)
dishes = ["ramen", "tacos", "pizza", "curry", "salad", "soup"]
appeal = np.array([0.9, 0.6, 0.4, 0.0, -0.7, -1.2])
left, right = random.integers(0, 6, 40_000), random.integers(0, 6, 40_000)
left, right = left[left != right], right[left != right]
wins = random.random(len(left)) < 1 / (1 + np.exp(appeal[right] - appeal[left]))
votes = pa.table(
    {
        "voter": random.integers(0, 3000, len(left)),
        "left": [dishes[i] for i in left],
        "right": [dishes[i] for i in right],
        "winner": np.where(wins, "left", "right"),
    }
)

release = rankdp.rank(votes, epsilon=1, protect="voter", max_per_voter=10, items=dishes, top=3)
for row in release.value.rows():
    print(f"{row['item']:6} {row['score']:6.2f} in [{row['low']:.2f}, {row['high']:.2f}], rank {row['rank']}")
print(release.explain())
