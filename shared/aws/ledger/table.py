"""The ledger's table: single rows, transactions and reads by prefix."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

from botocore.exceptions import ClientError

from shared.aws.errors import code_of, reasons_of, translated
from shared.aws.ledger.dynamodb_values import from_item, to_attribute, to_item
from shared.aws.ledger.rows import SCHEMA, Key, seconds
from shared.aws.session import Session
from shared.model.errors import PermanentError
from shared.ports import Clock

_FAILED: Final = "ConditionalCheckFailed"
_FAILED_WRITE: Final = "ConditionalCheckFailedException"
_IN_THE_WAY: Final = frozenset({"TransactionConflict", "TransactionConflictException"})
_TRIES: Final = 10
_CANCELLED: Final = "TransactionCanceledException"
# DynamoDB takes items of 400 KB, names of attributes included.
_MOST_BYTES: Final = 400_000

T = TypeVar("T")


def say_nothing(text: str) -> None:
    """Take a notice and keep it."""
    del text


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition expression of DynamoDB; `#name` is an attribute, `:name` a value.

    Every name in `names` may be written as `#name`.
    """

    text: str
    names: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)


# Whatever stands there is written over: nothing hangs on who was last.
ALWAYS: Final = Condition(text="(attribute_not_exists(pk) OR attribute_exists(pk))")


