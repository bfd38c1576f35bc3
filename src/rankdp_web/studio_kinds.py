"""What the studio says about the four kinds of data: words, small pictures and goals, as data and nothing else.

A unit of protection is shown as a small table with some cells marked: what may be changed between neighbours. What it
does *not* protect is stated by the guarantee itself (``Guarantee.limits``), or by a sentence here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rankdp.mechanisms.ballots.protection import BallotProtection
from rankdp.mechanisms.votes.protection import Protection
from rankdp.privacy.guarantee import ITEM_POSITION, ONE_SCORE, WHOLE_RANKING
from rankdp.publish.ballot_rules import RULES

Cells = frozenset[tuple[int, int]]


def _row(row: int, *columns: int) -> Cells:
    return frozenset((row, column) for column in columns)


@dataclass(frozen=True, slots=True)
class Unit:
    """Something that can be protected."""

    name: str
    """The word of ``protect``."""
    title: str
    words: str
    marked: Cells
    """The cells of the kind's sample, by row and column, that are protected together."""
    limits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Goal:
    """A way to say how good a release must be; ``ask`` is what ``rankdp.plan`` calls it."""

    name: str
    words: str
    ask: str
    usual: float
    unit: str = "%"
    """What the number is in: percent of a share, or the words behind it."""


WINNER = Goal("winner", "The winner is right, with a probability of", "overlap", 0.95)
RIGHT_WINNER = Goal("winner", "The winner is right, with a probability of", "right_winner", 0.95)
PAIRS = Goal("pairs", "Share of pairs in order:", "pairs", 0.9)
TOP = Goal("top", "Share of the top list that belongs there:", "overlap", 0.9)
HALF_WIDTH = Goal("half-width", "95% of scores are off by at most", "half_width", 0.2, "points")
TALLY = Goal("tally", "95% of tallies are off by at most", "tally", 25, "votes")
WIN_RATE = Goal("win-rate", "95% of the poll's win rates are off by at most", "win_rate", 0.03)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of data and what becomes of it."""

    name: str
    title: str
    becomes: str
    heading: str
    rows: str
    """What its rows are called."""
    situation: str
    option: str
    """What the verb calls the choice between the planner's options."""
    units: tuple[Unit, ...]
    goals: tuple[Goal, ...]
    sample: tuple[tuple[str, ...], ...]
    own_choice: str = ""
    """The option that lets the verb choose, if there is one."""
    usual: str = ""
    """The option that is proposed, if not the planner's best."""
    number: str = ""
    """What the planner calls the number of rows, if it asks for it."""
    option_words: dict[str, str] = field(default_factory=dict)
    asked_first: str = ""
    """The question for the option, if a person must answer it before there is a plan."""

    def unit(self, name: str) -> Unit:
        """The unit of this name, the first where there is none."""
        return next((unit for unit in self.units if unit.name == name), self.units[0])

    def goal(self, name: str) -> Goal:
        """The goal of this name, the first where there is none."""
        return next((goal for goal in self.goals if goal.name == name), self.goals[0])


_RANKED = (("ann", "tea", "milk", "juice"), ("bob", "milk", "juice", "tea"), ("eve", "juice", "tea", "milk"))
_ONE_HOLDER = "Which names are on the list, and how many scores there are, is public."

KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "ballots",
            "Ballots",
            "the result of an election",
            "Election result",
            "ballots",
            "election",
            "rule",
            (
                Unit(
                    "ballot",
                    "One ballot",
                    "Nobody can tell from the result what is on any one ballot.",
                    _row(1, 1, 2, 3),
                ),
                Unit(
                    "voter",
                    "Everything a person said, and whether they voted",
                    "Nobody can tell from the result what a person voted for, nor whether they voted at all.",
                    _row(1, 0, 1, 2, 3),
                ),
            ),
            (RIGHT_WINNER, PAIRS, TOP, TALLY),
            _RANKED,
            number="voters",
            option_words=RULES,
            asked_first="Which rule counts the ballots?",
        ),
        Kind(
            "comparisons",
            "Comparisons",
            "a leaderboard",
            "Leaderboard",
            "comparisons",
            "comparisons",
            "method",
            (
                Unit(
                    "comparison",
                    "One comparison",
                    "Nobody can tell who was compared in any one comparison, nor who won it.",
                    _row(1, 1, 2, 3),
                ),
                Unit(
                    "outcome",
                    "One answer",
                    "Nobody can tell who won any one comparison. Who met whom is public, as in a league.",
                    _row(1, 3),
                ),
                Unit(
                    "voter",
                    "Everything a person said",
                    "Nobody can tell anything about all comparisons of one person together.",
                    _row(0, 0, 1, 2, 3) | _row(2, 0, 1, 2, 3),
                ),
            ),
            (WINNER, PAIRS, TOP, HALF_WIDTH),
            (("ann", "tea", "milk", "tea"), ("bob", "tea", "juice", "juice"), ("ann", "milk", "juice", "milk")),
            usual="bradley-terry",
            number="comparisons",
            option_words={
                "bradley-terry": "log-strengths with intervals",
                "wins": "how often each one won: fair where all are compared equally often",
            },
        ),
        Kind(
            "rankings",
            "Rankings",
            "a synthetic copy of every ranking, and their averages",
            "Averages of the rankings",
            "rankings",
            "ranking",
            "mechanism",
            (
                Unit(
                    "position",
                    "One position",
                    "Nobody can tell with confidence where a person put any one item, not even whoever holds the "
                    "copies.",
                    _row(1, 2),
                    limits=(
                        "All positions of a ranking together are protected less; the promise on the last page says "
                        "how much less.",
                    ),
                ),
                Unit(
                    "ranking",
                    "One whole ranking",
                    "Nobody can tell with confidence anything about how a person ranked the items, not even whoever "
                    "holds the copies.",
                    _row(1, 1, 2, 3),
                ),
            ),
            (PAIRS, TOP, WINNER, WIN_RATE),
            _RANKED,
            own_choice="auto",
            usual="auto",
            number="voters",
            option_words={"auto": "the one that needs the fewest respondents at this epsilon"},
        ),
        Kind(
            "scores",
            "Scores",
            "the same scores with noise on each",
            "Scores",
            "scores",
            "scores",
            "noise",
            (
                Unit(
                    "score",
                    "One score",
                    "Nobody can tell with confidence what any one score is.",
                    _row(1, 1),
                    limits=(_ONE_HOLDER, "A person behind several scores is protected less."),
                ),
            ),
            (PAIRS, WINNER, TOP, HALF_WIDTH),
            (("tea", "4.5"), ("milk", "2.0"), ("juice", "5.0")),
        ),
    )
}


def protects(kind: str, unit: str, max_per_voter: int | None) -> str:
    """The unit in the words of guarantees and budgets."""
    if kind == "comparisons":
        return Protection.of(unit, max_per_voter if unit == "voter" else None).protects
    if kind == "ballots":
        return BallotProtection(unit).protects
    if kind == "rankings":
        return WHOLE_RANKING if unit == "ranking" else ITEM_POSITION
    return ONE_SCORE
