"""DynamoDB: one operation at a time, as each is atomic there."""

import threading
from typing import Any

from infra.local.aws.moto_patches import repair, replace

_LOCK = threading.RLock()


@repair("tables-atomic-operations")
def make_operations_atomic() -> None:
    """Lock each operation.

    A transaction copies its tables, and puts the copies back if it fails: a write beside it was
    lost, or broke the copy.
    """
    from moto.dynamodb.responses import DynamoHandler

    stock = DynamoHandler.call_action

    def call_action(self: Any) -> Any:
        with _LOCK:
            return stock(self)

    replace(DynamoHandler, "call_action", call_action)
