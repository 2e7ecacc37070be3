"""The environment of each function, validated at start. The only module infra/aws may import.

Every setting has a default with its reason, except names of resources, which the stack gives.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Final, Literal, Self, get_args, get_origin

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import FieldInfo, asdict, fields

PREFIX: Final = "DOVETAIL_"
# A name that a registry can have, with its tag or digest.
IMAGE: Final = re.compile(r"^[a-z0-9][A-Za-z0-9._:/@-]*$")
AUTOSCALER_NAMESPACES: Final = "kube-system,karpenter"
PRICING_REGION: Final = "us-east-1"
# Service-linked roles without which EC2 refuses to launch, and the services they belong to.
# Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/service-linked-roles-spot-instance-requests.html
# and https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-fleet-prerequisites.html (2026-08).
LINKED_ROLES: Final[Mapping[str, str]] = {
    "AWSServiceRoleForEC2Fleet": "ec2fleet.amazonaws.com",
    "AWSServiceRoleForEC2Spot": "spot.amazonaws.com",
}
# For a launch: AssumeRole, DescribeInstances, CreateFleet.
_CALLS_PER_RENEWAL: Final = 3
_NAMESPACE: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_Namespaces = Annotated[str, Meta(pattern=rf"^{_NAMESPACE}(,{_NAMESPACE})*\Z")]
_Cluster = Annotated[str, Meta(max_length=100, pattern=r"^[0-9A-Za-z][A-Za-z0-9_-]*\Z")]
_Text = Annotated[str, Meta(min_length=1)]
_Name = Annotated[str, Meta(min_length=3)]
_Url = Annotated[str, Meta(min_length=8)]
_Machine = Annotated[str, Meta(pattern=r"^arn:[^:]+:states:")]
_Role = Annotated[str, Meta(pattern=r"^arn:[^:]+:iam::\d{12}:role/")]
_TimeoutSeconds = Annotated[float, Meta(gt=0, le=50)]
_LeaseSeconds = Annotated[float, Meta(gt=0, le=60)]
# A year at most, which keeps infinity out.
_Seconds = Annotated[float, Meta(ge=0, le=31_536_000)]
_SomeSeconds = Annotated[float, Meta(ge=1, le=31_536_000)]
_Count = Annotated[int, Meta(ge=0)]
_Percent = Annotated[int, Meta(ge=0, le=100)]


class SettingsError(ValueError):
    """A variable of the environment is missing or wrong; the text names it and what to set."""


class EnvironmentSettings(Struct, frozen=True, kw_only=True):
    """Settings that are variables `DOVETAIL_<FIELD>` of the environment."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Return the settings found; others in the environment do not count.

        Raises:
            SettingsError: If one is missing or wrong.
        """
        given: dict[str, Any] = {}
        for field in fields(cls):
            variable = f"{PREFIX}{field.name.upper()}"
            if variable in environment:
                given[field.name] = _read(field, variable, environment[variable])
            elif field.required:
                raise SettingsError(f"{variable}: is missing: set it")
        try:
            return cls(**given)
        except ValueError as error:
            raise SettingsError(f"environment: {error}") from error

    def to_environment(self) -> dict[str, str]:
        """Return the variables that `from_environment` reads back unchanged."""
        return {f"{PREFIX}{name.upper()}": str(value) for name, value in asdict(self).items()}


def _read(field: FieldInfo, variable: str, text: str) -> Any:
    try:
        return convert(text, field.type, strict=False)
    except ValidationError as error:
        known = get_args(field.type) if get_origin(field.type) is Literal else ()
        expected = f"expected one of {', '.join(known)}" if known else error
        raise SettingsError(f"{variable}: {expected} (found {text!r})") from error


class FunctionSettings(EnvironmentSettings, frozen=True, kw_only=True):
    """What every function needs.

    Attributes:
        table: Name of the ledger table.
        bucket: Name of the bucket of decisions and catalogue.
        queue_url: URL of the wake queue.
        dead_letter_url: URL of the queue for records that cannot be understood.
        cluster_parameters: SSM path under which each cluster's attachment is written.
        api_timeout_seconds: Time-out of one call to AWS or a cluster; shorter than the lease.
        autoscaler_namespaces: Namespaces, separated by commas, where a lease of another autoscaler
            is believed: a client that may write leases there can stop Dovetail's launches.
        daemonset_namespaces: Namespaces, separated by commas, whose DaemonSets get room on each
            node, however much they request. Those of other namespaces together get a share.
        fleet_burst: Requests the CreateFleet token bucket holds (users measured 5).
        fleet_per_second: Its refill, requests per second (users measured 2).
    """

    table: _Name
    bucket: _Name
    queue_url: _Url
    dead_letter_url: _Url
    cluster_parameters: Annotated[str, Meta(pattern=r"^/[\w/.-]+[^/]\Z")] = "/dovetail/clusters"
    api_timeout_seconds: _TimeoutSeconds = 15.0
    autoscaler_namespaces: _Namespaces = AUTOSCALER_NAMESPACES
    daemonset_namespaces: _Namespaces = "kube-system"
    fleet_burst: Annotated[int, Meta(ge=1, le=1000)] = 5
    fleet_per_second: Annotated[float, Meta(gt=0, le=1000)] = 2.0


class TimerSettings(FunctionSettings, frozen=True, kw_only=True):
    """What a function needs that starts state machines.

    Attributes:
        emptiness_machine: ARN of the EmptinessTimer state machine; likewise the others.
    """

    emptiness_machine: _Machine
    expiration_machine: _Machine
    registration_machine: _Machine
    replacement_machine: _Machine
    termination_machine: _Machine
    bind_function: _Text
    provision_function: _Text


class BindSettings(TimerSettings, frozen=True, kw_only=True):
    """What the functions bind and provision need: both bind pods.

    Attributes:
        binding_policy: `early` binds a pod as soon as its Node exists, if that is safe for this
            pod; `ready` binds once the node is Ready; `scheduler` leaves binding to
            kube-scheduler.
    """

    binding_policy: Literal["early", "ready", "scheduler"] = "early"


class ProvisionSettings(BindSettings, frozen=True, kw_only=True):
    """What provision needs.

    Attributes:
        batch_idle_seconds: The fast lane waits until the pending pods are unchanged this long.
        batch_max_seconds: ... but no longer than this.
        lease_seconds: Length of the lease: longer than any call with its time-out, at most 60.
        registration_seconds: An instance that has not joined after this long is terminated. By
            default pods tolerate a node that is not Ready for 300 s before they are evicted. Bare
            metal has at least 1200 s.
        max_node_vcpus: Largest instance to launch, in vCPU; 0 for no cap. Limits the blast radius.
            The default does not apply to a plan that it makes over 2 % dearer.
        max_launch_groups: Most CreateFleet calls of one plan, unless so few would raise its price
            by over 0.5 %; 0 for no limit.
        fewer_nodes_permille: Of plans whose prices differ by so many thousandths at most, the one
            with fewer nodes is carried out.
        preference_price_percent: With the policy Weigh, a preference of pods is kept if that costs
            at most this much more, in percent of what the pods cost.
        minimum_saving_percent: What a change must save, in percent of the price of the nodes that
            it removes: moving pods is never free.
        minimum_saving_per_hour: ... and what it must save in dollars an hour.
        minimum_pod_age_seconds: Consolidation leaves nodes with younger pods alone.
        eviction_cost: What moving a plain pod costs in dollars, which a change must save while its
            pods are there; 0 to count nothing but what is saved.
        disruption_budget_percent: The share of a cluster's nodes that consolidation may remove
            within the window; one node is always allowed.
        disruption_window_seconds: The length of that window, and of the pause after a change that
            failed.
    """

    batch_idle_seconds: Annotated[float, Meta(ge=0, le=30)] = 1.0
    batch_max_seconds: Annotated[float, Meta(ge=0, le=60)] = 10.0
    lease_seconds: _LeaseSeconds = 50.0
    registration_seconds: _SomeSeconds = 300.0
    max_node_vcpus: _Count = 96
    max_launch_groups: _Count = 40
    fewer_nodes_permille: Annotated[int, Meta(ge=0, le=1000)] = 5
    preference_price_percent: _Count = 10
    minimum_saving_percent: _Percent = 5
    minimum_saving_per_hour: Annotated[float, Meta(ge=0, le=1000)] = 0.01
    minimum_pod_age_seconds: _Seconds = 600.0
    eviction_cost: Annotated[float, Meta(ge=0, le=1000)] = 0.008
    disruption_budget_percent: Annotated[int, Meta(ge=1, le=100)] = 10
    disruption_window_seconds: _SomeSeconds = 600.0

    def __post_init__(self) -> None:
        """Refuse a lease that does not outlive three calls: so many are made under one renewal."""
        if self.lease_seconds <= _CALLS_PER_RENEWAL * self.api_timeout_seconds:
            raise ValueError(
                f"lease_seconds {self.lease_seconds:g} must be more than {_CALLS_PER_RENEWAL} x "
                f"api_timeout_seconds {self.api_timeout_seconds:g}"
            )

    @property
    def lease_span(self) -> timedelta:
        """Length of the lease."""
        return timedelta(seconds=self.lease_seconds)


class TerminationSettings(TimerSettings, frozen=True, kw_only=True):
    """What termination needs.

    Attributes:
        drain_deadline_seconds: Drains are forced after this long; 0 (default) for never: a
            PodDisruptionBudget may block a drain as long as its owner wants.
    """

    drain_deadline_seconds: _Seconds = 0.0


class SweepSettings(TimerSettings, frozen=True, kw_only=True):
    """What sweep needs.

    Attributes:
        orphan_grace_seconds: An instance younger than this may still get its Node.
        pending_grace_seconds: A pod pending for less than this is not yet overdue.
        registration_seconds: The same as for provision; a registration timer that has not ended
            after this long is started again.
        disruption_window_seconds: The same as for provision; replaced nodes count towards the
            budget for this long.
    """

    sweep_function: _Text
    orphan_grace_seconds: _Seconds = 90.0
    pending_grace_seconds: _Seconds = 60.0
    registration_seconds: _SomeSeconds = 300.0
    disruption_window_seconds: _SomeSeconds = 600.0


class RefreshCatalogSettings(FunctionSettings, frozen=True, kw_only=True):
    """What refresh_catalog needs.

    Attributes:
        pricing_region: Region whose endpoint serves the Pricing API.
        prefix_delegation: Whether the VPC CNI of the Region's clusters gives interfaces prefixes
            of addresses (ENABLE_PREFIX_DELEGATION): nodes then hold more pods.
        reserved_interfaces: Interfaces of each node that pods do not get (custom networking: 1).
        density_limited: Whether addresses limit pods at all; false for 110 pods on every node.
        pod_interfaces: Whether pods may ask for an interface of their own (ENABLE_POD_ENI).
        vm_memory_overhead_percent: The share of an instance's memory that hypervisor and kernel
            take, until a node of its type has reported its capacity. With the default, types whose
            capacity was measured have that figure instead.
    """

    pricing_region: str = PRICING_REGION
    prefix_delegation: bool = False
    reserved_interfaces: Annotated[int, Meta(ge=0, le=15)] = 0
    density_limited: bool = True
    pod_interfaces: bool = False
    vm_memory_overhead_percent: Annotated[float, Meta(ge=0, le=50)] = 7.5


class ClusterBrakes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The brakes of a whole cluster.

    They are in its attachment, and in an SSM parameter of their own beside it (`…/<name>/brakes`)
    that no stack overwrites; the stricter of the two holds.

    Attributes:
        paused: Nothing is launched, and no node is removed voluntarily.
        shadow: The same, but decisions are made, recorded and reported.
        max_nodes: The most nodes that the cluster's Provisioners may have together.
        max_price_per_hour: Dollars an hour they may cost together.
    """

    paused: bool = False
    shadow: bool = False
    max_nodes: _Count | None = None
    max_price_per_hour: Annotated[float, Meta(ge=0, le=1_000_000)] | None = None


