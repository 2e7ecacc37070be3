"""A cluster with nodes of Karpenter, and runs of the migration that end wherever a test says."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, cast

from functions.cli.migrate.handover import Direction, HandoverStep
from functions.cli.migrate.migration import Migration
from functions.cli.migrate.node_claim_documents import kept_claim_text
from functions.cli.migrate.node_claims import TAG_EKS_CLUSTER, TAG_NODE_CLAIM
from shared.model import labels as keys
from shared.model.values import replace
from tests.builders import NOW, ZONES, instance, node
from tests.fakes.karpenter import FakeKarpenter, FakeTags, KarpenterControllers, node_of_karpenter
from tests.unit.worlds import NAME, Crash, World

POOL: dict[str, Any] = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "general", "uid": "uid-pool"},
    "spec": {
        "template": {
            "spec": {
                "nodeClassRef": {
                    "group": "karpenter.k8s.aws",
                    "kind": "EC2NodeClass",
                    "name": "default",
                },
                "requirements": [
                    {"key": keys.INSTANCE_TYPE, "operator": "In", "values": ["m5.large"]}
                ],
                "expireAfter": "720h",
            }
        },
        "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"},
    },
}
CLASS: dict[str, Any] = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default", "uid": "uid-class"},
    "spec": {
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "test"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "test"}}],
        "instanceProfile": "nodes",
    },
}
# Methods of the ports that change something, by the port's place in a migration.
_WRITES = frozenset(
    {
        "acquire",
        "change_node",
        "delete_node_claim",
        "drop_instance",
        "drop_slot",
        "fill_slot",
        "make_node_claim",
        "release",
        "remove_finalizer",
        "tag",
        "untag",
        "write_status",
    }
)


class Watched:
    """A port whose writes are counted by `each_write`, before and after they are made."""

    def __init__(self, port: object, each_write: Callable[[str, Callable[[], Any]], Any]) -> None:
        self._port = port
        self._each_write = each_write

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name not in _WRITES:
            return found
        return lambda *args, **named: self._each_write(name, lambda: found(*args, **named))


class ChangingHands:
    """A world with Karpenter's nodes n1, n2, ..., and counters of what a migration writes.

    Attributes:
        writes: Names of all writes so far, in order.
        after_each_write: Called after each with its name.
    """

    def __init__(self, nodes: int = 1) -> None:
        self.world = World()
        self.world.cluster.apply(CLASS, POOL)
        self.karpenter = FakeKarpenter()
        self.tags = FakeTags(self.world.cloud)
        self.writes: list[str] = []
        self.after_each_write: Callable[[str], object] = lambda _: None
        self.crash_at: int | None = None
        self.crash_before = False
        self.controllers = KarpenterControllers(
            self.world.cluster, self.world.cloud, self.karpenter, NAME
        )
        for number in range(1, nodes + 1):
            self.add_node(f"n{number}")
        self.world.advance(timedelta(hours=1))

    def add_node(self, name: str, **claim: Any) -> None:
        """Let a machine stand as Karpenter has launched it."""
        self.karpenter.make_node_claim(
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodeClaim",
                "metadata": {
                    "name": f"general-{name}",
                    "labels": {keys.NODE_POOL: "general", keys.CAPACITY_TYPE: "on-demand"},
                    "annotations": {"karpenter.sh/nodepool-hash": "17"},
                    "finalizers": [keys.TERMINATION_FINALIZER],
                    **claim,
                },
                "spec": {
                    "nodeClassRef": POOL["spec"]["template"]["spec"]["nodeClassRef"],
                    "requirements": [],
                    "expireAfter": "720h",
                },
            }
        )
        raw = self.karpenter.raws[f"general-{name}"]
        raw["status"] = {
            "providerID": f"aws:///{ZONES[0]}/i-{name}",
            "conditions": [{"type": "Registered", "status": "True"}],
        }
        (made,) = [c for c in self.karpenter.node_claims() if c.name == f"general-{name}"]
        plain = node(name, uid=f"uid-{name}", resource_version="")
        labels = {k: v for k, v in plain.labels.items() if k != keys.PROVISIONER_NAME}
        self.world.cluster.add(
            node_of_karpenter(
                made, replace(plain, labels=labels, annotations={}), node_class="default"
            )
        )
        self.world.cloud.add(
            instance(
                f"i-{name}",
                launched_at=NOW,
                image_id="ami-1",
                private_dns_name=name,
                tags={
                    "Name": name,
                    f"kubernetes.io/cluster/{NAME}": "owned",
                    keys.NODE_POOL: "general",
                    keys.NODE_CLASS: "default",
                    TAG_NODE_CLAIM: f"general-{name}",
                    TAG_EKS_CLUSTER: NAME,
                },
            )
        )

    def migration(self) -> Migration:
        """Return a migration as a new process has it."""
        ports = replace(
            self.world.ports,
            cluster=Watched(self.world.cluster, self._write),
            ledger=Watched(self.world.ledger, self._write),
        )
        karpenter, tags = Watched(self.karpenter, self._write), Watched(self.tags, self._write)
        return Migration(ports, cast("Any", karpenter), cast("Any", tags), self.world.advance)

    def move(self, direction: Direction, name: str = "n1") -> list[HandoverStep]:
        """Let a node change hands; return the steps that were made."""
        told: list[HandoverStep] = []
        self.migration().migrate_node(name, direction, told.append)
        return told

    def move_until_killed(self, direction: Direction, write: int, *, before: bool) -> bool:
        """Run until the process ends before or after a write of this run; return whether it did."""
        self.crash_at, self.crash_before = len(self.writes) + write, before
        try:
            self.move(direction)
        except Crash:
            # A new process takes the lease when that of the killed one has expired.
            self.world.advance(timedelta(minutes=1))
            return True
        finally:
            self.crash_at = None
        return False

    def _write(self, name: str, call: Callable[[], Any]) -> Any:
        at = self.crash_at == len(self.writes)
        if at and self.crash_before:
            raise Crash
        self.writes.append(name)
        answer = call()
        self.after_each_write(name)
        if at:
            raise Crash
        return answer

    # --- what came of it

    @property
    def ended(self) -> list[str]:
        """Machines that do not run any more, or that have no Node."""
        nodes = {entry.instance_id for entry in self.world.cluster.nodes()}
        return [
            entry.instance_id
            for entry in self.world.cloud.all_instances
            if not entry.is_running or entry.instance_id not in nodes
        ]

    def tags_of(self, name: str = "n1") -> dict[str, str]:
        """Return the tags of a node's machine."""
        (found,) = self.world.cloud.instances([f"i-{name}"])
        return dict(found.tags)

    def kept(self, names: Iterable[str] = ("n1",)) -> list[str]:
        """Return the NodeClaims as an annotation would keep them."""
        wanted = {f"general-{name}" for name in names}
        return [kept_claim_text(c) for c in self.karpenter.node_claims() if c.name in wanted]

    def is_dovetails(self, name: str = "n1") -> bool:
        """Return whether node and machine are Dovetail's, and nothing of Karpenter is left."""
        found = self.world.cluster.node(name)
        assert found is not None
        claimed = [c for c in self.karpenter.node_claims() if c.provider_id == found.provider_id]
        tags = self.tags_of(name)
        return (
            found.is_ours
            and found.owners == ("uid-pool",)
            and tags.get(keys.TAG_CLUSTER) == NAME
            and keys.NODE_POOL not in tags
            and keys.NODE_CLASS not in tags
            and not claimed
            and self.world.ledger.cluster_of(f"i-{name}") == NAME
            and not self.world.ledger.slots(NAME)
        )

    def is_karpenters(self, name: str = "n1") -> bool:
        """Return whether node and machine are Karpenter's, and nothing of Dovetail is left."""
        found = self.world.cluster.node(name)
        assert found is not None
        claims = [c for c in self.karpenter.node_claims() if c.provider_id == found.provider_id]
        ours = [key for key in self.tags_of(name) if key.startswith("dovetail.dev/")]
        theirs = {keys.NODE_POOL: "general", keys.NODE_CLASS: "default", TAG_EKS_CLUSTER: NAME}
        return (
            [c.registered and c.is_finalized for c in claims] == [True]
            and found.owners == (claims[0].uid,)
            and found.finalizers == (keys.TERMINATION_FINALIZER,)
            and not any(key.startswith("dovetail.dev/") for key in found.annotations)
            and not ours
            and theirs.items() <= self.tags_of(name).items()
            and self.world.ledger.cluster_of(f"i-{name}") is None
            and not self.world.ledger.slots(NAME)
        )
