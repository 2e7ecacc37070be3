"""Gathers one snapshot of a cluster for a provisioning decision."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Final, NamedTuple

from msgspec import Struct, field

from shared.model.dialect import Dialect
from shared.model.ec2.instance_types import InstanceType, OfferingKey
from shared.model.ec2.launches import LaunchIntent, PlannedNode, Slot
from shared.model.ec2.quotas import offerings_beyond_quotas
from shared.model.ec2.selectors import describe_selector, tagged
from shared.model.errors import AutoscalerError, PermanentError
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.pods import Pod, without_stale_nominations
from shared.model.provisioner import InvalidProvisioner, NodeTemplate, Provisioner
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot, ProvisionerSite
from shared.model.values import replace
from shared.planning.rules.provided_daemonsets import provided_daemonsets
from shared.ports import ClusterPorts, Site
from shared.ports.cluster import EachPage, nothing
from shared.snapshot.deployment import DOLLARS, deploy_command
from shared.snapshot.images import no_image, resolve_images
from shared.snapshot.launch_body import LaunchBody
from shared.snapshot.namespaces import namespaces_for
from shared.snapshot.node_facts import cluster_instances, node_facts
from shared.snapshot.observed_allocatable import ALLOCATABLE_NOTES, observed_allocatable
from shared.snapshot.refusals import KnownRefusals, read_refusals
from shared.snapshot.standing_daemons import with_standing
from shared.snapshot.volumes import with_volumes

_NOTED: Final = 3
_BEYOND: Final = (
    "its required anti-affinity beyond that keeps all pods of the namespaces it names from its node"
)


class Gathered(Struct, frozen=True, kw_only=True):
    """A snapshot, and what the launch needs in addition to it.

    Attributes:
        found_sites: Sites by name of the Provisioner.
        invalid: Provisioners that cannot be used.
        left_out: DaemonSets that are not in the snapshot, and pods on nodes whose rules are
            simplified in it, each with the reason.
        bodies: The bodies of the unfinished launches.
        refusals: What EC2 refused to this cluster lately.
    """

    snapshot: ClusterSnapshot
    found_sites: Mapping[str, Site]
    invalid: tuple[InvalidProvisioner, ...]
    left_out: tuple[tuple[DaemonSet | Pod, str], ...] = ()
    bodies: tuple[LaunchBody, ...] = ()
    refusals: KnownRefusals = field(default_factory=KnownRefusals)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, for logs: three lines per kind and namespace, and how many more."""
        found = []
        for (kind, namespace), some in by_kind_and_namespace(self.left_out).items():
            for subject, reason in some[:_NOTED]:
                does = " is left out" if isinstance(subject, DaemonSet) else ""
                found.append(f"{kind} {subject.key}{does}: {reason}")
            if len(some) > _NOTED:
                more = len(some) - _NOTED
                found.append(f"{kind}: {more} more in namespace {namespace}, for such reasons")
        return tuple(found)


def by_kind_and_namespace(
    left_out: Iterable[tuple[DaemonSet | Pod, str]],
) -> dict[tuple[str, str], list[tuple[DaemonSet | Pod, str]]]:
    """Return what was left out, with the reasons, by kind and namespace."""
    found: dict[tuple[str, str], list[tuple[DaemonSet | Pod, str]]] = {}
    for subject, reason in left_out:
        kind = type(subject).__name__
        found.setdefault((kind, subject.namespace), []).append((subject, reason))
    return found


class TemplateImages(NamedTuple):
    """Whether a template has images at all, and the instance types without one."""

    found: bool
    without_image: frozenset[str]


