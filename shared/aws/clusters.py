"""The clusters attached to this control plane; their stacks write the attachments into SSM."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from shared.aws.errors import translated
from shared.aws.session import Session
from shared.aws.ttl_cache import TtlCache
from shared.model.brakes import Brakes, Ceiling
from shared.model.codec import CodecError, from_json
from shared.model.errors import NotAttachedError, NotFoundError, PermanentError
from shared.ports import Clock
from shared.settings import ClusterAttachment, ClusterBrakes

_SPAN: Final = timedelta(seconds=60)
# How often at most the list is read again for names that are not in it.
_MISS_SPAN: Final = timedelta(seconds=5)
# A change of the brakes takes effect within this time.
_BRAKES_SPAN: Final = timedelta(seconds=15)
_MICROS: Final = 1_000_000


def _ignore_notice(text: str) -> None:
    del text


_Listed = Mapping[str, ClusterAttachment | PermanentError]


class ClusterRegistry:
    """Finds attachments in a list of all, which is cached for a minute.

    For a name that is not in the list it is read again, at most every five seconds.

    Args:
        session: Session in the Region of the parameters.
        path: Prefix of the parameter of each cluster's attachment, such as `/dovetail/clusters`.
        clock: Clock of the cache.
        notice: Called with one line for each attachment that cannot be read.
    """

    def __init__(
        self,
        session: Session,
        *,
        path: str,
        clock: Clock,
        notice: Callable[[str], None] = _ignore_notice,
    ) -> None:
        self._session = session
        self._path = path.rstrip("/")
        self._notice = notice
        self._listed: TtlCache[str, _Listed] = TtlCache(_SPAN, clock)
        self._newly_listed: TtlCache[str, _Listed] = TtlCache(_MISS_SPAN, clock)
        self._brakes: TtlCache[str, Brakes] = TtlCache(_BRAKES_SPAN, clock)

    def all(self) -> tuple[ClusterAttachment, ...]:
        """Return the attached clusters, sorted by name.

        A cluster whose attachment cannot be read is logged and skipped, so that others continue.
        """
        listed = self._listed.get(self._path, self._list)
        found = [value for value in listed.values() if isinstance(value, ClusterAttachment)]
        return tuple(sorted(found, key=lambda attachment: attachment.name))

    def names(self) -> tuple[str, ...]:
        """Return the names of all attached clusters, sorted, unreadable attachments included."""
        return tuple(sorted(self._listed.get(self._path, self._list)))

    def one(self, name: str) -> ClusterAttachment:
        """Return one cluster's attachment.

        Raises:
            NotAttachedError: If no such cluster is attached.
            PermanentError: If its attachment cannot be read; the message says what is wrong.
        """
        found = self._listed.get(self._path, self._list).get(name)
        if found is None:
            found = self._newly_listed.get(self._path, self._list).get(name)
        if found is None:
            raise NotAttachedError(
                f"cluster {name!r} is not attached: deploy its stack, which writes "
                f"{self._path}/{name}"
            )
        if isinstance(found, PermanentError):
            raise PermanentError(str(found))
        return found

    def brakes(self, name: str) -> Brakes:
        """Return a cluster's brakes: the stricter of its attachment's and its parameter's.

        A parameter that cannot be read pauses the cluster and is logged: its author wanted to stop
        something.

        Raises:
            NotAttachedError: If no such cluster is attached.
        """
        attached = _brakes(self.one(name).brakes)
        return self._brakes.get(name, lambda: attached.stricter(self._read_brakes(name)))

    def _read_brakes(self, name: str) -> Brakes:
        parameter = f"{self._path}/{name}/brakes"
        try:
            with translated(f"ssm GetParameter {parameter}"):
                row = self._session.client("ssm").get_parameter(Name=parameter)["Parameter"]
        except NotFoundError:
            return Brakes()
        try:
            return _brakes(from_json(ClusterBrakes, row["Value"]))
        except CodecError as error:
            self._notice(f"{parameter}: {error}: the cluster is paused")
            return Brakes(paused=True)

    def _list(self) -> _Listed:
        found: dict[str, ClusterAttachment | PermanentError] = {}
        for row in self._rows():
            name = row["Name"].rpartition("/")[2]
            try:
                found[name] = _attachment(row)
            except PermanentError as error:
                self._notice(str(error))
                found[name] = error
        self._listed.put(self._path, found)
        self._newly_listed.put(self._path, found)
        return found

    def _rows(self) -> list[Any]:
        request: dict[str, Any] = {"Path": self._path, "Recursive": False}
        rows: list[Any] = []
        while True:
            with translated(f"ssm GetParametersByPath {self._path}"):
                page = self._session.client("ssm").get_parameters_by_path(**request)
            rows += page["Parameters"]
            if not page.get("NextToken"):
                return rows
            request["NextToken"] = page["NextToken"]


def _attachment(row: Any) -> ClusterAttachment:
    try:
        found = from_json(ClusterAttachment, row["Value"])
    except CodecError as error:
        remedy = "deploy the cluster's stack again, which writes it, or delete the parameter"
        raise PermanentError(f"{row['Name']}: {error}; {remedy}") from error
    if found.name != row["Name"].rpartition("/")[2]:
        raise PermanentError(f"{row['Name']}: name: {found.name!r} is another cluster's")
    return found


def _brakes(found: ClusterBrakes) -> Brakes:
    price = found.max_price_per_hour
    return Brakes(
        paused=found.paused,
        shadow=found.shadow,
        ceiling=Ceiling(
            max_nodes=found.max_nodes,
            max_price_micros_per_hour=None if price is None else int(price * _MICROS),
        ),
    )
