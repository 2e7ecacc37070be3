"""Documents in S3, written once."""

from typing import Any

from botocore.exceptions import ClientError
from typing_extensions import override

from shared.aws.errors import error_code, translated
from shared.aws.session import Session
from shared.model.errors import ConflictError
from shared.ports import Decisions


class BucketDecisions(Decisions):
    """Implements shared.ports.Decisions on one bucket."""

    def __init__(self, session: Session, *, bucket: str) -> None:
        self._session = session
        self._bucket = bucket

    @override
    def put(self, key: str, document: bytes) -> None:
        if not self._put_if_absent(key, document) and self.get(key) != document:
            raise ConflictError(f"s3://{self._bucket}/{key}: other bytes are stored already")

    @override
    def get(self, key: str) -> bytes:
        with translated(f"s3 GetObject {key}"):
            answer = self._client.get_object(Bucket=self._bucket, Key=key)
            document: bytes = answer["Body"].read()
        return document

    def keys(self, prefix: str, after: str = "") -> tuple[str, ...]:
        """Return the keys that begin with a prefix, sorted; only those that sort after a key."""
        with translated(f"s3 ListObjectsV2 {prefix}"):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=prefix, StartAfter=after
            )
            found = [row["Key"] for page in pages for row in page.get("Contents", ())]
        return tuple(sorted(found))

    def _put_if_absent(self, key: str, document: bytes) -> bool:
        with translated(f"s3 PutObject {key}"):
            try:
                self._client.put_object(
                    Bucket=self._bucket, Key=key, Body=document, IfNoneMatch="*"
                )
            except ClientError as error:
                if error_code(error) != "PreconditionFailed":
                    raise
                return False
        return True

    @property
    def _client(self) -> Any:
        return self._session.client("s3")
