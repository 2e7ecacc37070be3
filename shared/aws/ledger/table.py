"""The ledger's table: single rows, transactions and reads by prefix."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from botocore.exceptions import ClientError
from msgspec import Struct, field

from shared.aws.errors import cancellation_reasons, error_code, translated
from shared.aws.ledger.dynamodb_values import from_item, to_attribute, to_item
from shared.aws.ledger.row_keys import SCHEMA, Key, seconds
from shared.aws.session import Session
from shared.model.errors import PermanentError
from shared.ports import Clock

_FAILED: Final = "ConditionalCheckFailed"
_FAILED_WRITE: Final = "ConditionalCheckFailedException"
_TRANSACTION_CONFLICT: Final = frozenset({"TransactionConflict", "TransactionConflictException"})
_TRIES: Final = 10
_CANCELLED: Final = "TransactionCanceledException"
# DynamoDB accepts items of 400 KB, names of attributes included.
_MOST_BYTES: Final = 400_000

T = TypeVar("T")


def ignore_notice(text: str) -> None:
    """Ignore a notice."""
    del text


class ConditionExpression(Struct, frozen=True, kw_only=True):
    """A condition expression of DynamoDB; `#name` is an attribute, `:name` a value.

    Every name in `names` may be written as `#name`.
    """

    text: str
    names: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


# Overwrite the row unconditionally: the last writer wins.
ALWAYS: Final = ConditionExpression(text="(attribute_not_exists(pk) OR attribute_exists(pk))")


def absent(now: datetime) -> ConditionExpression:
    """Return the condition that a row does not exist or has expired."""
    return ConditionExpression(
        text="(attribute_not_exists(pk) OR #expires_at < :now)",
        names=("expires_at",),
        values={"now": seconds(now)},
    )


class WriteResult(Struct, frozen=True, kw_only=True):
    """The result of a conditional write.

    Attributes:
        done: Whether the condition held and the row was written.
        row: The row after the write, or as it was when the condition did not hold; None when there
            is none.
    """

    done: bool
    row: Mapping[str, Any] | None


class LedgerTable:
    """One DynamoDB table, keyed `pk`, `sk`; reads are consistent.

    Args:
        notice: Called with one line for each row that Dovetail did not write.
    """

    def __init__(
        self,
        session: Session,
        table: str,
        clock: Clock,
        notice: Callable[[str], None] = ignore_notice,
    ) -> None:
        self._session = session
        self._table = table
        self._clock = clock
        self._notice = notice

    def now(self) -> datetime:
        """Return the time that rows expire by."""
        return self._clock.now()

    def unchanged(self, row: Mapping[str, Any] | None) -> ConditionExpression:
        """Return the condition that a row is as it was read; None: that it is still absent."""
        if row is None:
            return absent(self.now())
        return ConditionExpression(
            text="#version = :version", names=("version",), values={"version": row["version"]}
        )

    def get(self, key: Key) -> dict[str, Any] | None:
        """Return a row, None when there is none or it has expired.

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
            PermanentError: If a row is of a newer schema: it may be about existing instances.
        """
        found = [self.restored(Key(pk, row["sk"]), row, restore) for row in self.rows(pk, prefix)]
        return [value for value in found if value is not None]

    def restored(
        self, key: Key, row: Mapping[str, Any], restore: Callable[[Mapping[str, Any]], T]
    ) -> T | None:
        """Return the value of a row; None, with a notice, if Dovetail did not write it."""
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
        self,
        key: Key,
        fields: Mapping[str, Any],
        condition: ConditionExpression,
        *,
        count: str = "",
    ) -> WriteResult:
        """Set fields of a row (created if absent), if the condition holds.

        Args:
            count: Name of a field that grows by one.
        """
        update = self.update(key, fields, condition, count=count)
        update |= {"ReturnValues": "ALL_NEW", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        with translated("dynamodb UpdateItem"):
            try:
                answer = _retry_conflicts(lambda: self._client.update_item(**update))
            except ClientError as error:
                if error_code(error) != _FAILED_WRITE:
                    raise
                item = error.response.get("Item")
                return WriteResult(done=False, row=self._ours(item) if item else None)
        return WriteResult(done=True, row=from_item(answer["Attributes"]))

    def remove(self, key: Key, condition: ConditionExpression | None = None) -> None:
        """Remove a row if it exists and meets the condition."""
        delete = self.delete(key, condition)
        with translated("dynamodb DeleteItem"):
            try:
                _retry_conflicts(lambda: self._client.delete_item(**delete))
            except ClientError as error:
                if error_code(error) != _FAILED_WRITE:
                    raise

    def transact(self, items: Sequence[Mapping[str, Any]]) -> tuple[bool, ...]:
        """Write all items or none.

        Returns:
            For each item whether its condition held: all True when everything was written.

        Raises:
            ConflictError: If it conflicted with other transactions.
        """
        with translated("dynamodb TransactWriteItems"):
            try:
                _retry_conflicts(
                    lambda: self._client.transact_write_items(TransactItems=list(items))
                )
            except ClientError as error:
                reasons = cancellation_reasons(error)
                if error_code(error) != _CANCELLED or not set(reasons) <= {"None", _FAILED}:
                    raise
                return tuple(reason != _FAILED for reason in reasons)
        return (True,) * len(items)

    def update(
        self,
        key: Key,
        fields: Mapping[str, Any],
        condition: ConditionExpression,
        *,
        count: str = "",
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

    def check(self, key: Key, condition: ConditionExpression) -> dict[str, Any]:
        """Return a condition on a row that a transaction does not write."""
        return self.delete(key, condition)

    def delete(self, key: Key, condition: ConditionExpression | None = None) -> dict[str, Any]:
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


def _retry_conflicts(call: Callable[[], Any]) -> Any:
    """Return the answer of a write, retried while it conflicts with another transaction.

    Setting the dirty mark of a lease conflicts with its holder's fenced writes, and neither may
    fail because of that. A transaction takes milliseconds, as does a retry.
    """
    for _ in range(_TRIES - 1):
        try:
            return call()
        except ClientError as error:
            if error_code(error) not in _TRANSACTION_CONFLICT and not _TRANSACTION_CONFLICT & {
                *cancellation_reasons(error)
            }:
                raise
    return call()


def _plain_text(item: Mapping[str, Any], name: str) -> str:
    return str(item.get(name, {}).get("S", ""))