def absent(now: datetime) -> Condition:
    """Return the condition that a row is not there or its time is over."""
    return Condition(
        text="(attribute_not_exists(pk) OR #expires_at < :now)",
        names=("expires_at",),
        values={"now": seconds(now)},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """How a conditional write ended.

    Attributes:
        row: As it is after the write, or as it was when the condition did not hold; None when
            there is none.
    """

    done: bool
    row: Mapping[str, Any] | None = field(hash=False)


class LedgerTable:
    """One DynamoDB table, keyed `pk`, `sk`; reads are consistent.

    Args:
        notice: Told, in one line, of each row that cannot be read.
    """

    def __init__(
        self,
        session: Session,
        table: str,
        clock: Clock,
        notice: Callable[[str], None] = say_nothing,
    ) -> None:
        self._session = session
        self._table = table
        self._clock = clock
        self._notice = notice

    def now(self) -> datetime:
        """Return the time that rows expire by."""
        return self._clock.now()

    def get(self, key: Key) -> dict[str, Any] | None:
        """Return a row, None when there is none or its time is over.

        Raises:
            PermanentError: If it is of a newer schema.
        """
        with translated("dynamodb GetItem"):
            answer = self._client.get_item(
                TableName=self._table, Key=to_item(key._asdict()), ConsistentRead=True
            )
        row = self._ours(answer["Item"]) if "Item" in answer else None
        return row if row is not None and row["expires_at"] >= seconds(self.now()) else None

    def read(self, pk: str, prefix: str, restore: Callable[[Mapping[str, Any]], T]) -> list[T]:
        """Return the restored rows of a partition whose sort keys have the prefix, in order.

        Rows Dovetail did not write are logged and skipped: they must not stop a cluster.

        Raises:
            PermanentError: If a row is of a newer schema: it may say that machines exist.
        """
        found = [self.restored(Key(pk, row["sk"]), row, restore) for row in self.rows(pk, prefix)]
        return [value for value in found if value is not None]

    def restored(
        self, key: Key, row: Mapping[str, Any], restore: Callable[[Mapping[str, Any]], T]
    ) -> T | None:
        """Return a row restored; None, with a notice, if Dovetail did not write it."""
        try:
            return restore(row)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            self._notice(f"ledger row {key.pk} / {key.sk} is not Dovetail's, skipped: {error!r}")
            return None

    def _ours(self, item: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return an item as a row, None if Dovetail did not write it."""
        place = f"{_plain_text(item, 'pk')} / {_plain_text(item, 'sk')}"
        try:
            row = from_item(item)
        except (TypeError, ValueError) as error:
            self._notice(f"ledger row {place} is not Dovetail's, skipped: {error}")
            return None
        schema = row.get("schema")
        if isinstance(schema, int) and schema > SCHEMA:
            raise PermanentError(
                f"ledger row {place} is of schema {schema}, this version reads up to {SCHEMA}: "
                "deploy the newer version again, or rebuild with `dovetail doctor --repair`"
            )
        if not isinstance(row.get("expires_at"), int):
            self._notice(f"ledger row {place} is not Dovetail's, skipped: no expires_at")
            return None
        return row

    def rows(self, pk: str, prefix: str) -> Iterable[dict[str, Any]]:
        """Yield the rows of a partition whose sort key has the prefix, in order of that key."""
        request: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": "pk = :pk AND begins_with(sk, :prefix)",
            "FilterExpression": "expires_at >= :now",
            "ExpressionAttributeValues": to_item(
                {":pk": pk, ":prefix": prefix, ":now": seconds(self.now())}
            ),
            "ConsistentRead": True,
        }
        while True:
            with translated("dynamodb Query"):
                page = self._client.query(**request)
            for item in page["Items"]:
                row = self._ours(item)
                if row is not None:
                    yield row
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def write(
        self, key: Key, fields: Mapping[str, Any], condition: Condition, *, count: str = ""
    ) -> Written:
        """Set fields of a row (made if absent), if the condition holds.

        Args:
            count: Name of a field that grows by one.
        """
        update = self.update(key, fields, condition, count=count)
        update |= {"ReturnValues": "ALL_NEW", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        with translated("dynamodb UpdateItem"):
            try:
                answer = _persist(lambda: self._client.update_item(**update))
            except ClientError as error:
                if code_of(error) != _FAILED_WRITE:
                    raise
                item = error.response.get("Item")
                return Written(done=False, row=self._ours(item) if item else None)
        return Written(done=True, row=from_item(answer["Attributes"]))

    def remove(self, key: Key, condition: Condition | None = None) -> None:
        """Remove a row; one that is gone, or does not meet the condition, is left as it is."""
        delete = self.delete(key, condition)
        with translated("dynamodb DeleteItem"):
            try:
                _persist(lambda: self._client.delete_item(**delete))
            except ClientError as error:
                if code_of(error) != _FAILED_WRITE:
                    raise

    def transact(self, items: Sequence[Mapping[str, Any]]) -> tuple[bool, ...]:
        """Write all items or none.

        Returns:
            For each item whether its condition held: all True when everything was written.

        Raises:
            ConflictError: If other writers were in the way.
        """
        with translated("dynamodb TransactWriteItems"):
            try:
                _persist(lambda: self._client.transact_write_items(TransactItems=list(items)))
            except ClientError as error:
                reasons = reasons_of(error)
                if code_of(error) != _CANCELLED or not set(reasons) <= {"None", _FAILED}:
                    raise
                return tuple(reason != _FAILED for reason in reasons)
        return (True,) * len(items)

    def update(
        self, key: Key, fields: Mapping[str, Any], condition: Condition, *, count: str = ""
    ) -> dict[str, Any]:
        """Return an update as a request or as an item of a transaction."""
        fields = {**fields, "schema": SCHEMA}
        size = len(json.dumps(fields, default=str))
        if size > _MOST_BYTES:
            raise PermanentError(
                f"ledger row {key.pk} / {key.sk}: {size} bytes, DynamoDB takes {_MOST_BYTES}"
            )
        counted = ["version", *([count] if count else [])]
        names = {f"#{name}": name for name in (*fields, *condition.names, *counted)}
        values = {f":set_{name}": value for name, value in fields.items()}
        values |= {f":{name}": value for name, value in condition.values.items()}
        sets = [f"#{name} = :set_{name}" for name in fields]
        adds = [f"#{name} :one" for name in counted]
        return {
            "TableName": self._table,
            "Key": to_item(key._asdict()),
            "UpdateExpression": f"SET {', '.join(sets)} ADD {', '.join(adds)}",
            "ConditionExpression": condition.text,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": {**to_item(values), ":one": to_attribute(1)},
        }

    def check(self, key: Key, condition: Condition) -> dict[str, Any]:
        """Return a condition on a row that a transaction does not write."""
        return self.delete(key, condition)

    def delete(self, key: Key, condition: Condition | None = None) -> dict[str, Any]:
        """Return a removal as a request or as an item of a transaction."""
        request: dict[str, Any] = {"TableName": self._table, "Key": to_item(key._asdict())}
        if condition is None:
            return request
        request["ConditionExpression"] = condition.text
        if condition.names:
            request["ExpressionAttributeNames"] = {f"#{name}": name for name in condition.names}
        if condition.values:
            request["ExpressionAttributeValues"] = {
                f":{name}": to_attribute(value) for name, value in condition.values.items()
            }
        return request

    @property
    def _client(self) -> Any:
        return self._session.client("dynamodb")


def _persist(call: Callable[[], Any]) -> Any:
    """Return the answer of a write, retried while it conflicts with another transaction.

    A dirty mark on a lease conflicts with its holder's fenced writes, and neither may fail for
    that. A transaction takes milliseconds, as does a try.
    """
    for _ in range(_TRIES - 1):
        try:
            return call()
        except ClientError as error:
            if code_of(error) not in _IN_THE_WAY and not _IN_THE_WAY & {*reasons_of(error)}:
                raise
    return call()


def _plain_text(item: Mapping[str, Any], name: str) -> str:
    return str(item.get(name, {}).get("S", ""))
