"""Java's modified UTF-8 (``DataOutput.writeUTF``): NUL in two bytes, other planes as two surrogates of three each."""

from __future__ import annotations


def encode_modified_utf8(text: str) -> bytes:
    """The bytes of a text, without their length."""
    units = text.encode("utf-16-be", "surrogatepass")
    chars = [units[at : at + 2].decode("utf-16-be", "surrogatepass") for at in range(0, len(units), 2)]
    return "".join(chars).encode("utf-8", "surrogatepass").replace(b"\x00", b"\xc0\x80")


def decode_modified_utf8(data: bytes) -> str:
    """The text of some bytes. Raises UnicodeDecodeError where they are none."""
    text = data.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