def gather(
    ports: ClusterPorts, plan_id: str, *, read_all: bool = False, each_page: EachPage = nothing
) -> Gathered:
    """Read everything that one decision needs, the cheapest things first.

    Pods on nodes and DaemonSets are read only if any pod is pending, volumes only if such a pod has
    a claim, and labels of namespaces only if a rule of some pod selects namespaces by them. Pods on
    nodes are read once: the same list gives the available resources and the rules that count.

    The lists are not read at the same moment. Pods on nodes come last: a pod that was bound after
    it was listed as pending appears with its node, so it is not pending, and its requests are
    counted.

    Args:
        read_all: Whether to read all of this even if no pod is pending.
        each_page: Called after each page of a list of pods or nodes; renews the lease.
    """
    cluster = ports.cluster
    taken_at = ports.clock.now()
    # Slots before nodes and pods: the node of a slot that is dropped in between is read later.
    slots = ports.ledger.slots(cluster.name)
    intents = ports.ledger.open_intents(cluster.name)
    pending = cluster.pending_pods(each_page)
    provisioners, invalid = cluster.provisioners()
    asking = without_stale_nominations(pending, ())
    anything = read_all or any(pod.is_provisionable for pod in asking)
    sites: dict[str, Site] = {}
    for provisioner in provisioners if anything else ():
        sites[provisioner.name] = site_of(ports, provisioner)
    nodes = cluster.nodes(each_page) if anything else ()
    if anything:
        bound, instances = ports.executor.run_both(
            partial(cluster.bound_pods, each_page), partial(cluster_instances, ports)
        )
        nodes = node_facts(ports, nodes, instances, slots, intents).nodes
    else:
        bound = ()
    served = {pod.uid for pod in bound}
    pending = without_stale_nominations(
        (pod for pod in pending if pod.uid not in served), (node.name for node in nodes)
    )
    daemonsets = cluster.daemonsets() if anything else ()
    made = with_standing([daemon_set for daemon_set in daemonsets if not daemon_set.problem], bound)
    bodies = list(_bodies(ports, intents))
    refusals = read_refusals(ports)
    types = ports.catalog.instance_types() if anything else ()
    provided = provided_daemonsets(made, provisioners, types, ports.daemonset_namespaces)
    learned = ports.ledger.notes(cluster.name, ALLOCATABLE_NOTES) if anything else ()
    unavailable = _unavailable(ports, types, taken_at) if anything else frozenset()
    images_of = cache(partial(_images_of, ports, types))
    snapshot = ClusterSnapshot(
        cluster=cluster.name,
        taken_at=taken_at,
        pending=pending,
        nodes=nodes,
        bound=bound,
        provisioners=provisioners,
        sites=tuple(
            replace(
                _site(ports, provisioner, sites[provisioner.name], refusals, taken_at, images_of),
                observed=observed_allocatable(learned, provisioner),
            )
            for provisioner in provisioners
            if provisioner.name in sites
        ),
        daemonsets=provided.daemonsets,
        slots=slots,
        intents=intents,
        promised=frozenset(
            ref.uid for body in bodies for slot in body.attempt.slots for ref in slot.pods
        ),
        launching=tuple(
            node for body in bodies for node in _launching(body, slots, (*pending, *bound))
        ),
        namespaces=namespaces_for(cluster, (*pending, *bound)),
        instance_types=types,
        unavailable=unavailable,
        seed=int.from_bytes(hashlib.sha256(plan_id.encode()).digest()[:4], "big"),
    )
    snapshot = with_volumes(cluster, snapshot)
    return Gathered(
        snapshot=snapshot,
        found_sites=sites,
        invalid=invalid,
        left_out=(
            *((daemon_set, daemon_set.problem) for daemon_set in daemonsets if daemon_set.problem),
            *provided.left_out,
            *((pod, "; ".join((*pod.scheduling.beyond, _BEYOND))) for pod in bound if _is_cut(pod)),
        ),
        bodies=tuple(bodies),
        refusals=refusals,
    )


def _is_cut(pod: Pod) -> bool:
    """Return whether a pod has required anti-affinity and more terms than are read."""
    asked = pod.scheduling
    return bool(asked.beyond) and any(term.weight is None for term in asked.anti_affinity)


def _unavailable(
    ports: ClusterPorts, types: tuple[InstanceType, ...], now: datetime
) -> frozenset[OfferingKey]:
    """Return the offerings that are unavailable now: without capacity, or beyond a quota."""
    out = ports.ledger.unavailable_offerings(now, ports.cluster.name)
    return out | offerings_beyond_quotas(ports.ledger.quotas_reached(now), types)


def site_of(ports: ClusterPorts, provisioner: Provisioner) -> Site:
    """Return the subnets and security groups of a Provisioner's instances.

    An empty selector selects what has the cluster's own tag.
    """
    template = provisioner.template
    if template.subnet_selector and template.security_group_selector:
        return ports.cloud.site(template)
    own = tagged(f"kubernetes.io/cluster/{ports.cluster.name}")
    return ports.cloud.site(
        replace(
            template,
            subnet_selector=template.subnet_selector or own,
            security_group_selector=template.security_group_selector or own,
        )
    )


