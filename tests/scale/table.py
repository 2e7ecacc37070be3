"""DynamoDB in memory: what the ledger asks of it, and the units that each call would cost.

Consistent reads cost a unit for each 4 KB, writes one for each KB, and in transactions both cost
twice as much. A query costs what it reads, a condition that does not hold what it looked at.
Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
(2026-11-24).
"""

import functools
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from botocore.exceptions import ClientError

_PAGE_BYTES: Final = 2**20
_MISSING: Final = object()
Item = dict[str, Any]


def _alone(method: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Let one thread at a time call the table."""

    @functools.wraps(method)
    def call(table: "CountedTable", **asked: Any) -> dict[str, Any]:
        with table.lock:
            return method(table, **asked)

    return call


class CountedTable:
    """A client of DynamoDB with one table, keyed `pk`, `sk`.

    Args:
        called: Called with the name of each call and the bytes of items in its answer.

    Attributes:
        reads: Read units, by partition.
        writes: Write units, by partition.
    """

    def __init__(self, called: Callable[[str, int], object] = lambda name, size: None) -> None:
        self._called = called
        self.lock = threading.RLock()
        self._rows: dict[str, dict[str, Item]] = {}
        self._bytes: dict[tuple[str, str], int] = {}
        self.reads: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()

    def client(self, service: str) -> "CountedTable":
        """Be the session, too."""
        assert service == "dynamodb"
        return self

    @property
    def region(self) -> str:
        """The Region."""
        return "us-east-1"

    @_alone
    def get_item(self, *, Key: Item, **_: Any) -> dict[str, Any]:  # noqa: N803 - DynamoDB's own
        found = self._row(Key)
        size = self._size(Key)
        self._read(Key["pk"]["S"], size)
        self._called("GetItem", size)
        return {"Item": found} if found is not None else {}

    @_alone
    def query(self, *, ExpressionAttributeValues: Item, **asked: Any) -> dict[str, Any]:  # noqa: N803
        pk, prefix = (ExpressionAttributeValues[key]["S"] for key in (":pk", ":prefix"))
        now = int(ExpressionAttributeValues[":now"]["N"])
        after = asked.get("ExclusiveStartKey", {}).get("sk", {"S": ""})["S"]
        rows = self._rows.get(pk, {})
        page: list[Item] = []
        size, more = 0, False
        for sk in sorted(sk for sk in rows if sk.startswith(prefix) and sk > after):
            if size > _PAGE_BYTES:
                more = True
                break
            page.append(rows[sk])
            size += self._bytes[pk, sk]
        self._read(pk, size)
        self._called("Query", size)
        kept = [row for row in page if int(row["expires_at"]["N"]) >= now]
        last = {key: page[-1][key] for key in ("pk", "sk")} if more else None
        return {"Items": kept, **({"LastEvaluatedKey": last} if last else {})}

    @_alone
    def update_item(self, **asked: Any) -> dict[str, Any]:
        self._called("UpdateItem", 0)
        before = self._row(asked["Key"])
        if not _holds(asked, before):
            self._wrote(asked["Key"], self._size(asked["Key"]))
            raise _refused("ConditionalCheckFailedException", Item=before)
        after = _updated(asked, before)
        size = self._size(asked["Key"])
        self._put(after, _size(after))
        self._wrote(asked["Key"], max(size, self._size(asked["Key"])))
        return {"Attributes": after}

    @_alone
    def delete_item(self, **asked: Any) -> dict[str, Any]:
        self._called("DeleteItem", 0)
        before = self._row(asked["Key"])
        self._wrote(asked["Key"], self._size(asked["Key"]))
        if not _holds(asked, before):
            raise _refused("ConditionalCheckFailedException", Item=before)
        self._drop(asked["Key"])
        return {}

    @_alone
    def transact_write_items(self, *, TransactItems: list[Item]) -> dict[str, Any]:  # noqa: N803
        self._called("TransactWriteItems", 0)
        asked = [(kind, request) for item in TransactItems for kind, request in item.items()]
        held, puts = [], []
        for kind, request in asked:
            before, size = self._row(request["Key"]), self._size(request["Key"])
            if kind == "Update":
                after = _updated(request, before)
                puts.append((after, _size(after)))
                size = max(size, puts[-1][1])
            self._wrote(request["Key"], size, times=2)
            held.append(_holds(request, before))
        if not all(held):
            reasons = [{"Code": "None" if fine else "ConditionalCheckFailed"} for fine in held]
            raise _refused("TransactionCanceledException", CancellationReasons=reasons)
        for after, size in puts:
            self._put(after, size)
        for kind, request in asked:
            if kind == "Delete":
                self._drop(request["Key"])
        return {}

    def _row(self, key: Item) -> Item | None:
        return self._rows.get(key["pk"]["S"], {}).get(key["sk"]["S"])

    def _size(self, key: Item) -> int:
        return self._bytes.get((key["pk"]["S"], key["sk"]["S"]), 0)

    def _put(self, row: Item, size: int) -> None:
        pk, sk = row["pk"]["S"], row["sk"]["S"]
        self._rows.setdefault(pk, {})[sk] = row
        self._bytes[pk, sk] = size

    def _drop(self, key: Item) -> None:
        pk, sk = key["pk"]["S"], key["sk"]["S"]
        self._rows.get(pk, {}).pop(sk, None)
        self._bytes.pop((pk, sk), None)

    def _read(self, pk: str, size: int) -> None:
        self.reads[pk] += max(-(-size // 4096), 1)

    def _wrote(self, key: Item, size: int, times: int = 1) -> None:
        self.writes[key["pk"]["S"]] += times * max(-(-size // 1024), 1)


def _updated(asked: Mapping[str, Any], before: Item | None) -> Item:
    """Return a row after `SET #a = :b, … ADD #c :d`, or after `ADD #c :d` alone."""
    row = {**asked["Key"], **(before or {})}
    sets, _, adds = asked["UpdateExpression"].rpartition("ADD ")
    names, values = asked["ExpressionAttributeNames"], asked["ExpressionAttributeValues"]
    for part in sets.removeprefix("SET ").split(", ") if sets else ():
        name, _, value = part.strip().partition(" = ")
        row[names[name]] = values[value]
    for part in adds.split(", "):
        name, value = part.split(" ")
        held = int(row.get(names[name], {"N": "0"})["N"])
        row[names[name]] = {"N": str(held + int(values[value]["N"]))}
    return row


def _holds(asked: Mapping[str, Any], row: Item | None) -> bool:
    """Return whether a condition of the ledger holds: tests that are all AND-ed or all OR-ed."""
    text = asked.get("ConditionExpression")
    if text is None:
        return True
    if " OR " in text:
        plain = text.replace("(pk)", "").replace("(", "").replace(")", "")
        return any(_test(test, asked, row) for test in plain.split(" OR "))
    return all(_test(test, asked, row) for test in text.split(" AND "))


def _test(text: str, asked: Mapping[str, Any], row: Item | None) -> bool:
    if text.startswith("attribute_"):
        return (row is None) == text.startswith("attribute_not_exists")
    name, sign, value = text.split(" ")
    held = (row or {}).get(asked["ExpressionAttributeNames"][name], _MISSING)
    wanted = asked["ExpressionAttributeValues"][value]
    if held is _MISSING:
        return False
    if sign == "=":
        return bool(held == wanted)
    left, right = int(held["N"]), int(wanted["N"])
    return {"<": left < right, "<=": left <= right, ">=": left >= right}[sign]


def _refused(code: str, **more: Any) -> ClientError:
    answer = {"Error": {"Code": code, "Message": code}}
    return ClientError({**answer, **{k: v for k, v in more.items() if v is not None}}, "Write")


def _size(value: Any) -> int:
    """Return the bytes of an item or attribute: names and values as text."""
    if isinstance(value, dict):
        return sum(
            _size(held) if key in _TYPES else len(key) + _size(held) for key, held in value.items()
        )
    if isinstance(value, list):
        return len(value) + sum(map(_size, value))
    return len(str(value))


_TYPES: Final = frozenset({"S", "N", "BOOL", "NULL", "M", "L"})
