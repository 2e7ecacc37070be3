"""The catalogue in S3; the embedded one in its own Region until there is one."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from shared.aws.errors import code_of, translated
from shared.aws.session import Session
from shared.catalog.building import format_catalog
from shared.catalog.document import CatalogDocument
from shared.catalog.reading import Catalog, embedded_text, load_catalog
from shared.model.ec2.instance_types import InstanceType
from shared.model.errors import (
    InvalidManifestError,
    NotFoundError,
    PermanentError,
    RetryableError,
)
from shared.ports import Clock

# Prices are refreshed far less often; a newer catalogue may be used some minutes late.
_SPAN: Final = timedelta(minutes=5)
# Without one it is looked for again soon: the first one comes minutes after a deployment.
_SPAN_WITHOUT: Final = timedelta(seconds=30)
_UNCHANGED: Final = frozenset({"304", "NotModified"})


def catalog_key(region: str) -> str:
    """Return the key of a Region's catalogue in the bucket."""
    return f"catalog/{region}.json"


def _say_nothing(text: str) -> None:
    del text


class BucketCatalog:
    """Implements shared.ports.Catalog on one bucket.

    Keep it for as long as the process: it remembers, and asks S3 every five minutes only whether
    there is anything newer.

    Args:
        session: Of the Region whose catalogue is wanted.
        bucket: Name of the bucket.
        clock: What the answer ages by.
        notice: Told, in one line, when another catalogue than the bucket's newest is used.
    """

    def __init__(
        self,
        session: Session,
        *,
        bucket: str,
        clock: Clock,
        notice: Callable[[str], None] = _say_nothing,
    ) -> None:
        self._session = session
        self._bucket = bucket
        self._clock = clock
        self._notice = notice
        self._kept: Catalog | None = None
        self._etag = ""
        self._problem = ""
        self._fresh_until = clock.now()

    def instance_types(self) -> tuple[InstanceType, ...]:
        """Return all instance types with an offering, sorted by name; none with a problem."""
        kept = self._current()
        return () if kept is None else kept.instance_types

    def problem(self) -> str:
        """Return why nothing can be bought in this Region at all, empty if something can."""
        self._current()
        return self._problem

    def catalog(self) -> Catalog:
        """Return the whole catalogue, with its date and source; at most five minutes old.

        Raises:
            PermanentError: If there is none of this Region.
            RetryableError: If S3 cannot be reached and none was read before.
        """
        kept = self._current()
        if kept is None:
            raise PermanentError(self._problem)
        return kept

    def _current(self) -> Catalog | None:
        """Return the catalogue in use, None with a problem.

        While S3 cannot be reached the one read before stays in use. The embedded one is used in
        its own Region when the bucket has none yet, or none that can be used.
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

    def _fall_back(self, reason: str) -> None:
        """Use the catalogue in use, or the embedded one if it is of this Region, or none."""
        self._etag = ""
        region = self._session.region
        place = f"s3://{self._bucket}/{catalog_key(region)}"
        if self._kept is None:
            # Not `embedded_catalog()`, which would be kept beside the one that replaces it.
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
            f"({self._kept.source}); run refresh-catalog"
        )


def catalog_written_at(session: Session, bucket: str) -> datetime | None:
    """Return when the Region's catalogue was written, None if there is none."""
    key = catalog_key(session.region)
    try:
        with translated(f"s3 HeadObject {key}"):
            answer: Any = session.client("s3").head_object(Bucket=bucket, Key=key)
    except NotFoundError:
        return None
    written: datetime = answer["LastModified"]
    return written


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
