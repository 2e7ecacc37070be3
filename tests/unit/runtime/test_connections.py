"""A process that has served a cluster follows it where it goes."""

from shared.model.codec import from_plain
from shared.model.errors import ThrottledError
from shared.model.values import replace
from shared.ports import ClusterEndpoint
from shared.runtime.wiring import Connections, ReadEndpoint
from shared.settings import ClusterAttachment
from tests.attachments import attachment
from tests.fakes.cloud import FakeCloud

ENDPOINT = FakeCloud().endpoint()
PROD = from_plain(ClusterAttachment, attachment("prod"))


class Eks:
    def __init__(self) -> None:
        self.endpoint: ClusterEndpoint | ThrottledError = ENDPOINT
        self.connected: list[str] = []

    def connect(self, attachment: ClusterAttachment) -> tuple[str, ReadEndpoint]:
        self.connected.append(attachment.name)
        return f"{attachment.name}-{len(self.connected)}", self.ask

    def ask(self) -> ClusterEndpoint:
        if isinstance(self.endpoint, ThrottledError):
            raise self.endpoint
        return self.endpoint


def test_a_cluster_that_stays_is_connected_once() -> None:
    eks = Eks()
    connections = Connections(eks.connect)
    assert [connections.to(PROD) for _ in range(3)] == ["prod-1"] * 3
    assert connections.to(replace(PROD, name="other")) == "other-2"
    eks.endpoint = ThrottledError("DescribeCluster")
    assert connections.to(PROD) == "prod-1"


def test_another_attachment_or_endpoint_is_connected_anew() -> None:
    eks = Eks()
    connections = Connections(eks.connect)
    connections.to(PROD)
    bounded = replace(PROD, metadata_hop_limit=1)
    assert connections.to(bounded) == "prod-2"
    eks.endpoint = replace(ENDPOINT, endpoint="https://new.example")
    assert connections.to(bounded) == connections.to(bounded) == "prod-3"
