"""How often a plan asks the ledger and writes decisions, counted on the real adapter."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from moto import mock_aws

from shared.aws.ledger.ledger import DynamoLedger
from shared.aws.session import Session
from shared.instance_types.catalog import embedded_catalog
from shared.model.kubernetes.pods import Pod
from shared.model.values import replace
from tests.builders import pod, provisioner
from tests.unit.nodes.launch.launches import two_nodes
from tests.unit.worlds import SECOND, World
from tools.cost_model import assumed

pytestmark = pytest.mark.landing

TABLE = "ledger"
# The sizes of rows differ with names of clusters and Provisioners.
SLACK = 1.25


@dataclass(slots=True)
class Meter:
    """Read and write units as DynamoDB bills them.

    Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
    (2026-08): 1 KB of the whole item a write, twice that in a transaction, conditions included;
    4 KB a consistent read, which no query here reaches.

    Attributes:
        sizes: Bytes of each row as far as they were seen, by key.
    """

    sizes: dict[str, int]
    reads: int = 0
    writes: int = 0

    def note(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        """Count one call."""
        match model.name:
            case "GetItem" | "Query":
                self.reads += 1
            case "TransactWriteItems":
                for action in params["TransactItems"]:
                    (one,) = action.values()
                    self.writes += 2 * self._units(one)
            case _:
                self.writes += self._units(params)

    def _units(self, params: dict[str, Any]) -> int:
        key = json.dumps(params["Key"])
        if "UpdateExpression" in params:
            # All rows but the lease are written whole: what is asked for is what stands then.
            names, values = (params[f"ExpressionAttribute{part}"] for part in ("Names", "Values"))
            text = [*names.values(), *(str(v) for value in values.values() for v in value.values())]
            self.sizes[key] = max(
                self.sizes.get(key, 0), sum(len(entry.encode()) for entry in text) + len(key)
            )
        return math.ceil(max(1, self.sizes.get(key, 0)) / 1024)


class Measured:
    """A world whose ledger is DynamoDB's, and what one plan in it takes."""

    def __init__(self, session: Session, world: World) -> None:
        self.world = world
        self._client = session.client("dynamodb")
        key = {"AttributeType": "S"}
        self._client.create_table(
            TableName=TABLE,
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[{"AttributeName": "pk", **key}, {"AttributeName": "sk", **key}],
            BillingMode="PAY_PER_REQUEST",
        )
        ledger = DynamoLedger(session, table=TABLE, clock=world.clock)
        self.world.ports = replace(world.ports, ledger=ledger)
        self._sizes: dict[str, int] = {}

    def plan(self) -> tuple[int, int, int]:
        """Plan once; return reads, writes and objects written."""
        meter = Meter(self._sizes)
        self.world.decisions.calls.clear()
        self._client.meta.events.register("provide-client-params.dynamodb", meter.note)
        self.world.provision()
        self._client.meta.events.unregister("provide-client-params.dynamodb", meter.note)
        self.world.advance(5 * SECOND)
        puts = sum(1 for verb, _ in self.world.decisions.calls if verb == "put")
        return meter.reads, meter.writes, puts


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        yield Session(region="us-east-1")


def near(measured: int, name: str) -> bool:
    """Say whether the model's number is at least what is measured, and not far above."""
    return measured <= assumed(name) <= SLACK * measured + 1


def grown(number: int) -> Pod:
    """Return a small pod with a name and a uid as long as those of a Deployment."""
    uid = f"0b5d7a52-63c1-4c8e-9c0e-{number:012}"
    return pod(f"checkout-service-6c9f7d5b8-{number:05}", namespace="shop", uid=uid, cpu=150)


def test_a_plan_that_buys_takes_what_the_cost_model_says(session: Session) -> None:
    measured = Measured(session, World(provisioner(), grown(0)))
    reads, writes, objects = measured.plan()

    assert len(measured.world.alive) == 1
    assert near(reads, "buy_reads"), reads
    assert near(writes, "buy_writes"), writes
    assert objects == assumed("buy_objects")


def test_plans_that_find_room_in_what_is_bought_take_what_the_cost_model_says(
    session: Session,
) -> None:
    measured = Measured(session, World(provisioner(), grown(0)))
    measured.plan()
    looks = round(assumed("pods_a_node")) - 1
    writes = 0
    for number in range(looks):
        measured.world.cluster.add(grown(1 + number))
        reads, written, objects = measured.plan()
        writes += written

        assert near(reads, "look_reads"), reads
        assert objects == assumed("look_objects")
    assert len(measured.world.alive) == 1
    assert near(math.ceil(writes / looks), "look_writes"), writes


def test_a_decision_is_as_large_as_the_cost_model_says() -> None:
    types = embedded_catalog().instance_types
    world = World(provisioner(), grown(0), types=types)
    world.provision()
    (size,) = (
        len(document)
        for key, document in world.decisions.documents.items()
        if key.endswith(".json.gz")
    )

    assert near(size, "decision_bytes"), size


def test_a_plan_without_pending_pods_takes_what_the_cost_model_says(
    session: Session,
) -> None:
    measured = Measured(session, World(provisioner(), pod("a")))
    measured.plan()
    reads, writes, objects = measured.plan()

    assert near(reads, "again_reads"), reads
    assert near(writes, "again_writes"), writes
    assert objects == 0


def test_another_node_in_the_same_plan_takes_what_the_cost_model_says(session: Session) -> None:
    measured = Measured(session, two_nodes())
    _, writes, _ = measured.plan()

    assert len(measured.world.alive) == 2
    assert near(writes - round(assumed("buy_writes")), "node_more_writes"), writes
