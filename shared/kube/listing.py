"""Lists, page by page, each page turned into values before the next is fetched."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from shared.kube.calls import ExpiredError, KubeApi, Query
from shared.model.errors import UnavailableError

T = TypeVar("T")

PAGE_SIZE: Final = 250
_ATTEMPTS: Final = 3


class Pages:
    """The pages of one list.

    Attributes:
        version: The list's resourceVersion, known after the first page.
    """

    def __init__(self, api: KubeApi, path: str, query: Query = (), size: int = PAGE_SIZE) -> None:
        self._api = api
        self._path = path
        self._query = tuple(query)
        self._size = size
        self.version = ""

    def __iter__(self) -> Iterator[list[Mapping[str, Any]]]:
        """Yield the items of each page.

        Raises:
            ExpiredError: If the list took so long that its continue token is no longer served.
        """
        token = ""
        while True:
            query = [*self._query, ("limit", str(self._size))]
            if token:
                query.append(("continue", token))
            body = self._api.get(self._path, query)
            metadata = body.get("metadata") or {}
            self.version = str(metadata.get("resourceVersion", ""))
            yield [one for one in body.get("items") or () if isinstance(one, Mapping)]
            token = metadata.get("continue") or ""
            if not token:
                return


def list_all(
    api: KubeApi, path: str, project: Callable[[Mapping[str, Any]], T], query: Query = ()
) -> list[T]:
    """Return the projection of every item, in the server's order.

    A list whose continue token expires under way is begun again.

    Raises:
        UnavailableError: If that happens three times; timers of every release repeat that one.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        found: list[T] = []
        try:
            for page in Pages(api, path, query):
                found.extend(project(one) for one in page)
        except ExpiredError as error:
            if attempt == _ATTEMPTS:
                raise UnavailableError(f"{path}: the list takes too long: {error}") from error
            continue
        break
    return found
