"""The catalog in S3; until it exists, the embedded catalog in the Region that it is of."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from botocore.exceptions import ClientError
from typing_extensions import override

from shared.aws.errors import error_code, translated
from shared.aws.session import Session
from shared.instance_types.building import format_catalog
from shared.instance_types.catalog import Catalog, embedded_text, load_catalog
from shared.instance_types.document import CatalogDocument
from shared.model.ec2.instance_types import InstanceType
from shared.model.errors import (
    InvalidManifestError,
    NotFoundError,
    PermanentError,
    RetryableError,
)
from shared.ports import Clock, InstanceTypeProvider

# Prices are refreshed far less often; a newer catalog may be used some minutes late.
_SPAN: Final = timedelta(minutes=5)
# Without a catalog the bucket is read again soon: the first is written minutes after a deployment.
_SPAN_WITHOUT: Final = timedelta(seconds=30)
_UNCHANGED: Final = frozenset({"304", "NotModified"})


def catalog_key(region: str) -> str:
    """Return the key of a Region's catalog in the bucket."""
    return f"catalog/{region}.json"


def _ignore_notice(text: str) -> None:
    del text


class BucketCatalog(InstanceTypeProvider):
    """Implements shared.ports.InstanceTypeProvider on one bucket.

    Keep it for as long as the process: it caches the catalog, and every five minutes asks S3 only
    for a newer one.

    Args:
        session: Session in the Region of the catalog.
        clock: Clock of the cache.
        notice: Called with one line when another catalog than the bucket's newest is used.
    """

    def __init__(
        self,
        session: Session,
        *,
        bucket: str,
        clock: Clock,
        notice: Callable[[str], None] = _ignore_notice,
    ) -> None:
        self._session = session
        self._bucket = bucket
        self._clock = clock
        self._notice = notice
        self._kept: Catalog | None = None
        self._etag = ""
        self._problem = ""
        self._fresh_until = clock.now()

    @override
    def instance_types(self) -> tuple[InstanceType, ...]:
        kept = self._current()
        return () if kept is None else kept.instance_types

    @override
    def problem(self) -> str:
        self._current()
        return self._problem

    def catalog(self) -> Catalog:
        """Return the whole catalog, with its date and source; it was checked within five minutes.

        Raises:
            PermanentError: If there is no catalog of this Region.
            RetryableError: If S3 cannot be reached and no catalog was read before.
        """
        kept = self._current()
        if kept is None:
            raise PermanentError(self._problem)
        return kept

    def _current(self) -> Catalog | None:
        """Return the catalog in use, None if there is a problem.

        While S3 cannot be reached, the last catalog stays in use. When the bucket has no usable
        catalog, the embedded one is used, in the Region that it is of.
        """
        if self._clock.now() < self._fresh_until:
            return self._kept
        try:
            self._read()
        except RetryableError as error:
            if self._kept is None:
                raise
            self._notice(f"catalogue of {self._kept.date} stays in use: {error}")
        self._fresh_until = self._clock.now() + (_SPAN if self._etag else _SPAN_WITHOUT)
        return self._kept

    def _read(self) -> None:
        try:
            text, etag = self._fetch()
            found = load_catalog(text) if text is not None else self._kept
        except NotFoundError:
            self._fall_back("there is no catalogue")
            return
        except InvalidManifestError as error:
            self._fall_back(f"the catalogue cannot be read: {error}")
            return
        if found is None or found.region != self._session.region:
            self._fall_back(f"the catalogue is of {found.region if found else 'no Region'}")
            return
        self._kept, self._etag, self._problem = found, etag, ""

    def _fetch(self) -> tuple[str | None, str]:
        """Return text and ETag of the bucket's catalog; no text when it is unchanged."""
        request = {"Bucket": self._bucket, "Key": catalog_key(self._session.region)}
        if self._etag and self._kept is not None:
            request["IfNoneMatch"] = self._etag
        with translated(f"s3 GetObject {request['Key']}"):
            try:
                answer: Any = self._session.client("s3").get_object(**request)
            except ClientError as error:
                if error_code(error) not in _UNCHANGED:
                    raise
                return None, self._etag
            return answer["Body"].read().decode(), answer["ETag"]

    def _fall_back(self, reason: str) -> None:
        """Keep the catalog in use, else use the embedded one if it is of this Region, else none."""
        self._etag = ""
        region = self._session.region
        place = f"s3://{self._bucket}/{catalog_key(region)}"
        if self._kept is None:
            # Not `embedded_catalog()`, whose cache would keep it in memory after its replacement.
            embedded = load_catalog(embedded_text())
            self._kept = embedded if embedded.region == region else None
        if self._kept is None:
            self._problem = (
                f"nothing can be bought in {region}: {reason} ({place}); it is written after a "
                "deployment and every hour until there is one: see the log of "
                "/aws/lambda/dovetail-refresh-catalog"
            )
            self._notice(self._problem)
            return
        self._notice(
            f"{reason} ({place}): that of {self._kept.date} for {self._kept.region} is used "
            f"({self._kept.source}) until dovetail-refresh-catalog, which runs each hour, writes "
            "one"
        )


def catalog_written_at(session: Session, bucket: str) -> datetime | None:
    """Return when the Region's catalog was written, None if there is none."""
    key = catalog_key(session.region)
    try:
        with translated(f"s3 HeadObject {key}"):
            answer: Any = session.client("s3").head_object(Bucket=bucket, Key=key)
    except NotFoundError:
        return None
    written: datetime = answer["LastModified"]
    return written


def write_catalog(session: Session, bucket: str, document: CatalogDocument) -> None:
    """Write a Region's catalog into the bucket."""
    key = catalog_key(document["region"])
    with translated(f"s3 PutObject {key}"):
        session.client("s3").put_object(
            Bucket=bucket,
            Key=key,
            Body=format_catalog(document).encode(),
            ContentType="application/json",
        )
