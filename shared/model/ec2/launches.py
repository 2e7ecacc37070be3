"""Planned nodes, launch intents, slots, leases and EC2 instances."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct, field
from msgspec.structs import astuple

from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.ec2.instance_types import OfferingKey
from shared.model.kubernetes.taints import Taint
from shared.model.resources import Resources


class PodRef(Struct, frozen=True, kw_only=True, order=True):
    """Identifies one pod: a later pod of the same name has another uid."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


class LaunchOption(Struct, frozen=True, kw_only=True):
    """An offering that a planned node may be launched as, and the resources of its instances."""

    offering: OfferingKey
    price_micros_per_hour: int
    capacity: Resources
    allocatable: Resources


def largest_capacity_of(options: Iterable[LaunchOption]) -> Resources:
    """Return the largest capacity of any option, for each resource."""
    most = Resources()
    for option in options:
        most = most.largest(option.capacity)
    return most


def highest_price(options: Iterable[LaunchOption]) -> int:
    """Return the highest price of one or more options, in micro-dollars per hour."""
    return max(option.price_micros_per_hour for option in options)


class PlannedNode(Struct, frozen=True, kw_only=True):
    """A node that the packer has decided on and that is not launched yet.

    Attributes:
        options: Interchangeable offerings of one capacity type, cheapest first, at most 60.
        fallback: Offerings of the other capacity type, tried when none of `options` is available.
        pods: The pods promised to it, sorted.
        requests: Sum of their requests, without DaemonSet pods.
        daemon_requests: Requests of the DaemonSet pods that will run on it.
        labels: Labels that the provisioner gives the node, chosen values of custom labels included;
            those of type, zone and capacity type follow from the option that is launched.
    """

    provisioner: str
    labels: Mapping[str, str] = field(default_factory=dict)
    options: tuple[LaunchOption, ...]
    fallback: tuple[LaunchOption, ...] = ()
    pods: tuple[PodRef, ...]
    requests: Resources
    daemon_requests: Resources = Resources()

    @property
    def price_micros_per_hour(self) -> int:
        """Price of the cheapest option."""
        return self.options[0].price_micros_per_hour

    @property
    def largest_capacity(self) -> Resources:
        """The largest capacity of any option, for each resource: it must fit within the limits."""
        return largest_capacity_of((*self.options, *self.fallback))

    @property
    def highest_price_micros_per_hour(self) -> int:
        """The highest price of any option: it must fit below a ceiling."""
        return highest_price((*self.options, *self.fallback))


class LaunchIntent(Struct, frozen=True, kw_only=True):
    """A launch that is written before EC2 is called: one CreateFleet request, many nodes.

    The ledger keeps it until every slot has its instance or was abandoned: until then EC2 may
    or may not have been called.

    Attributes:
        group: Number of the launch group in its plan.
        attempt: Grows by one when not all requested instances were launched.
        count: Nodes requested in this attempt.
        body_key: Key of the decision record that holds the exact request.
        body_hash: SHA-256 of the body, hex.
        reserved: Capacity taken from the provisioner's limits.
        reserved_price_micros_per_hour: Likewise the highest total price of its nodes.
        not_before: Earliest time of the next call, after a throttle; None for at once.
        token_at: When the request token that it waits for may be used, None when it has none.
        asked_at: When EC2 was last called for this attempt, None when it was not yet.
    """

    cluster: str
    plan_id: str
    group: int
    attempt: int
    provisioner: str
    count: int
    body_key: str
    body_hash: str
    reserved: Resources
    reserved_price_micros_per_hour: int = 0
    not_before: datetime | None = None
    token_at: datetime | None = None
    asked_at: datetime | None = None
    created_at: datetime


class SlotOwner(Struct, frozen=True, kw_only=True):
    """What the Node of a slot takes from its owner, even if that is gone or invalid by then."""

    kind: OwnerKind
    uid: str
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()


