"""Copies in S3, overwritten."""

from typing import Any

from typing_extensions import override

from shared.aws.errors import translated
from shared.aws.session import Session
from shared.ports.copies import Copies


class BucketCopies(Copies):
    """Implements shared.ports.copies.Copies on one bucket, under `copies/`."""

    def __init__(self, session: Session, *, bucket: str) -> None:
        self._session = session
        self._bucket = bucket

    @override
    def put(self, key: str, document: bytes) -> None:
        """Replace the document atomically.

        Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel
        (2026-11-25).
        """
        with translated(f"s3 PutObject copies/{key}"):
            self._client.put_object(Bucket=self._bucket, Key=f"copies/{key}", Body=document)

    @override
    def get(self, key: str) -> bytes:
        with translated(f"s3 GetObject copies/{key}"):
            answer = self._client.get_object(Bucket=self._bucket, Key=f"copies/{key}")
            document: bytes = answer["Body"].read()
        return document

    @property
    def _client(self) -> Any:
        return self._session.client("s3")
