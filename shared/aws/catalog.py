"""The catalogue in S3, and the embedded one until there is one."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from shared.aws.errors import code_of, translated
from shared.aws.session import Session
from shared.catalog.building import format_catalog
from shared.catalog.document import CatalogDocument
from shared.catalog.reading import Catalog, embedded_catalog, load_catalog
from shared.model.errors import InvalidManifestError, NotFoundError, RetryableError
from shared.model.instance_types import InstanceType
from shared.ports import Clock

# Prices are refreshed far less often; a newer catalogue may be used some minutes late.
_SPAN: Final = timedelta(minutes=5)
_UNCHANGED: Final = frozenset({"304", "NotModified"})


def catalog_key(region: str) -> str:
    """Return where a Region's catalogue stands in the bucket."""
    return f"catalog/{region}.json"


def _say_nothing(text: str) -> None:
    del text


class BucketCatalog:
    """Implements shared.ports.Catalog on one bucket.

    Keep it for as long as the process: it remembers, and asks S3 every five minutes only whether
    there is anything newer.
    """

    def __init__(
        self,
        session: Session,
        *,
        bucket: str,
        clock: Clock,
        notice: Callable[[str], None] = _say_nothing,
    ) -> None:
        """Prepare; nothing is called yet.

        Args:
            session: Of the Region whose catalogue is wanted.
            bucket: Name of the bucket.
            clock: What the answer ages by.
            notice: Told, in one line, when another catalogue than the bucket's newest is used.
        """
        self._session = session
        self._bucket = bucket
        self._clock = clock
        self._notice = notice
        self._kept: Catalog | None = None
        self._etag = ""
        self._fresh_until = clock.now()

    def instance_types(self) -> tuple[InstanceType, ...]:
        """Return all instance types with an offering, sorted by name."""
        return self.catalog().instance_types

    def catalog(self) -> Catalog:
        """Return the whole catalogue, with its date and source; at most five minutes old.

        While S3 cannot be reached the one read before stays in use. The embedded one is used
        when the bucket has none yet, or none that can be read.

        Raises:
            RetryableError: If S3 cannot be reached and none was read before.
        """
        if self._kept is not None and self._clock.now() < self._fresh_until:
            return self._kept
        try:
            self._kept = self._read()
        except RetryableError as error:
            if self._kept is None:
                raise
            self._notice(f"catalogue of {self._kept.date} stays in use: {error}")
        self._fresh_until = self._clock.now() + _SPAN
        return self._kept

    def _read(self) -> Catalog:
        try:
            text, etag = self._fetch()
            found = load_catalog(text) if text is not None else self._kept
        except NotFoundError:
            return self._embedded("the bucket has no catalogue yet")
        except InvalidManifestError as error:
            return self._embedded(f"the bucket's catalogue cannot be read: {error}")
        self._etag = etag
        return found if found is not None else self._embedded("the bucket's is empty")

    def _fetch(self) -> tuple[str | None, str]:
        """Return text and tag of the bucket's catalogue; no text when it is as it was."""
        request = {"Bucket": self._bucket, "Key": catalog_key(self._session.region)}
        if self._etag and self._kept is not None:
            request["IfNoneMatch"] = self._etag
        with translated(f"s3 GetObject {request['Key']}"):
            try:
                answer: Any = self._session.client("s3").get_object(**request)
            except ClientError as error:
                if code_of(error) not in _UNCHANGED:
                    raise
                return None, self._etag
            return answer["Body"].read().decode(), answer["ETag"]

    def _embedded(self, reason: str) -> Catalog:
        self._etag = ""
        found = self._kept or load_catalog(embedded_catalog())
        self._notice(
            f"{reason}: that of {found.date} for {found.region} is used ({found.source}); "
            "run refresh-catalog"
        )
        return found


def write_catalog(session: Session, bucket: str, document: CatalogDocument) -> None:
    """Write a Region's catalogue into the bucket."""
    key = catalog_key(document["region"])
    with translated(f"s3 PutObject {key}"):
        session.client("s3").put_object(
            Bucket=bucket,
            Key=key,
            Body=format_catalog(document).encode(),
            ContentType="application/json",
        )