def role_problem(ports: ClusterPorts, template: NodeTemplate) -> str:
    """Return why a template's instances cannot have its role, empty if they can."""
    if not template.role or ports.profile_of(template):
        return ""
    name = ports.cluster.name
    command = f"{deploy_command(name, DOLLARS)} -c node_roles={name}:{template.role}"
    known = ", ".join(sorted(ports.node_profiles)) or "none"
    return (
        f"role: {template.role}: the cluster is attached with other roles ({known}); write one of "
        f"them, or attach it with this one, too: {command}"
    )


def _bodies(ports: ClusterPorts, intents: Sequence[LaunchIntent]) -> Iterator[LaunchBody]:
    """Yield the bodies of unfinished launches.

    A launch whose body is gone or cannot be read is left out: it will be abandoned.
    """
    for intent in intents:
        try:
            yield LaunchBody.from_bytes(ports.decisions.get(intent.body_key))
        except PermanentError:
            continue


def _launching(
    body: LaunchBody, launched: Iterable[Slot], pods: Iterable[Pod]
) -> Iterator[PlannedNode]:
    """Yield the nodes of an unfinished launch that have no instance yet, as planned."""
    requests = {pod.uid: pod.scheduling.requests for pod in pods}
    place = (body.attempt.plan_id, body.attempt.group)
    there = {slot.number for slot in launched if (slot.plan_id, slot.group) == place}
    for slot in body.attempt.slots:
        if slot.number in there:
            continue
        yield PlannedNode(
            provisioner=body.attempt.provisioner,
            labels=body.attempt.labels,
            options=body.attempt.options,
            fallback=body.attempt.fallback,
            pods=slot.pods,
            requests=Resources.total(requests[ref.uid] for ref in slot.pods if ref.uid in requests),
            daemon_requests=slot.daemon_requests,
        )


def _site(
    ports: ClusterPorts,
    provisioner: Provisioner,
    site: Site,
    refusals: KnownRefusals,
    now: datetime,
    images_of: Callable[[NodeTemplate, Dialect], TemplateImages | None],
) -> ProvisionerSite:
    known = refusals.of(ports, provisioner, site)
    if known.blocked(now):
        return ProvisionerSite(provisioner=provisioner.name, zones=(), refusal=known.reason())
    zones = tuple(
        sorted({subnet.zone for subnet in site.without_subnets(refusals.subnets).subnets})
    )
    if site.subnets and not zones:
        names = ", ".join(sorted(subnet.subnet_id for subnet in site.subnets))
        refusal = f"EC2 refuses every subnet, as full or unknown ({names}); tried again"
        return ProvisionerSite(provisioner=provisioner.name, zones=(), refusal=refusal)
    template = provisioner.template
    wanted = describe_selector(template.subnet_selector)
    reason = "" if zones else f"no subnet is found by {wanted}"
    if zones and not site.security_groups and not template.launch_template:
        wanted = describe_selector(template.security_group_selector)
        zones, reason = (), f"no security group is found by {wanted}"
    if zones and (problem := role_problem(ports, template)):
        zones, reason = (), problem
    images = images_of(template, provisioner.dialect) if zones else None
    if images is not None and not images.found:
        zones, reason = (), no_image(provisioner.dialect)
    return ProvisionerSite(
        provisioner=provisioner.name,
        zones=zones,
        reason=reason,
        refused=known.left_out(now),
        without_image=images.without_image if images is not None else frozenset(),
    )


def _images_of(
    ports: ClusterPorts,
    instance_types: Sequence[InstanceType],
    template: NodeTemplate,
    dialect: Dialect,
) -> TemplateImages | None:
    """Return the instance types that a template's images boot, None if that is not known now.

    A launch resolves the images again and reports errors. A missing answer must not stop pods that
    need no image, or pods of other Provisioners. A launch template of the user's contains its
    image.
    """
    if template.launch_template:
        return None
    try:
        version = ports.cloud.endpoint().version
        images = resolve_images(ports.cloud, template, version, instance_types, dialect)
    except AutoscalerError:
        return None
    return TemplateImages(found=bool(images.ids), without_image=images.lacks(instance_types))