class Slot(Struct, frozen=True, kw_only=True):
    """One node of a launch: pairs a planned node with the instance that became it.

    Attributes:
        number: Position in its group, from 0.
        owner: What it was launched for; None where the slot was written from an instance's tags.
        node_name: Name of its Node object, empty until known.
        pods: Nominated pods: promised to it and counted as placed.
        allocatable: Estimate for the type that was launched, until the kubelet reports its own.
        bound: Whether all its nominated pods were bound.
        opened: Whether its Node is open for kube-scheduler or about to be: only kube-scheduler
            binds the nominated pods that are left.
        replaces: Names of the nodes it was launched to replace, separated by commas; usually empty.
        interrupted_at: When EC2 announced the interruption of the instance before it was a node;
            None if it did not.
        stamp: Annotations of its Node that say what it was launched for; usually empty.
        version: Of the row it was read from; 0 when it was not read.
    """

    cluster: str
    plan_id: str
    group: int
    number: int
    provisioner: str
    instance_id: str
    offering: OfferingKey
    price_micros_per_hour: int
    capacity: Resources
    allocatable: Resources
    daemon_requests: Resources = Resources()
    labels: Mapping[str, str] = field(default_factory=dict)
    node_name: str = ""
    pods: tuple[PodRef, ...] = ()
    bound: bool = False
    opened: bool = False
    replaces: str = ""
    interrupted_at: datetime | None = None
    stamp: Mapping[str, str] = field(default_factory=dict)
    owner: SlotOwner | None = None
    launched_at: datetime
    version: int = 0

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same slot, whichever version of its row was read."""
        return isinstance(other, Slot) and astuple(self)[:-1] == astuple(other)[:-1]

    def __hash__(self) -> int:
        return hash((self.cluster, self.plan_id, self.group, self.number))

    @property
    def name(self) -> str:
        """The slot's name, as written in tags and annotations."""
        return f"{self.plan_id}/{self.group}/{self.number}"


def slot_of(slots: Iterable[Slot], instance_id: str) -> Slot | None:
    """Return the slot that was paired with an instance, or None."""
    return next((slot for slot in slots if slot.instance_id == instance_id), None)


class Trial(Struct, frozen=True, kw_only=True):
    """A launch whose instances never became usable for the pods they were launched for.

    Attributes:
        subjects: Short digests of these: a pod, or the controller that replaces its pods.
        provisioners: Names of the owners of the instances, as far as known.
    """

    plan_id: str
    launched_at: datetime
    subjects: frozenset[str]
    provisioners: frozenset[str] = frozenset()


class Lease(Struct, frozen=True, kw_only=True):
    """The right of one invocation to plan for one cluster.

    Attributes:
        token: Fencing token, grows with each acquisition.
        dirty: Whether another plan had been requested when it was last renewed.
    """

    cluster: str
    holder: str
    token: int
    expires_at: datetime
    dirty: bool = False


class Instance(Struct, frozen=True, kw_only=True):
    """An EC2 instance of Dovetail.

    Attributes:
        state: pending, running, shutting-down, terminated, stopping or stopped.
        private_dns_name: The node's name, empty when not yet known.
        state_reason: Code of the reason for its last change of state, such as
            `Client.InternalError`; empty while EC2 gives none.
        state_message: EC2's text for that.
    """

    instance_id: str
    state: str
    offering: OfferingKey
    private_dns_name: str = ""
    image_id: str = ""
    launched_at: datetime | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    state_reason: str = ""
    state_message: str = ""

    @property
    def is_alive(self) -> bool:
        """Whether it is pending or running."""
        return self.state in ("pending", "running")

    @property
    def is_terminating(self) -> bool:
        """Whether EC2 has terminated it or is terminating it; a stopped instance does not count."""
        return self.state in ("shutting-down", "terminated")

    @property
    def is_running(self) -> bool:
        """Whether it is running."""
        return self.state == "running"

    @property
    def owner_labels(self) -> dict[str, str]:
        """The label that names its Provisioner or NodePool; empty without the tag that does."""
        of_pool = keys.TAG_NODE_POOL in self.tags
        name = self.tags.get(keys.PROVISIONER_NAME, "")
        return {keys.NODE_POOL if of_pool else keys.PROVISIONER_NAME: name} if name else {}

    def matches_node(self, node_name: str) -> bool:
        """Return whether a Node of this name may be its own; any may be until EC2 gives a name.

        A kubelet is authenticated by the private DNS name or the id of its instance.
        Source: https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html
        (2026-11).
        """
        return node_name in (self.private_dns_name or node_name, self.instance_id)

    @property
    def provider_id(self) -> str:
        """The providerID of its Node."""
        return f"aws:///{self.offering.zone}/{self.instance_id}"


class FleetInstance(Struct, frozen=True, kw_only=True):
    """An instance a CreateFleet call returned."""

    instance_id: str
    offering: OfferingKey


class FleetError(Struct, frozen=True, kw_only=True):
    """An error that CreateFleet returned, as its answer or inside an answer.

    Attributes:
        code: EC2's error code; `shared.model.ec2.fleet_errors` says what each code means.
        message: EC2's text, for people; no decision depends on it.
        offering: The refused offering; None when EC2 names no instance type: the error then applies
            to every offering of the request that was not launched.
        subnet_id: The subnet of the refused override, empty when EC2 names none.
    """

    code: str
    message: str
    offering: OfferingKey | None = None
    subnet_id: str = ""


class FleetAnswer(Struct, frozen=True, kw_only=True):
    """What CreateFleet returned: instances and errors, both possible at once.

    Attributes:
        errors: Each distinct error once, in EC2's order.
    """

    fleet_id: str
    instances: tuple[FleetInstance, ...]
    errors: tuple[FleetError, ...] = ()
