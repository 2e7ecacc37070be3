"""The clusters this control plane serves, as their stacks wrote them into SSM."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from pydantic import ValidationError

from shared.aws.errors import translated
from shared.aws.recall import Recall
from shared.aws.session import Session
from shared.model.brakes import Brakes, Ceiling
from shared.model.errors import NotFoundError, PermanentError
from shared.ports import Clock
from shared.settings import ClusterAttachment, ClusterBrakes

_SPAN: Final = timedelta(seconds=60)
# A switch that people pull acts within so long.
_BRAKES_SPAN: Final = timedelta(seconds=15)
_MICROS: Final = 1_000_000


def _say_nothing(text: str) -> None:
    del text


class ClusterRegistry:
    """Finds attachments; what was found is remembered for a minute."""

    def __init__(
        self,
        session: Session,
        *,
        path: str,
        clock: Clock,
        notice: Callable[[str], None] = _say_nothing,
    ) -> None:
        """Prepare; nothing is called yet.

        Args:
            session: Of the Region of the parameters.
            path: Under which each cluster's attachment stands, such as `/dovetail/clusters`.
            clock: What remembered answers age by.
            notice: Told, in one line, of an attachment that cannot be read.
        """
        self._session = session
        self._path = path.rstrip("/")
        self._notice = notice
        self._all: Recall[str, tuple[ClusterAttachment, ...]] = Recall(_SPAN, clock)
        self._one: Recall[str, ClusterAttachment] = Recall(_SPAN, clock)
        self._brakes: Recall[str, Brakes] = Recall(_BRAKES_SPAN, clock)

    def all(self) -> tuple[ClusterAttachment, ...]:
        """Return the attached clusters, sorted by name.

        One whose attachment cannot be read is left out and told of: it must not stop the others.
        """
        return self._all.get(self._path, self._read_all)

    def one(self, name: str) -> ClusterAttachment:
        """Return one cluster's attachment.

        Raises:
            NotFoundError: If no such cluster is attached.
            PermanentError: If its attachment cannot be read; the text says what is wrong.
        """
        return self._one.get(name, lambda: self._read_one(name))

    def brakes(self, name: str) -> Brakes:
        """Return what holds a cluster back: its attachment's brakes and its parameter's.

        A parameter that cannot be read pauses the cluster, and is told of: whoever wrote it
        wanted something to stop.

        Raises:
            NotFoundError: If no such cluster is attached.
        """
        attached = _brakes(self.one(name).brakes)
        return self._brakes.get(name, lambda: attached.tighter(self._read_brakes(name)))

    def _read_brakes(self, name: str) -> Brakes:
        parameter = f"{self._path}/{name}/brakes"
        try:
            with translated(f"ssm GetParameter {parameter}"):
                row = self._session.client("ssm").get_parameter(Name=parameter)["Parameter"]
        except NotFoundError:
            return Brakes()
        try:
            return _brakes(ClusterBrakes.model_validate_json(row["Value"]))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "value"
            self._notice(f"{parameter}: {where}: {first['msg']}: the cluster is paused")
            return Brakes(paused=True)

    def _read_all(self) -> tuple[ClusterAttachment, ...]:
        found = []
        for row in self._rows():
            try:
                found.append(_attachment(row))
            except PermanentError as error:
                self._notice(str(error))
        return tuple(sorted(found, key=lambda one: one.name))

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

    def _read_one(self, name: str) -> ClusterAttachment:
        parameter = f"{self._path}/{name}"
        try:
            with translated(f"ssm GetParameter {parameter}"):
                row = self._session.client("ssm").get_parameter(Name=parameter)["Parameter"]
        except NotFoundError as error:
            raise NotFoundError(
                f"cluster {name!r} is not attached: deploy its stack, which writes {parameter}"
            ) from error
        return _attachment(row)


def _attachment(row: Any) -> ClusterAttachment:
    try:
        found = ClusterAttachment.model_validate_json(row["Value"])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "value"
        raise PermanentError(f"{row['Name']}: {where}: {first['msg']}") from error
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
