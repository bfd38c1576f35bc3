"""Thrift's compact protocol, just enough to take a Parquet footer apart, change a number and put it together again.

A struct is a dict from field numbers to values, a value is a pair (type, content): (1 or 2) a truth value, (3 to 6) a
whole number, (7) the eight bytes of a double, (8) bytes, (9, 10) a pair (element type, contents), (12) a struct.
"""

from __future__ import annotations

from typing import Any

TRUE, FALSE, BYTE, I32, I64, DOUBLE, BYTES, LIST, SET, STRUCT = 1, 2, 3, 5, 6, 7, 8, 9, 10, 12


def parse(data: bytes) -> dict[int, tuple[int, Any]]:
    """The struct that the bytes hold."""
    return _Reader(data).struct()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise ValueError("the structure goes beyond its bytes")
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self) -> int:
        number, shift = 0, 0
        while True:
            byte = self.take(1)[0]
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7

    def signed(self) -> int:
        number = self.varint()
        return number >> 1 ^ -(number & 1)

    def struct(self) -> dict[int, tuple[int, Any]]:
        fields: dict[int, tuple[int, Any]] = {}
        number = 0
        while head := self.take(1)[0]:
            number = number + (head >> 4) if head >> 4 else self.signed()
            fields[number] = (head & 15, self.value(head & 15, inside=False))
        return fields

    def value(self, kind: int, inside: bool) -> Any:
        if kind in (TRUE, FALSE):
            return self.take(1)[0] if inside else None
        if kind == BYTE:
            return self.take(1)[0]
        if kind in (4, I32, I64):
            return self.signed()
        if kind == DOUBLE:
            return self.take(8)
        if kind == BYTES:
            return self.take(self.varint())
        if kind in (LIST, SET):
            head = self.take(1)[0]
            size = head >> 4 if head >> 4 < 15 else self.varint()
            return head & 15, [self.value(head & 15, inside=True) for _ in range(size)]
        if kind == STRUCT:
            return self.struct()
        raise ValueError(f"no such type: {kind}")


def unparse(fields: dict[int, tuple[int, Any]]) -> bytes:
    """The bytes of a struct."""
    parts, before = [], 0
    for number, (kind, content) in fields.items():
        step = number - before
        parts.append(bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + _zigzag(number))
        parts.append(_value(kind, content, inside=False))
        before = number
    return b"".join(parts) + b"\0"


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _zigzag(number: int) -> bytes:
    return _varint(2 * number if number >= 0 else -2 * number - 1)


def _value(kind: int, content: Any, inside: bool) -> bytes:
    if kind in (TRUE, FALSE):
        return bytes([content]) if inside else b""
    if kind == BYTE:
        return bytes([content & 255])
    if kind in (4, I32, I64):
        return _zigzag(content)
    if kind == DOUBLE:
        return bytes(content)
    if kind == BYTES:
        return _varint(len(content)) + bytes(content)
    if kind in (LIST, SET):
        element, contents = content
        head = bytes([len(contents) << 4 | element]) if len(contents) < 15 else bytes([0xF0 | element])
        size = b"" if len(contents) < 15 else _varint(len(contents))
        return head + size + b"".join(_value(element, one, inside=True) for one in contents)
    return unparse(content)


def split(data: bytes) -> tuple[bytes, dict[int, tuple[int, Any]]]:
    """A Parquet file's pages (with the magic bytes before them) and the structure of its footer."""
    size = int.from_bytes(data[-8:-4], "little")
    return data[: -8 - size], parse(data[-8 - size : -8])


def join(pages: bytes, footer: dict[int, tuple[int, Any]]) -> bytes:
    """The file with these pages and this footer."""
    text = unparse(footer)
    return pages + text + len(text).to_bytes(4, "little") + b"PAR1"


def numbers(fields: dict[int, tuple[int, Any]], path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all whole numbers of a struct: field numbers, and places in lists as ("at", place)."""
    paths: list[tuple[Any, ...]] = []
    for number, (kind, content) in fields.items():
        here = (*path, number)
        if kind in (4, I32, I64):
            paths.append(here)
        elif kind == STRUCT:
            paths += numbers(content, here)
        elif kind in (LIST, SET):
            for place, one in enumerate(content[1]):
                if content[0] == STRUCT:
                    paths += numbers(one, (*here, ("at", place)))
                elif content[0] in (4, I32, I64):
                    paths.append((*here, ("at", place)))
    return paths


def get(fields: dict[int, tuple[int, Any]], path: tuple[Any, ...]) -> int:
    """The number at the end of a path."""
    holder, key = _holder(fields, path)
    return int(holder[key][1] if isinstance(holder, dict) else holder[key])


def put(fields: dict[int, tuple[int, Any]], path: tuple[Any, ...], number: int) -> None:
    """Set the number at the end of a path."""
    holder, key = _holder(fields, path)
    holder[key] = (holder[key][0], number) if isinstance(holder, dict) else number


def _holder(fields: dict[int, tuple[int, Any]], path: tuple[Any, ...]) -> tuple[Any, Any]:
    """The dict or list that holds the end of a path, and the key in it."""
    holder: Any = fields
    for step in path[:-1]:
        if isinstance(step, tuple):
            holder = holder[step[1]]
        else:
            kind, content = holder[step]
            holder = content[1] if kind in (LIST, SET) else content
    last = path[-1]
    return holder, last[1] if isinstance(last, tuple) else last
