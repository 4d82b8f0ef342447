"""Ways to damage a file. Each returns the new content, or None to delete the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

#: (the content of the file, contents of other files of its kind, random numbers) -> the new content. Others may be empty.
Damage = Callable[[bytes, Sequence[bytes], Random], bytes | None]


def flip_bit(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    at = chance.randrange(len(data) * 8)
    return data[: at // 8] + bytes([data[at // 8] ^ 1 << at % 8]) + data[at // 8 + 1 :]


def change_byte(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def change_bytes(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    for _ in range(chance.randint(2, 9)):
        data = change_byte(data, others, chance)
    return data


def cut(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    return data[: chance.randrange(len(data))]


def cut_a_little(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    return data[: -chance.randint(1, min(8, len(data)))]


def extend(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    return data + chance.randbytes(chance.randint(1, 40))


def extend_by_itself(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    return data + data


def zero_block(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    start = chance.randrange(len(data))
    length = min(chance.choice([4, 16, 64, 512]), len(data) - start)
    return data[:start] + bytes(length) + data[start + length :]


def zero_all(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    return bytes(len(data))


def drop_block(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.randint(1, 32) :]


def repeat_block(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    start = chance.randrange(len(data))
    end = start + chance.randint(1, 64)
    return data[:end] + data[start:end] + data[end:]


def empty(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    return b""


def noise(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    return chance.randbytes(len(data))


def swap(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    return chance.choice(others) if others else b""


def swap_of_the_same_size(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    same = [other for other in others if len(other) == len(data)]
    return chance.choice(same) if same else swap(data, others, chance)


def mix(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + swap(data, others, chance)[at:]


def delete(data: bytes, others: Sequence[bytes], chance: Random) -> None:
    return None


DAMAGES: tuple[Damage, ...] = (
    flip_bit,
    flip_bit,
    flip_bit,
    change_byte,
    change_byte,
    change_bytes,
    cut,
    cut_a_little,
    extend,
    extend_by_itself,
    zero_block,
    zero_all,
    drop_block,
    repeat_block,
    empty,
    noise,
    swap,
    swap_of_the_same_size,
    mix,
    delete,
)
