"""One large cluster: functions' real handlers and adapters, services with a price and a wait."""

import itertools
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import yaml
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.bind import handler as bind
from functions.provision import handler as provision
from functions.sweep import handler as sweep
from shared.aws.ledger.ledger import DynamoLedger
from shared.kube.api import MERGE_PATCH
from shared.kube.cluster import KubeCluster
from shared.kube.connection import connect_endpoint
from shared.kube.kept.stored import copy_stores
from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.ec2.launches import Instance
from shared.model.messages.message import MessageKind, ObjectRef, encode, make_message
from shared.model.policy import LaunchPolicy
from shared.model.values import replace
from shared.nodes.join.node_binding import Binding
from shared.nodes.timers.heartbeats import save_heartbeat
from shared.packing.problem import PackingSettings
from shared.ports import ClusterPorts, TimerKind
from shared.provisioning.decisions.bases import DecisionWriter
from shared.provisioning.provision import Provisioning
from shared.provisioning.sweep.sweep import Sweep, SweepPolicy
from shared.runtime.logs_and_metrics import logger
from shared.runtime.threads import Threads
from tests.fakes.catalog import FakeCatalog
from tests.fakes.decisions import FakeDecisions
from tests.scale import manifests
from tests.scale.table import CountedTable
from tests.scale.virtual import (
    Spent,
    TimedApi,
    TimedCloud,
    TimedCopies,
    TimedOutbox,
    VirtualClock,
)

# Of functions, as deployed; a test compares them.
MEMORY_MIB: Final = {
    "provision": 1024,
    "bind": 512,
    "sweep": 512,
    "replacement": 1024,
    "termination": 512,
}
TIMEOUT_SECONDS: Final = {
    "provision": 120,
    "bind": 60,
    "sweep": 60,
    "replacement": 60,
    "termination": 60,
}
BIND_CONCURRENCY: Final = 50
_DEFINITIONS: Final = Path(__file__).parents[2] / "infra" / "cluster"
_CORE: Final = "/api/v1/namespaces/default/pods"


@dataclass(frozen=True)
class Context:
    """What Lambda passes beside the event."""

    left: Callable[[], timedelta]
    function_name: str = "scale"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:scale"
    aws_request_id: str = "request"

    def get_remaining_time_in_millis(self) -> int:
        return int(self.left() / timedelta(milliseconds=1))


