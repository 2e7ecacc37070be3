import pytest

from shared.aws.decisions import BucketDecisions
from shared.aws.session import Session
from shared.model.errors import ConflictError, NotFoundError, UnavailableError
from shared.ports import Decisions
from tests.contract.aws.canned import canned
from tests.fakes.decisions import FakeDecisions

KEY = "decisions/test/p1.json"


@pytest.fixture(params=["fake", "bucket"])
def decisions(request: pytest.FixtureRequest) -> Decisions:
    if request.param == "fake":
        return FakeDecisions()
    return BucketDecisions(request.getfixturevalue("aws"), bucket=request.getfixturevalue("bucket"))


def test_a_document_is_read_back_byte_for_byte(decisions: Decisions) -> None:
    document = bytes(range(256)) * 40
    decisions.put(KEY, document)
    assert decisions.get(KEY) == document


def test_the_same_bytes_may_be_written_again_and_others_may_not(decisions: Decisions) -> None:
    decisions.put(KEY, b"one")
    decisions.put(KEY, b"one")
    with pytest.raises(ConflictError):
        decisions.put(KEY, b"two")
    assert decisions.get(KEY) == b"one"


def test_document_that_was_not_written_is_not_found(decisions: Decisions) -> None:
    with pytest.raises(NotFoundError):
        decisions.get(KEY)


@pytest.mark.parametrize("kind", ["fake", "bucket"])
def test_keys_are_listed_by_prefix_in_order(kind: str, aws: Session, bucket: str) -> None:
    found = FakeDecisions() if kind == "fake" else BucketDecisions(aws, bucket=bucket)
    for name in ("b/2", "a/1", "b/1"):
        found.put(f"decisions/{name}", b"one")
    assert found.keys("decisions/b/") == ("decisions/b/1", "decisions/b/2")
    assert found.keys("decisions/b/", "decisions/b/1") == ("decisions/b/2",)
    assert found.keys("decisions/b/", "decisions/a/9") == ("decisions/b/1", "decisions/b/2")
    assert found.keys("decisions/c/") == ()


def test_two_writers_at_once_are_a_conflict(aws: Session, bucket: str) -> None:
    with (
        canned(aws, "s3", "PutObject", (409, "ConditionalRequestConflict")),
        pytest.raises(ConflictError),
    ):
        BucketDecisions(aws, bucket=bucket).put(KEY, b"one")


def test_a_bucket_that_is_ill_is_unavailable(aws: Session, bucket: str) -> None:
    with (
        canned(aws, "s3", "PutObject", (503, "ServiceUnavailable")),
        pytest.raises(UnavailableError),
    ):
        BucketDecisions(aws, bucket=bucket).put(KEY, b"one")
