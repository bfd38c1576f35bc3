"""Streams that never meet: threads, forks, spawns, keys; and rehearsals that repeat."""

import os
import threading

import numpy as np
import pytest
from scipy import stats
from support import LEVEL, seeded

from rankdp.errors import InputError
from rankdp.privacy import bits as module
from rankdp.privacy.bits import SecureBits, SeededBits


@pytest.fixture(autouse=True)
def repeated_noise():
    """Not here: the keys that the operating system gives are what is tested."""


KINDS = [SecureBits, lambda: SeededBits(20)]


def test_threads_sharing_one_source_never_see_the_same_words():
    shared, seen, start = SecureBits(), {}, threading.Barrier(8)

    def draw(name):
        start.wait()
        seen[name] = np.concatenate([shared.words(257) for _ in range(40)])

    threads = [threading.Thread(target=draw, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = np.concatenate(list(seen.values()))
    assert len(everything) == 8 * 40 * 257
    assert len(np.unique(everything)) == len(everything)


def test_threads_one_after_the_other_never_see_the_same_words():
    shared, seen = SecureBits(), [set(SecureBits().words(100).tolist())]
    for _ in range(20):
        thread = threading.Thread(target=lambda: seen.append(set(shared.words(100).tolist())))
        thread.start()
        thread.join()
    assert len(set.union(*seen)) == 21 * 100


def test_every_thread_has_a_key_of_its_own(monkeypatch):
    keys, make = [], module._keystream
    monkeypatch.setattr(module, "_keystream", lambda key: (keys.append((threading.get_ident(), key)), make(key))[1])
    shared, together = SecureBits(), threading.Barrier(5)

    def draw():
        together.wait()
        shared.words(10)
        shared.words(10)
        together.wait()

    threads = [threading.Thread(target=draw) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({thread for thread, _ in keys}) == len({key for _, key in keys}) == len(keys) == 5


def forked_words(source, count):
    """What ``count`` words look like in a forked child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            os.write(write, source.words(count).tobytes())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        received = pipe.read()
    os.waitpid(child, 0)
    return np.frombuffer(received, dtype=np.uint64)


@pytest.mark.slow
@pytest.mark.parametrize("drawn_before", [0, 1, 1000])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_children_and_their_parent_never_share_a_stream(drawn_before):
    source = SecureBits()
    before = source.words(drawn_before)
    children = [forked_words(source, 500) for _ in range(3)]
    after = source.words(500)
    everything = np.concatenate([before, *children, after])
    assert len(everything) == drawn_before + 4 * 500
    assert len(np.unique(everything)) == len(everything)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_process_number_that_comes_back_does_not_bring_the_stream_back(monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 4711)  # the child has, by chance, its ancestor's number
    source = SecureBits()
    source.words(1)
    child = forked_words(source, 500)
    assert not set(child.tolist()) & set(source.words(500).tolist())


def test_a_used_up_key_is_replaced(monkeypatch):
    keys = []
    monkeypatch.setattr(module, "_WORDS_PER_KEY", 100)
    monkeypatch.setattr(module, "_keystream", lambda key, make=module._keystream: (keys.append(key), make(key))[1])
    source = SecureBits()
    words = np.concatenate([source.words(40) for _ in range(10)] + [source.words(1000), source.words(1)])
    assert len(np.unique(words)) == len(words) == 1401
    assert len(set(keys)) == len(keys) == 7  # two calls a key, one key for the long call, one after it
    assert all(len(key) == 32 for key in keys)


def test_two_sources_and_spawned_ones_are_independent():
    source = SecureBits()
    parts = [source.words(300), SecureBits().words(300), source.spawn().words(300), source.spawn().words(300)]
    assert len(np.unique(np.concatenate(parts))) == 1200


def test_a_seed_repeats_and_another_does_not():
    assert np.array_equal(SeededBits(7).words(1000), SeededBits(7).words(1000))
    assert not set(SeededBits(7).words(1000).tolist()) & set(SeededBits(8).words(1000).tolist())
    assert np.array_equal(SeededBits(np.int64(7)).words(5), SeededBits(7).words(5))


def test_how_words_are_asked_for_does_not_change_them():
    one, many = SeededBits(3), SeededBits(3)
    assert np.array_equal(one.words(100_003), np.concatenate([many.words(n) for n in (0, 1, 65_537, 34_465)]))


def test_the_words_of_a_seed_are_pinned():
    """A rehearsal must repeat on every machine and in every version."""
    import hashlib

    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    key = hashlib.sha256(b"rankdp rehearsal 5").digest()
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(80))
    assert SeededBits(5).words(10).tobytes() == stream


def test_spawned_rehearsals_are_deterministic_and_all_different():
    first, again = SeededBits(1), SeededBits(1)
    children = [first.spawn() for _ in range(3)]
    children += [children[0].spawn(), children[1].spawn()]
    twins = [again.spawn() for _ in range(3)]
    twins += [twins[0].spawn(), twins[1].spawn()]
    for child, twin in zip(children, twins, strict=True):
        assert np.array_equal(child.words(200), twin.words(200))
    words = np.concatenate([SeededBits(1).words(200), *[child.words(200) for child in children]])
    assert len(np.unique(words)) == 6 * 200


def test_the_seed_of_a_rehearsal_is_visible_and_secure_bits_have_none():
    assert SeededBits(12).seed == SeededBits(12).spawn().seed == 12
    assert SeededBits(0).seed == SeededBits(0).spawn().seed == 0
    assert SecureBits().seed is None
    assert SecureBits().spawn().seed is None


@pytest.mark.parametrize("seed", [None, 1.0, "1", True, np.float64(2)])
def test_a_seed_is_an_integer(seed):
    with pytest.raises(InputError, match="seed must be an integer, got"):
        SeededBits(seed)


@pytest.mark.parametrize("make", KINDS)
def test_no_words(make):
    assert make().words(0).shape == (0,)


def test_words_look_random(request):
    bits = seeded(request)
    words = bits.words(1 << 16)
    assert words.dtype == np.uint64
    ones = np.array([np.count_nonzero(words & np.uint64(1 << place)) for place in range(64)])
    sigma = np.sqrt(len(words)) / 2
    assert stats.chi2.sf(np.sum(((ones - len(words) / 2) / sigma) ** 2), 64) > LEVEL
    for shift in range(0, 64, 8):
        counts = np.bincount((words >> np.uint64(shift) & np.uint64(255)).astype(int), minlength=256)
        assert stats.chisquare(counts).pvalue > LEVEL


def test_secure_words_fill_all_64_bits():
    words = SecureBits().words(2000)  # a place that stays 0 (or 1) throughout: once in 2^1993 runs
    assert np.bitwise_or.reduce(words) == np.uint64(2**64 - 1)
    assert np.bitwise_and.reduce(words) == 0
