"""The attacks for people outside the field: pictures, tables and one plain sentence each."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rankdp.attack.inference import PositionAttack, Success
from rankdp.attack.membership import Membership
from rankdp.attack.signature import CURATOR, SignatureAttack
from rankdp.report.document import Report, Table
from rankdp.report.plots import COLOURS, SERIES, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def inference_report(curves: Mapping[str, Sequence[Success]], items: int, epsilon: object) -> Report:
    """The report of the inference attack.

    Parameters
    ----------
    curves
        For each mechanism the attacker's success by the number of releases.
    items
        How many items the secret ranking has.
    epsilon
        The epsilon of each release, as it was asked for.
    """
    facts = {name: [dataclasses.asdict(success) for success in curve] for name, curve in curves.items()}
    rows = [
        [
            str(same[0].releases),
            *(f"{success.probability:.1%} ({success.low:.0%} – {success.high:.0%})" for success in same),
        ]
        for same in zip(*curves.values(), strict=True)
    ]
    return Report(
        title=f"How often attackers find a whole ranking of {items} items, epsilon {epsilon} a release",
        records=[{"mechanism": name, **fact} for name, curve in facts.items() for fact in curve],
        facts=lambda: facts,
        tables=[Table(["releases", *curves], rows)],
        words=[
            f"Each release of a ranking of {items} items costs its epsilon ({epsilon}) again. Publish it once, or keep "
            "the answer and give the same one every time."
        ],
        figure=drawing(lambda axes: _draw_success(curves, axes)),
    )


def position_report(attack: PositionAttack) -> Report:
    """The report of the position attack.

    Parameters
    ----------
    attack
        What ``position_attack`` returned.
    """
    records = [
        {"position": position, "before": before, "after": after}
        for position, (before, after) in enumerate(
            zip(attack.prior.tolist(), attack.posterior.tolist(), strict=True), 1
        )
    ]
    rows = [
        [
            str(record["position"]),
            f"{record['before']:.1%}",
            f"{record['after']:.1%}",
            "█" * round(40 * record["after"]),
        ]
        for record in records
    ]
    return Report(
        title="Where did the item really stand?",
        records=records,
        facts=lambda: {name: getattr(attack, name) for name in ("prior", "posterior", "landed", "odds_factor")},
        tables=[Table(["position", "before", "after", ""], rows, texts=4)],
        words=[attack.explain()],
        figure=drawing(attack.draw),
    )


def votes_report(attack: Membership) -> Report:
    """The report of the score attack on leaderboards.

    Parameters
    ----------
    attack
        What ``membership_experiment`` returned.
    """
    false, true = (rates.tolist() for rates in attack.curve)
    return Report(
        title="Was this vote in the data?",
        records=[{"outside_called_inside": x, "inside_found": y} for x, y in zip(false, true, strict=True)],
        facts=lambda: {
            "area": attack.area,
            "advantage": attack.advantage,
            "bound": attack.advantage_bound,
            "chance": attack.advantage_error,
        },
        words=[attack.explain()],
        figure=drawing(attack.draw),
    )


def signature_report(attack: SignatureAttack) -> Report:
    """The report of the signature attack; every format says that it is not for publication.

    Parameters
    ----------
    attack
        What ``signature_attack`` returned.
    """
    records = [
        {**dataclasses.asdict(row), "unique_share": row.unique / attack.voters, "for_whom": CURATOR}
        for row in attack.shown
    ]
    rows = [
        [str(row.places), f"{row.unique:,}", f"{row.unique / attack.voters:.1%}", f"{row.bound:,}"]
        for row in attack.shown
    ]
    return Report(
        title="What publishing the ballots as they are gives away (for the curator's eyes only)",
        records=records,
        facts=lambda: {
            "for_whom": CURATOR,
            "voters": attack.voters,
            "demanded": attack.demanded,
            "limit": attack.limit,
            "safe_places": attack.safe_places,
            "shown": [dataclasses.asdict(row) for row in attack.shown],
        },
        tables=[Table(["places shown", "unique ballots", "share of all", "voters who could be bound"], rows)],
        words=[CURATOR, attack.explain()],
        figure=drawing(attack.draw),
    )


def _draw_success(curves: Mapping[str, Sequence[Success]], axes: Axes) -> None:
    """The attacker's success against the number of releases, a line with its interval for each mechanism."""
    for number, (name, curve) in enumerate(curves.items()):
        colour = COLOURS.get(name, SERIES[number])
        count = [success.releases for success in curve]
        axes.plot(count, [success.probability for success in curve], "-o", color=colour, markersize=4, label=name)
        low, high = [success.low for success in curve], [success.high for success in curve]
        axes.fill_between(count, low, high, color=colour, alpha=0.2, linewidth=0)
        bounds = [1 - success.error_bound for success in curve]
        if not any(math.isnan(bound) for bound in bounds):
            axes.plot(count, bounds, ":", color=colour, label=f"{name}: at most, by the binomial tail")
    axes.set(
        xlabel="releases of the same ranking",
        ylabel="the attacker finds the whole ranking",
        ylim=(-0.02, 1.02),
        title="Publishing the same ranking again and again",
    )
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.grid(color="0.93")
    axes.legend(frameon=False)
