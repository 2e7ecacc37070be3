"""Copies in S3 and in memory keep the same promises."""

import pytest

from shared.aws.copies import BucketCopies
from shared.aws.session import Session
from shared.model.errors import NotFoundError, UnavailableError
from shared.ports.copies import Copies
from tests.contract.aws.canned import canned
from tests.fakes.copies import FakeCopies

KEY = "test/0123456789abcdef/pods"


@pytest.fixture(params=["fake", "bucket"])
def copies(request: pytest.FixtureRequest) -> Copies:
    if request.param == "fake":
        return FakeCopies()
    return BucketCopies(request.getfixturevalue("aws"), bucket=request.getfixturevalue("bucket"))


def test_what_was_written_last_is_read(copies: Copies) -> None:
    for document in (b"one", bytes(range(256))):
        copies.put(KEY, document)
    assert copies.get(KEY) == bytes(range(256))


def test_a_copy_that_was_not_written_is_not_found(copies: Copies) -> None:
    with pytest.raises(NotFoundError):
        copies.get(KEY)


def test_a_bucket_that_is_ill_is_unavailable(aws: Session, bucket: str) -> None:
    with (
        canned(aws, "s3", "GetObject", (503, "ServiceUnavailable")),
        pytest.raises(UnavailableError),
    ):
        BucketCopies(aws, bucket=bucket).get(KEY)
