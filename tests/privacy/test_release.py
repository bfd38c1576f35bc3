"""A release has a guarantee, a rehearsal has none, and nobody can confuse the two."""

import datetime
import json
from fractions import Fraction

import pytest

import rankdp
from rankdp.errors import InputError
from rankdp.privacy.bits import SecureBits, SeededBits
from rankdp.privacy.guarantee import ITEM_POSITION, Guarantee
from rankdp.privacy.release import Provenance, Release

GUARANTEE = Guarantee(ITEM_POSITION, Fraction(1), whole_ranking_epsilon=Fraction(2))


def provenance(bits):
    return Provenance.now("kendall", {"items": 4, "epsilon": "1"}, bits)


def test_provenance_says_what_when_and_by_which_version():
    source = provenance(SecureBits())
    assert (source.mechanism, source.seed, source.version) == ("kendall", None, rankdp.__version__)
    when = datetime.datetime.fromisoformat(source.when)
    assert when.utcoffset() == datetime.timedelta(0)
    assert abs(when - datetime.datetime.now(datetime.UTC)) < datetime.timedelta(minutes=1)


def test_a_release():
    release = Release([1, 2], GUARANTEE, provenance(SecureBits()))
    assert not release.rehearsal
    assert release.explain() == GUARANTEE.explain()
    data = json.loads(json.dumps(release.to_dict()))
    assert Guarantee.from_dict(data["guarantee"]) == GUARANTEE
    assert data["rehearsal"] is None
    assert data["parameters"] == {"items": 4, "epsilon": "1"}
    assert "value" not in data
    assert "REHEARSAL" not in repr(release)


@pytest.mark.parametrize("seed", [0, 7])
def test_a_rehearsal_says_so_everywhere(seed):
    rehearsal = Release([1, 2], None, provenance(SeededBits(seed)))
    assert rehearsal.rehearsal
    data = json.loads(json.dumps(rehearsal.to_dict()))
    assert data["guarantee"] is None
    assert data["rehearsal"]["seed"] == seed
    for text in (rehearsal.explain(), repr(rehearsal), data["rehearsal"]["warning"]):
        assert "REHEARSAL, NOT PRIVATE" in text
        assert f"seed {seed};" in text


@pytest.mark.parametrize(
    ("guarantee", "bits"), [(GUARANTEE, SeededBits(0)), (GUARANTEE, SeededBits(3)), (None, SecureBits())]
)
def test_the_two_cannot_be_confused(guarantee, bits):
    with pytest.raises(InputError, match="a release must carry a guarantee and a rehearsal must not"):
        Release([1], guarantee, provenance(bits))


def test_a_release_is_frozen():
    release = Release([1], GUARANTEE, provenance(SecureBits()))
    with pytest.raises((AttributeError, TypeError)):
        release.guarantee = None
