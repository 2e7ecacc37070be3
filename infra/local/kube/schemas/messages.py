"""Reads the protobuf bodies of typed clients, such as `kubectl create deployment`, as JSON.

The messages are in `message_table.txt`, which `tools/make_message_table.py` writes. One message a
line: its name, then `number=field:type`. Types: s string, i integer, b boolean, d double, y bytes,
q quantity, x integer or string, t time, u time with microseconds, j JSON as bytes, otherwise the
name of a message; `[]` before it means a list, `{}` a map, `^` that JSON writes its fields into the
object around it. `!` after a scalar: its zero is kept, as a pointer's.

Source: `generated.proto` and `types.go` of k8s.io/api and k8s.io/apimachinery 0.35.4 (Apache-2.0);
the envelope: https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding and
https://protobuf.dev/programming-guides/encoding/, read 2026-11-24.
"""

import base64
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import orjson

from infra.local.kube.errors import ApiError, JsonObject, bad_request
from infra.local.kube.kinds import type_name

MAGIC: Final = b"k8s\0"
MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SCALARS: Final = frozenset("sibdy")


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageField:
    """One field of a message.

    Attributes:
        code: A code of the table, or the name of a message.
        shape: `[]`, `{}`, `^`, or empty for one value.
        keeps_zero: Whether JSON shows it when it is zero.
    """

    name: str
    code: str
    shape: str
    keeps_zero: bool


def _parse_field(text: str) -> MessageField:
    name, _, kind = text.partition(":")
    shape = next((mark for mark in ("[]", "{}", "^") if kind.startswith(mark)), "")
    code = kind.removeprefix(shape)
    return MessageField(
        name=name, code=code.rstrip("!"), shape=shape, keeps_zero=code.endswith("!")
    )


@cache
def messages() -> dict[str, dict[int, MessageField]]:
    table = Path(__file__).with_name("message_table.txt").read_text(encoding="utf-8")
    found = {}
    for line in table.strip().replace("\n ", " ").split("\n"):
        name, _, pairs = line.partition(":")
        split = (pair.split("=", 1) for pair in pairs.split())
        found[name] = {int(number): _parse_field(text) for number, text in split}
    return found


def decode(body: bytes) -> JsonObject:
    """Return the object in a protobuf body."""
    if not body.startswith(MAGIC):
        raise bad_request("the body of the request does not begin as Kubernetes protobuf does")
    try:
        envelope = dict(_fields(body[len(MAGIC) :]))
        names = dict(_fields(envelope.get(1, b"")))
        version, kind = (bytes(names.get(number, b"")).decode() for number in (1, 2))
        message = _message_name(version, kind)
        if message not in messages():
            told = f"{kind} in version {version!r} is read as JSON here, not as {MEDIA_TYPE}"
            raise ApiError(415, "UnsupportedMediaType", told)
        content = _read_message(envelope.get(2, b""), message)
    except (ValueError, TypeError, IndexError, OverflowError, struct.error) as error:
        raise bad_request(f"the body of the request cannot be decoded: {error}") from error
    return {"kind": kind, "apiVersion": version} | content


def _message_name(version: str, kind: str) -> str:
    if kind == "DeleteOptions":
        # Each group registers it, so it comes with the version of what is deleted.
        return "meta.DeleteOptions"
    group, _, number = version.rpartition("/")
    return type_name(group, number, kind)


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield (number, value) of each field: an int, or the bytes of what is longer."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if wire == _BYTES:
            length, at = _varint(data, at)
        elif wire in {_FIXED64, _FIXED32}:
            length = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire} is not known")
        if at + length > len(data):
            raise ValueError("it ends inside a field")
        yield tag >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def _read_message(data: bytes, name: str) -> JsonObject:
    known = messages()[name]
    found: JsonObject = {}
    for number, value in _fields(data):
        field = known.get(number)
        if field is None:
            continue
        if field.shape == "[]":
            found.setdefault(field.name, []).append(_read(value, field.code))
        elif field.shape == "{}":
            entry = dict(_fields(value))
            key = bytes(entry.get(1, b"")).decode()
            found.setdefault(field.name, {})[key] = _read(entry.get(2, b""), field.code)
        elif field.shape == "^":
            found |= _read(value, field.code)
        else:
            read = _read(value, field.code)
            if read or field.keeps_zero or field.code not in _SCALARS:
                found[field.name] = read
    return found


def _read(value: Any, code: str) -> Any:
    reader = _READERS.get(code)
    return _read_message(value, code) if reader is None else reader(value)


def _integer(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _text(value: bytes) -> str:
    return bytes(value).decode()


def _double(value: bytes) -> float:
    return float(struct.unpack("<d", value)[0])


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _json(value: bytes) -> Any:
    raw = dict(_fields(value)).get(1)
    return orjson.loads(raw) if raw else None


def _quantity(value: bytes) -> str:
    return _text(dict(_fields(value)).get(1, b""))


def _integer_or_text(value: bytes) -> int | str:
    parts = dict(_fields(value))
    return _text(parts.get(3, b"")) if parts.get(1) else _integer(parts.get(2, 0))


def _time(value: bytes, precision: str) -> str | None:
    parts = dict(_fields(value))
    if not parts:
        return None
    span = timedelta(
        seconds=_integer(parts.get(1, 0)), microseconds=_integer(parts.get(2, 0)) // 1000
    )
    return (_EPOCH + span).isoformat(timespec=precision).replace("+00:00", "Z")


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "s": _text,
    "i": _integer,
    "b": bool,
    "d": _double,
    "y": _base64,
    "q": _quantity,
    "x": _integer_or_text,
    "t": partial(_time, precision="seconds"),
    "u": partial(_time, precision="microseconds"),
    "j": _json,
}
