"""Gathering one snapshot of a cluster for a provisioning decision."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shared.model.errors import NotFoundError
from shared.model.launch import LaunchIntent
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot, InvalidProvisioner, ProvisionerSite
from shared.ports import ClusterPorts, Site
from shared.services.launch_body import LaunchBody


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """A snapshot, and what the decision does not see but the launch needs.

    Attributes:
        found_sites: By provisioner name.
        invalid: Provisioners that cannot be used.
    """

    snapshot: ClusterSnapshot
    found_sites: Mapping[str, Site] = field(hash=False)
    invalid: tuple[InvalidProvisioner, ...]


def gather(ports: ClusterPorts, plan_id: str) -> Gathered:
    """Read everything one decision needs, the cheapest things first.

    Pods on nodes and DaemonSets are only read when some pod waits at all.
    """
    cluster = ports.cluster
    taken_at = ports.clock.now()
    # Slots before nodes and pods: a slot dropped in between is a node that is read later.
    slots = ports.ledger.slots(cluster.name)
    intents = ports.ledger.open_intents(cluster.name)
    pending = cluster.pending_pods()
    provisioners, invalid = cluster.provisioners()
    anything = any(pod.is_provisionable for pod in pending)
    sites = {one.name: site_of(ports, one) for one in provisioners} if anything else {}
    snapshot = ClusterSnapshot(
        cluster=cluster.name,
        taken_at=taken_at,
        pending=pending,
        nodes=cluster.nodes() if anything else (),
        bound=cluster.bound_pods() if anything else (),
        provisioners=provisioners,
        sites=tuple(_site(one, sites[one.name]) for one in provisioners if one.name in sites),
        daemonsets=cluster.daemonsets() if anything else (),
        slots=slots,
        intents=intents,
        promised=promised(ports, intents),
        instance_types=ports.catalog.instance_types() if anything else (),
        unavailable=ports.ledger.unavailable_offerings(taken_at),
        seed=int.from_bytes(hashlib.sha256(plan_id.encode()).digest()[:4], "big"),
    )
    return Gathered(snapshot=snapshot, found_sites=sites, invalid=invalid)


def site_of(ports: ClusterPorts, provisioner: Provisioner) -> Site:
    """Return where a provisioner's machines can stand.

    A selector left empty means what carries the cluster's own tag.
    """
    template = provisioner.template
    own = {f"kubernetes.io/cluster/{ports.cluster.name}": "*"}
    return ports.cloud.site(
        dataclasses.replace(
            template,
            subnet_selector=template.subnet_selector or own,
            security_group_selector=template.security_group_selector or own,
        )
    )


def promised(ports: ClusterPorts, intents: Sequence[LaunchIntent]) -> frozenset[str]:
    """Return the uids of pods that unfinished launches were decided for.

    A launch whose body is lost promises nothing: it will be given up.
    """
    found: set[str] = set()
    for intent in intents:
        try:
            body = LaunchBody.from_bytes(ports.decisions.get(intent.body_key))
        except NotFoundError:
            continue
        found.update(ref.uid for slot in body.attempt.slots for ref in slot.pods)
    return frozenset(found)


def _site(provisioner: Provisioner, site: Site) -> ProvisionerSite:
    zones = tuple(sorted({subnet.zone for subnet in site.subnets}))
    selector = ", ".join(
        f"{key}={value}" for key, value in sorted(provisioner.template.subnet_selector.items())
    )
    reason = "" if zones else f"no subnet has the tags {selector or '(none given)'}"
    if zones and not site.security_groups and not provisioner.template.launch_template:
        zones, reason = (), "no security group has the tags of securityGroupSelector"
    return ProvisionerSite(provisioner=provisioner.name, zones=zones, reason=reason)
