"""The only source of random bits: an AES-256-CTR keystream, keyed by the operating system.

``SecureBits`` is what releases use. Every thread has its own keystream with its own key, and a
process that finds itself forked throws the inherited keystream away and asks the operating system for a new
key, so no two threads and no two processes ever read the same stream. ``SeededBits`` is the same cipher under
a key made from a seed: it repeats, so whatever is drawn from it is a *rehearsal* and carries no guarantee.
"""

from __future__ import annotations

import hashlib
import os
import threading
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from rankdp.checks import is_whole
from rankdp.errors import InputError
from rankdp.types import Words

_ZEROS = bytes(1 << 18)
_forks = [0]  # since the process that imported the module
if hasattr(os, "register_at_fork"):  # not on Windows, where no process forks
    os.register_at_fork(after_in_child=lambda: _forks.append(_forks.pop() + 1))
_WORDS_PER_KEY = 1 << 34  # far below the 2**64 blocks at which CTR mode could be distinguished from random bits


def _keystream(key: bytes) -> Any:
    return Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()


def _fill(stream: Any, count: int) -> Words:
    words = np.empty(count, dtype="<u8")
    target = words.data.cast("B")
    for start in range(0, len(target), len(_ZEROS)):
        part = target[start : start + len(_ZEROS)]
        stream.update_into(_ZEROS[: len(part)] if len(part) < len(_ZEROS) else _ZEROS, part)
    return words


class Bits(ABC):
    """A source of uniform 64-bit words."""

    #: the seed of a rehearsal; None if the bits are fit for a release
    seed: int | None = None

    @abstractmethod
    def words(self, count: int) -> Words:
        """Fresh words, each uniform over 64 bits.

        Parameters
        ----------
        count
            How many.
        """

    @abstractmethod
    def spawn(self) -> Bits:
        """An independent source for another worker."""


class _Keyed(threading.local):
    process: tuple[int, int] | None = None
    stream: Any = None
    left = 0


class SecureBits(Bits):
    """Cryptographic bits from the operating system's entropy; safe to share over threads and forks."""

    def __init__(self) -> None:
        self._keyed = _Keyed()

    def words(self, count: int) -> Words:
        """Fresh words from the keystream of this thread in this process.

        Parameters
        ----------
        count
            How many.
        """
        keyed = self._keyed
        process = os.getpid(), _forks[0]  # a process id can be used again, a number of forks cannot
        if keyed.process != process or keyed.left < count:
            keyed.stream, keyed.process = _keystream(os.urandom(32)), process
            keyed.left = max(_WORDS_PER_KEY, count)
        keyed.left -= count
        return _fill(keyed.stream, count)

    def spawn(self) -> SecureBits:
        """Another source with its own keys."""
        return SecureBits()


class SeededBits(Bits):
    """The same words again for the same seed: for rehearsals, tests and figures, never for a release.

    Parameters
    ----------
    seed
        Any integer; a value drawn with it is labelled a rehearsal and carries no guarantee.
    """

    def __init__(self, seed: int, _path: str = "") -> None:
        if not is_whole(seed):
            raise InputError(f"seed must be an integer, got {seed!r}")
        self.seed = int(seed)
        self._path, self._children = _path, 0
        self._lock = threading.Lock()
        self._stream = _keystream(hashlib.sha256(f"rankdp rehearsal {self.seed}{_path}".encode()).digest())

    def words(self, count: int) -> Words:
        """The next words of this seed.

        Parameters
        ----------
        count
            How many.
        """
        with self._lock:
            return _fill(self._stream, count)

    def spawn(self) -> SeededBits:
        """The next child of this seed: the same one each time the program runs."""
        with self._lock:
            self._children += 1
            return SeededBits(self.seed or 0, f"{self._path}/{self._children}")


def seeded(bits: Bits | None, seed: int | None) -> Bits | None:
    """The bits for a function that takes ``bits`` or ``seed``: a seed makes a rehearsal; both together are refused."""
    if seed is None:
        return bits
    if bits is not None:
        raise InputError(f"give bits or seed, not both; got seed {seed!r} and {bits!r}")
    return SeededBits(seed)