class LargeCluster:
    """The functions of one cluster, and what they work on.

    Args:
        url: Of its API server.
        function: Whose memory, and so whose share of a core, time passes by.
        copies: That another process has left, by key.
    """

    def __init__(self, url: str, function: str, copies: Mapping[str, bytes] | None = None) -> None:
        logger.setLevel(logging.CRITICAL)
        self._function = function
        self._url = url
        self.clock = VirtualClock(MEMORY_MIB[function])
        self.api = connect_endpoint(url, "", lambda: "token")
        self.table = CountedTable(self.clock.rows)
        self.outbox = TimedOutbox(self.clock)
        self.cloud = TimedCloud(cluster=manifests.CLUSTER, clock=self.clock)
        self.decisions = FakeDecisions()
        session: Any = self.table
        self.timed_api = TimedApi(url, self.clock)
        self.copies = TimedCopies(self.clock, copies or {})
        self.ports = ClusterPorts(
            cluster=self._reader(),
            cloud=self.cloud,
            catalog=FakeCatalog.embedded(zones=manifests.ZONES),
            ledger=DynamoLedger(session, table="ledger", clock=self.clock),
            decisions=self.decisions,
            outbox=self.outbox,
            clock=self.clock,
            instance_profile="nodes",
            executor=Threads(),
        )
        self._writer = DecisionWriter()
        self._ids = itertools.count(1)
        self._pods = itertools.count(10_000_000)
        self._define()

    def _reader(self) -> KubeCluster:
        return KubeCluster(
            manifests.CLUSTER,
            self.timed_api,
            now=self.clock.now,
            copy_store_of=copy_stores(self.copies, cluster=manifests.CLUSTER, server=self._url),
        )

    def of_another_function(self) -> ClusterPorts:
        """Return ports like these of a process that has read nothing yet."""
        return replace(self.ports, cluster=self._reader())

    # --- what is there

    def _define(self) -> None:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for name in ("provisioners.yaml", "node_templates.yaml"):
            self._post(path, yaml.safe_load((_DEFINITIONS / name).read_text()))
        self._post("/apis/karpenter.sh/v1alpha5/provisioners", manifests.PROVISIONER)

    def _post(self, path: str, manifest: dict[str, Any]) -> None:
        reply = self.api.send("POST", path, body=manifest)
        # Another process of the same cluster may have made it.
        assert reply.ok or reply.status == 409, reply

    def stands(self, nodes: int) -> None:
        """Let the machines of so many nodes run, each with its timer."""
        for number in range(nodes):
            offering = OfferingKey(
                instance_type="m5.2xlarge",
                zone=manifests.zone_of(number),
                capacity_type=CapacityType.ON_DEMAND,
            )
            self.cloud.add(
                Instance(
                    instance_id=manifests.instance_id(number),
                    state="running",
                    offering=offering,
                    private_dns_name=manifests.node_name(number),
                    tags=self.cloud._ours,
                )
            )
            uid = manifests.node(number)["metadata"]["uid"]
            now = self.clock.now()
            save_heartbeat(self.ports.ledger, manifests.CLUSTER, uid, TimerKind.EXPIRATION, now)

    def pods_arrive(self, count: int, *, cpu: str = "1") -> None:
        """Let so many pods wait for capacity."""
        for number in itertools.islice(self._pods, count):
            manifest = manifests.pod(number, None, cpu=cpu)
            self._post(_CORE, manifest)
            path = f"{_CORE}/{manifest['metadata']['name']}/status"
            body = {"status": manifest["status"]}
            reply = self.api.send("PATCH", path, body=body, content_type=MERGE_PATCH)
            assert reply.ok, reply

    def pod_runs(self, node: str) -> None:
        """Let another pod run on a node."""
        manifest = manifests.pod(next(self._pods), 0)
        manifest["spec"]["nodeName"] = node
        self._post(_CORE, manifest)
        path = f"{_CORE}/{manifest['metadata']['name']}/status"
        body = {"status": manifest["status"]}
        reply = self.api.send("PATCH", path, body=body, content_type=MERGE_PATCH)
        assert reply.ok, reply

    def kubelets_report(self, nodes: range) -> None:
        """Let kubelets write the status of their nodes, as they do every five minutes."""
        for number in nodes:
            path = f"/api/v1/nodes/{manifests.node_name(number)}/status"
            body = {"status": {"nodeInfo": {"bootID": "another"}}}
            reply = self.api.send("PATCH", path, body=body, content_type=MERGE_PATCH)
            assert reply.ok, reply

    # --- the functions

    def provision(self) -> Spent:
        """Let the queue wake provision once."""
        message = json.dumps(
            encode(make_message(MessageKind.POD_PENDING, manifests.CLUSTER, self.clock.now()))
        )
        event = {"Records": [{"messageId": "m", "body": message}]}
        return self._called(provision, self._provisioning, event)

    def look(self) -> Spent:
        """Let the queue wake provision to look over all nodes."""
        message = json.dumps(
            encode(make_message(MessageKind.EVALUATE, manifests.CLUSTER, self.clock.now()))
        )
        event = {"Records": [{"messageId": "m", "body": message}]}
        return self._called(provision, self._provisioning, event)

    def sweep(self) -> Spent:
        """Sweep the cluster."""
        event = encode(make_message(MessageKind.SWEEP, manifests.CLUSTER, self.clock.now()))
        return self._called(sweep, lambda: Sweep(self.ports, SweepPolicy()), event)

    def bind(self, *nodes: str) -> Spent:
        """Let the forwarder report that nodes are ready."""
        refs = tuple(ObjectRef(namespace="", name=name, uid=name) for name in nodes)
        event = encode(
            make_message(MessageKind.NODE_READY, manifests.CLUSTER, self.clock.now(), objects=refs)
        )
        return self._called(bind, lambda: Binding(self.ports, LaunchPolicy()), event)

    def _provisioning(self) -> Provisioning:
        return Provisioning(
            self.ports,
            LaunchPolicy(),
            PackingSettings(),
            lambda: f"plan-{next(self._ids):04}",
            writer=self._writer,
        )

    def _called(self, module: Any, service: Callable[[], Any], event: dict[str, Any]) -> Spent:
        return self.call(self._function, module, service, event)[1]

    def call(
        self, function: str, module: Any, service: Callable[[], Any], event: dict[str, Any]
    ) -> tuple[Any, Spent]:
        """Return what a function's handler answers, and what that took."""
        ends = self.clock.now() + timedelta(seconds=TIMEOUT_SECONDS[function])
        runtime = _Runtime(service, ends)
        context: LambdaContext = Context(lambda: ends - self.clock.now())  # type: ignore[assignment]
        kept, module.load_runtime = module.load_runtime, lambda: runtime
        try:
            self.clock.begin()
            answer = module.handler(event, context)
            return answer, self.clock.spent()
        finally:
            module.load_runtime = kept


class _Runtime:
    """What handlers find instead of the runtime of their process: one service of one cluster."""

    def __init__(self, service: Callable[[], Any], ends: Any) -> None:
        self._service = service
        self._ends = ends

    def admits(self, _: Any) -> bool:
        return True

    def service(self, cluster: str) -> Any:
        assert cluster == manifests.CLUSTER
        return self._service()

    def deadline(self, _: LambdaContext) -> Any:
        return self._ends

    def send_to_dead_letters(self, records: Any, _: LambdaContext) -> list[str]:
        assert not records, records
        return []

    def wake_later(self, *_: Any, **__: Any) -> bool:
        return True