class ClusterAttachment(Struct, frozen=True, kw_only=True):
    """What the attachment stack writes into SSM for each cluster, as JSON.

    Attributes:
        launch_role: ARN of the role that may launch instances for this cluster.
        terminate_role: ARN of the role that may end them.
        inside_role: ARN of the role that acts in Kubernetes and changes nothing in EC2.
        instance_profile: Default instance profile of its nodes.
        node_profiles: The roles that its nodes may have, each with its instance profile.
        launch_resources: ARNs its launches may use though they carry no tag of the cluster.
        own_images: Which images of the account its launches may use: `tagged` for the cluster, or
            `all`.
        metadata_tokens: Whether its instances must ask the metadata service with a token.
        metadata_hop_limit: Most network hops that an answer of the metadata service may take.
        preference_policy: How preferences of its pods are treated by Provisioners that do not say.
        drift: Whether nodes that have drifted from their Provisioner are replaced, if it does not
            say. Those of NodePools always are, if these do not say.
        brakes: What holds it back from the day it is attached.
        migrate_role: ARN of the role that changes tags for `dovetail migrate`; empty without one.
        forwarder_image: The image of the forwarder that `dovetail attach` deploys.
    """

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    launch_role: _Role
    terminate_role: _Role
    inside_role: _Role
    instance_profile: _Text
    node_profiles: Annotated[dict[str, str], Meta(min_length=1)]
    launch_resources: tuple[str, ...]
    own_images: Literal["tagged", "all"]
    metadata_tokens: Literal["required", "optional"]
    metadata_hop_limit: Annotated[int, Meta(ge=1, le=64)]
    preference_policy: Literal["Respect", "Weigh", "Ignore"]
    drift: bool
    brakes: ClusterBrakes
    migrate_role: Annotated[str, Meta(pattern=r"^(arn:[^:]+:iam::\d{12}:role/|\Z)")] = ""
    forwarder_image: _Text


class ForwarderSettings(EnvironmentSettings, frozen=True, kw_only=True):
    """What the forwarder needs; the only process that runs inside the cluster.

    Attributes:
        cluster: The cluster's name, as its attachment has it.
        bus: Name or ARN of the event bus.
        kubeconfig: Path of a kubeconfig file; empty means the pod's service account.
        health_port: Port of /healthz and /readyz on all addresses; 0 for none.
        api_timeout_seconds: Time-out of one call to the bus or the API server (watches aside).
        tracing: Whether each message begins a trace, as `tracing` of the control plane does for
            functions.
    """

    cluster: _Cluster
    bus: _Text
    kubeconfig: str = ""
    health_port: Annotated[int, Meta(ge=0, le=65535)] = 0
    api_timeout_seconds: _TimeoutSeconds = 10.0
    tracing: bool = False
