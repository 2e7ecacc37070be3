from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws
from moto.ec2.models import amis

from shared.aws.ledger.ledger import DynamoLedger
from shared.aws.session import Session
from shared.ports import Ledger
from tests.contract.aws.places import IMAGE, Place, furnish
from tests.contract.aws.values import BUCKET, TABLE, session
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import FakeLedger
from tests.once import shared_service_models
from tests.scale.table import CountedTable


@pytest.fixture(scope="session", autouse=True)
def _loaded_once() -> Iterator[None]:
    """Let all sessions share the models of services, and each emulated EC2 know one image.

    Reading models, and making a thousand images, is most of what many tests would take.
    """
    with shared_service_models(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(amis, "AMIS", [entry for entry in amis.AMIS if entry["ami_id"] == IMAGE])
        yield


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="session")
def shared_session() -> Session:
    """One session for all tests: making clients takes longer than the tests."""
    return session(FakeClock())


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, shared_session: Session) -> Iterator[Session]:
    """A session in an AWS of this test alone, in this process."""
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        yield shared_session


@pytest.fixture
def table(aws: Session) -> str:
    aws.client("dynamodb").create_table(
        TableName=TABLE,
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    return TABLE


@pytest.fixture
def place(aws: Session) -> Place:
    return furnish(aws)


@pytest.fixture
def bucket(aws: Session) -> str:
    aws.client("s3").create_bucket(Bucket=BUCKET)
    return BUCKET


@pytest.fixture(params=["fake", "counted", "dynamo"])
def ledger(request: pytest.FixtureRequest, clock: FakeClock) -> Ledger:
    if request.param == "fake":
        return FakeLedger()
    if request.param == "counted":
        counted: Any = CountedTable()
        return DynamoLedger(counted, table=TABLE, clock=clock)
    return DynamoLedger(
        request.getfixturevalue("aws"), table=request.getfixturevalue("table"), clock=clock
    )
