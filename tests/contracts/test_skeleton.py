"""The skeleton of CONTRIBUTING.md, copied and registered, works wherever a mechanism does."""

import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from support import half_noise, registered, seeded, skeleton

import rankdp
from rankdp.audit import audit_exact, audit_samples, ranking_neighbours, ranking_sampler
from rankdp.cli import cli
from rankdp.data.rankings import Rankings
from rankdp.errors import InputError
from rankdp.mechanisms import MECHANISMS, RankingMechanism, register
from rankdp.planning.plan import plan
from rankdp.report.plots import COLOURS

CSV = "voter,rank_1,rank_2,rank_3\n1,a,b,c\n2,c,a,b\n3,b,a,c\n"


@pytest.fixture
def coin():
    with registered(skeleton()) as kind:
        yield kind
    assert kind.name not in MECHANISMS


def run(*words):
    done = CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_privatize(coin, tmp_path):
    rankings = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]])
    released = rankdp.privatize(rankings, 1, mechanism=coin.name)
    assert released.provenance.mechanism == coin.name
    assert released.guarantee.epsilon == 1
    assert "(epsilon 1 in local differential privacy)" in released.guarantee.explain()
    (tmp_path / "in.csv").write_text(CSV, encoding="utf-8")
    run("privatize", tmp_path / "in.csv", tmp_path / "out.csv", "--epsilon", 1, "--mechanism", coin.name)
    assert len(Rankings.read(tmp_path / "out.csv").orders) == 3
    assert coin.name in run("privatize", "--help").replace("\n", "")


@pytest.mark.slow
def test_plan(coin, tmp_path):
    found = plan("ranking", items=5, epsilon=1)
    (choice,) = [choice for choice in found.choices if choice.name == coin.name]
    assert 0.5 < choice.accuracy["pairs"] < 1
    picture = tmp_path / "plan.png"
    assert coin.name in run("plan", "ranking", "--items", 4, "--epsilon", 1, "-o", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert COLOURS[coin.name] == coin.colour


def test_audits_hold_and_catch_half_the_noise(coin, request):
    honest = coin(4, 1)
    quiet = half_noise(honest)
    exact = audit_exact(honest, bits=seeded(request))
    assert exact.holds
    assert exact.tolerance == 0  # from its table, not from floating point
    assert not audit_exact(quiet, bits=seeded(request)).holds
    options = {"draws": 40_000, "claimed_epsilon": 1}
    neighbours = ranking_neighbours(range(4))
    assert audit_samples(ranking_sampler(honest, seeded(request)), neighbours, **options).holds
    assert not audit_samples(ranking_sampler(quiet, seeded(request)), neighbours, **options).holds
    assert coin.name.capitalize() in run("audit", coin.name, "--items", 3, "--epsilon", 1, "--draws", 4000)


def test_attack_and_aggregate(coin):
    assert coin.name in run("attack", "inference", "--mechanism", coin.name, "--items", 3, "--epsilon", 1)
    assert coin.name in [found.name for found in rankdp.mechanisms.candidates(4, 1)]


def test_names_are_taken_once(coin):
    assert register(coin) is coin  # run again in a notebook
    for name in ("kendall", "auto", "order", "", "Coin", "a b", None):
        with pytest.raises(InputError, match=r"^name must"):
            register(type("Other", (coin,), {"name": name}))
    with pytest.raises(InputError, match="kind must be a subclass of RankingMechanism"):
        register(object)


def test_two_methods_are_enough_for_long_rankings(request):
    """Everything but ``_draw`` and ``_log_prob`` has a default, exact for short rankings and refused for long ones."""

    class Uniform(RankingMechanism):
        name = "uniform"

        def _draw(self, orders, out, bits):
            out[:] = orders[:, np.argsort(bits.words(self.items))]

        def _log_prob(self, relative):
            return np.full(len(relative), -np.log(np.arange(1, self.items + 1)).sum())

    short, long = Uniform(4, 1), Uniform(40, 1)
    assert short.expected_concordance() == pytest.approx(0.5)
    np.testing.assert_allclose(short.position_matrix(), 0.25)
    assert short.local_epsilon() == 3
    assert long.guarantee.whole_ranking_epsilon == 39
    with pytest.raises(rankdp.errors.Unsupported, match="enumerated for up to 8 items, got 40"):
        long.expected_concordance()


def test_the_command_line_loads_mechanisms_only_where_they_are_named():
    code = "import sys, rankdp.cli; print(*{'numpy', 'numba', 'scipy', 'rankdp.mechanisms'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == []
