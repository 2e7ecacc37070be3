"""Why a pod fits nothing: per provisioner, the first thing that ruled it out."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.dollars_and_counts import first_names
from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.taints import Toleration
from shared.model.provisioner import Provisioner
from shared.model.requirements import Requirements
from shared.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, Resources, readable_amount
from shared.model.snapshot import ClusterSnapshot, ProvisionerSite
from shared.model.values import replace
from shared.planning.nearest_label import nearest_label
from shared.planning.offerings.picks import label_choices
from shared.planning.offerings.unknown_resources import unknown_resources
from shared.planning.provisioner_problems import (
    NO_SUBNET,
    excluding_requirement,
    flexibility_problem,
    launch_problem,
    requirement_warnings,
)
from shared.planning.rules.daemon_overhead import DaemonOverhead
from shared.planning.rules.labels_and_taints import accepted_terms, ports_conflict, taint_refusal
from shared.planning.rules.limits import limits_of, remaining_limits, used_capacity
from shared.planning.rules.node_constraints import NodeConstraints, could_buy, node_constraints_of
from shared.planning.rules.pod_classes import PodClass
from shared.planning.rules.provisioner_offerings import (
    ProvisionerOffering,
    as_configured,
    free_requirements,
    place_labels,
    place_values,
    provisioner_offerings,
    usable_in_order,
)

# Values named in a reason before the rest is only counted.
_SHOWN: Final = 5
_DAEMONSETS: Final = 3
_MIB: Final = 2**20
_OF_THE_CLOUD: Final = (
    f" (the cloud controller adds {keys.ZONE_ID} to nodes that exist: ask for {keys.ZONE})"
)
# Taints have been checked before.
_ANY: Final = (Toleration(operator="Exists"),)

_NO_OWNER: Final = (
    "no usable NodePool or Provisioner: create one, or see the conditions of those there are"
)


class Reasons:
    """The reasons of many classes of one snapshot; what Provisioners offer is computed once."""

    def __init__(
        self, snapshot: ClusterSnapshot, left: Mapping[str, Resources] | None = None
    ) -> None:
        """Find reasons in a snapshot; `left` is what limits leave after the plan, by owner."""
        self._snapshot = snapshot
        self._sites = {site.provisioner: site for site in snapshot.sites}
        self._usable = usable_in_order(snapshot.provisioners)
        self._left = remaining_limits(snapshot) if left is None else left
        self._limits: Mapping[str, Resources] | None = None
        self._found: dict[tuple[object, ...], str] = {}
        self._offers: dict[tuple[object, ...], tuple[ProvisionerOffering, ...]] = {}
        self._accepted: dict[tuple[str, NodeConstraints], Sequence[ProvisionerOffering]] = {}
        self._largest: dict[tuple[str, NodeConstraints], Resources] = {}
        self._of_types: tuple[tuple[InstanceType, Resources], ...] | None = None

    def of(
        self, pod_class: PodClass, limited: frozenset[str], rules: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Return one line per provisioner, in the order they are tried.

        Args:
            limited: Provisioners that would have held the pods but for their limits.
            rules: Descriptions of the topology rules that leave no place.
        """
        if not self._usable:
            return (_NO_OWNER,)
        lines = []
        # Many classes differ only in what does not matter here.
        asked = node_constraints_of(pod_class.scheduling)
        for provisioner in self._usable:
            demand = pod_class.scheduling
            question = (
                *(provisioner.name, asked, demand.requests),
                *(demand.host_ports, demand.shared),
            )
            if question not in self._found:
                self._found[question] = self.why(provisioner, pod_class)
            why = self._found[question]
            if not why and provisioner.name in limited:
                why = self._limit_reached(provisioner)
            if not why:
                about = f": {'; '.join(rules[:_SHOWN])}" if rules else ""
                topology_keys = {spread.key for spread in demand.spreads}
                topology_keys.update(term.key for term in (*demand.affinity, *demand.anti_affinity))
                hint = _OF_THE_CLOUD if keys.ZONE_ID in topology_keys else ""
                volumes = f"; {_volume(pod_class)}" if demand.volume_terms else ""
                why = f"its topology rules leave no place{about}{hint}{volumes}"
            lines.append(f"{provisioner.name}: {why}")
        return tuple(lines)

    def why(self, provisioner: Provisioner, pod_class: PodClass) -> str:
        """Return why the Provisioner cannot launch a node for such a pod alone, empty if it can."""
        refusal = taint_refusal(pod_class.scheduling, provisioner.taints)
        if refusal:
            return refusal
        site = self._sites.get(provisioner.name)
        if site is not None and site.refusal:
            return site.refusal
        if site is None or not site.zones:
            return (site.reason if site else "") or NO_SUBNET
        every = self._offerings_for(provisioner, site, pod_class, available_only=False)
        if not every:
            types = self._snapshot.instance_types
            problem = launch_problem(provisioner, site, types)
            return "; ".join((problem, *requirement_warnings(provisioner, types)))
        accepting = self._accepting(provisioner, every, pod_class)
        if not accepting:
            return (
                _volume(pod_class)
                if _volumes_apart(every, pod_class)
                else _missing_label(every, pod_class) + self._no_image(provisioner, site, pod_class)
            )
        shared = [Resources(((name, 1),)) for _, name in pod_class.scheduling.shared]
        requests = Resources.total((pod_class.scheduling.requests, *shared))
        largest = self._largest_of(provisioner, accepting, pod_class)
        missing = requests.exceeding(largest)
        unknown = [
            name
            for name in missing
            if not any(allocatable[name] for _, allocatable in self._allocatable_by_type())
        ]
        if unknown:
            return unknown_resources(unknown)
        if missing or not any(requests.fits(offer.available) for offer in accepting):
            excluded = self._excluded(provisioner, requests)
            return (
                _too_large(requests, largest, missing)
                + _of_memory(requests, missing, accepting)
                + self._of_disks(provisioner, requests, missing, accepting)
                + self._of_daemonsets(requests, accepting)
                + excluded
            )
        if pod_class.scheduling.host_ports:
            able = [offer for offer in accepting if requests.fits(offer.available)]
            if taken := self._taken_ports(pod_class, able):
                return taken
        no_capacity = self._insufficient_capacity(provisioner, site, pod_class, requests)
        return no_capacity or self._inflexible(provisioner, site, pod_class, requests)

    def _no_image(
        self, provisioner: Provisioner, site: ProvisionerSite, pod_class: PodClass
    ) -> str:
        """Return a note if the pod would accept types that no image boots; empty if not."""
        if not site.without_image:
            return ""
        any_image = replace(site, without_image=frozenset())
        every = self._offerings_for(provisioner, any_image, pod_class, available_only=False)
        accepted = _accepting(every, pod_class)
        return "; its images do not boot the types that would do" if accepted else ""

    def _inflexible(
        self,
        provisioner: Provisioner,
        site: ProvisionerSite,
        pod_class: PodClass,
        requests: Resources,
    ) -> str:
        """Return how the offers that hold a pod fall short of minValues; empty if they do not."""
        if not provisioner.least_values:
            return ""
        available_offers = _accepting(
            self._offerings_for(provisioner, site, pod_class, available_only=True), pod_class
        )
        return flexibility_problem(
            provisioner, (o for o in available_offers if requests.fits(o.available))
        )

    def _insufficient_capacity(
        self,
        provisioner: Provisioner,
        site: ProvisionerSite,
        pod_class: PodClass,
        requests: Resources,
    ) -> str:
        """Return a reason if EC2 supplies nothing that would hold the pod; empty if it does."""
        if not self._snapshot.unavailable and not site.refused:
            return ""
        available_offers = _accepting(
            self._offerings_for(provisioner, site, pod_class, available_only=True), pod_class
        )
        if any(requests.fits(offer.available) for offer in available_offers):
            return ""
        if site.refused:
            return (
                "EC2 has no capacity for, or refuses, every instance type that would hold it: see "
                f"the Events of the {provisioner.kind}; tried again"
            )
        return "EC2 is out of capacity for every instance type that would hold it; tried again"

    def _excluded(self, provisioner: Provisioner, requests: Resources) -> str:
        """Return which requirement excludes the types that are large enough, empty for none."""
        able = [
            known
            for known, allocatable in self._allocatable_by_type()
            if requests.fits(allocatable)
        ]
        requirement = excluding_requirement(provisioner, able)
        return f"; types that have enough are excluded by {requirement}" if requirement else ""

    def _of_disks(
        self,
        provisioner: Provisioner,
        requests: Resources,
        missing: Sequence[str],
        accepting: Iterable[ProvisionerOffering],
    ) -> str:
        """Return how to give pods the instance store, if this is large enough; else empty."""
        template = provisioner.template
        if missing != (EPHEMERAL_STORAGE,) or provisioner.kind != OwnerKind.NODE_POOL:
            return ""
        striped = replace(provisioner, template=replace(template, instance_store=True))
        names = {offer.instance_type.name for offer in accepting}
        for known in self._snapshot.instance_types:
            allocatable = (
                as_configured(striped, known).allocatable if known.name in names else requests
            )
            if allocatable[EPHEMERAL_STORAGE] > requests[EPHEMERAL_STORAGE]:
                return (
                    f"; the NVMe disks of {known.name} have enough: set "
                    f"{provisioner.dialect.template_kind}.spec.instanceStorePolicy: RAID0"
                )
        return ""

    def _of_daemonsets(self, requests: Resources, accepting: Iterable[ProvisionerOffering]) -> str:
        """Return which DaemonSets take what a pod lacks, if it would fit without them."""
        for offer in accepting:
            if not requests.fits(offer.available + offer.daemon_requests):
                continue
            short = requests.exceeding(offer.available)[0]
            taking = [
                daemon_set
                for daemon_set in self._running(offer)
                if daemon_set.scheduling.requests[short]
            ]
            taking.sort(
                key=lambda daemon_set: (-daemon_set.scheduling.requests[short], daemon_set.key)
            )
            named = [
                f"DaemonSet {daemon_set.key} takes "
                f"{short} {readable_amount(short, daemon_set.scheduling.requests[short], up=True)}"
                for daemon_set in taking[:_DAEMONSETS]
            ]
            more = [f"{len(taking) - _DAEMONSETS} more"] if len(taking) > _DAEMONSETS else []
            return f"; on {offer.instance_type.name} {', '.join((*named, *more))}" if named else ""
        return ""

    def _running(self, offer: ProvisionerOffering) -> tuple[DaemonSet, ...]:
        """Return the DaemonSets that nodes of an offer run."""
        overhead = DaemonOverhead(self._snapshot.daemonsets, offer.provisioner.taints)
        return overhead.running(offer.labels, place_values(offer.offerings))

    def _taken_ports(self, pod_class: PodClass, able: Sequence[ProvisionerOffering]) -> str:
        """Return which host port a DaemonSet takes on every node that is large enough, else ""."""
        for port in pod_class.scheduling.host_ports:
            if all(any(ports_conflict(port, other) for other in offer.ports) for offer in able):
                taking = min(
                    daemon_set.key
                    for daemon_set in self._running(able[0])
                    if any(
                        ports_conflict(port, other) for other in daemon_set.scheduling.host_ports
                    )
                )
                return f"host port {port[2]}/{port[1]} is taken by DaemonSet {taking} on every node"
        return ""

    def _allocatable_by_type(self) -> tuple[tuple[InstanceType, Resources], ...]:
        """Return each instance type with its allocatable resources."""
        if self._of_types is None:
            types = self._snapshot.instance_types
            self._of_types = tuple((known, known.allocatable) for known in types)
        return self._of_types

    def _largest_of(
        self,
        provisioner: Provisioner,
        accepting: Iterable[ProvisionerOffering],
        pod_class: PodClass,
    ) -> Resources:
        """Return the most of each resource that any offer which a pod accepts has."""
        question = (provisioner.name, node_constraints_of(pod_class.scheduling))
        if question not in self._largest:
            largest = Resources()
            for offer in accepting:
                largest = largest.largest(offer.available)
            self._largest[question] = largest
        return self._largest[question]

    def _accepting(
        self, provisioner: Provisioner, every: Sequence[ProvisionerOffering], pod_class: PodClass
    ) -> Sequence[ProvisionerOffering]:
        """Return the offers whose labels a pod accepts, largest first; many pods share them."""
        question = (provisioner.name, node_constraints_of(pod_class.scheduling))
        if question not in self._accepted:
            found = _accepting(every, pod_class)
            self._accepted[question] = sorted(found, key=lambda offer: -offer.available[CPU])
        return self._accepted[question]

    def _offerings_for(
        self,
        provisioner: Provisioner,
        site: ProvisionerSite,
        pod_class: PodClass,
        *,
        available_only: bool,
    ) -> list[ProvisionerOffering]:
        found: list[ProvisionerOffering] = []
        for chosen in label_choices(provisioner, accepted_terms(pod_class.scheduling)):
            question = (
                *(provisioner.name, tuple(sorted(chosen.items()))),
                *(available_only, site.without_image),
            )
            if question not in self._offers:
                self._offers[question] = provisioner_offerings(
                    provisioner,
                    site,
                    self._snapshot.instance_types,
                    self._snapshot.daemonsets,
                    unavailable=self._snapshot.unavailable if available_only else None,
                    picks=(chosen,),
                )
            found += self._offers[question]
        return found

    def _limit_reached(self, provisioner: Provisioner) -> str:
        left = self._left.get(provisioner.name, Resources())
        if self._limits is None:
            self._limits = limits_of(self._snapshot, used_capacity(self._snapshot))
        limits = self._limits.get(provisioner.name, Resources())
        parts = [
            f"{name} {readable_amount(name, max(amount, 0))} left of "
            f"{readable_amount(name, limits[name])}"
            for name, amount in left.items
        ]
        return "its limits are in the way: " + ", ".join(parts)


def _accepting(
    found: Iterable[ProvisionerOffering], pod_class: PodClass
) -> list[ProvisionerOffering]:
    """Return the offers whose labels a pod accepts, volumes included."""
    asked = node_constraints_of(pod_class.scheduling)
    tolerant = replace(asked, tolerations=_ANY)
    return [offer for offer in found if could_buy(tolerant, offer)]


def _volumes_apart(every: Sequence[ProvisionerOffering], pod_class: PodClass) -> bool:
    """Return whether only the pod's volumes keep it from all offers."""
    if not pod_class.scheduling.volume_terms:
        return False
    free = replace(pod_class, scheduling=replace(pod_class.scheduling, volume_terms=()))
    return bool(_accepting(every, free))


def _volume(pod_class: PodClass) -> str:
    """Return where the volumes could be used."""
    allowed = " and ".join(
        " or ".join(
            ", ".join(wanted.describe() for wanted in term) or "anywhere" for term in alternatives
        )
        for alternatives in pod_class.scheduling.volume_terms
    )
    return f"volume: it can be used only where {allowed}"


def _labels_by_offering(offer: ProvisionerOffering) -> list[dict[str, str]]:
    """Return the labels that nodes of an offer could have, by offering."""
    return [{**offer.labels, **place_labels(offering)} for offering in offer.offerings]


def _missing_label(every: Sequence[ProvisionerOffering], pod_class: PodClass) -> str:
    """Return the first label asked for that no offering has, or that none has all at once."""
    label_sets = [labels for offer in every for labels in _labels_by_offering(offer)]
    left_open = Requirements.of(free_requirements(every[0].provisioner))
    for term in accepted_terms(pod_class.scheduling):
        for wanted in term:
            if wanted.is_empty():
                return f"what it asks of {wanted.key} contradicts itself: no value is right"
            values = {labels.get(wanted.key) for labels in label_sets}
            free = left_open.get(wanted.key)
            if free is not None and not free.intersect(wanted).is_empty():
                # Nodes get a value that the pod accepts, if all else fits.
                continue
            if not any(wanted.allows(value) for value in values):
                offered = sorted(value for value in values if value is not None)
                text = first_names(offered, _SHOWN) or "no such label"
                hint = _near_miss(wanted.key, label_sets[0])
                return f"needs {wanted.describe()}, offered {text}{hint}"
            if all(wanted.key in offer.undecided for offer in every):
                # Its nodes have some value of this label, and the pod accepts no known one.
                hint = _OF_THE_CLOUD if wanted.key == keys.ZONE_ID else ""
                return f"needs {wanted.describe()}, and every node of it has that label{hint}"
    return "no instance type has all labels it needs at once"


def _near_miss(key: str, labels: Mapping[str, str]) -> str:
    """Return a hint if another label means the same, or differs only in domain or spelling."""
    if key == keys.ZONE_ID and key not in labels:
        return _OF_THE_CLOUD
    known = sorted({*keys.WELL_KNOWN, *labels})
    near = "" if key in known else nearest_label(key, known)
    return f" (did you mean {near}?)" if near else ""


def _too_large(requests: Resources, largest: Resources, missing: Sequence[str]) -> str:
    if not missing:
        return "no single instance type has enough of all it requests at once"
    parts = []
    for name in missing[:_SHOWN]:
        most = readable_amount(name, largest[name])
        parts.append(f"{name} {readable_amount(name, requests[name], up=True)} (at most {most})")
    return "no instance type is large enough: requests " + ", ".join(parts)


def _of_memory(
    requests: Resources, missing: Sequence[str], offers: Iterable[ProvisionerOffering]
) -> str:
    """Return a hint that memory is an estimate, if EC2 advertises as much as a pod requests."""
    advertised = max(int(offer.labels.get(keys.INSTANCE_MEMORY, "0")) for offer in offers)
    if missing != (MEMORY,) or requests[MEMORY] > advertised * _MIB:
        return ""
    return (
        f"; of the {readable_amount(MEMORY, advertised * _MIB)} that EC2 sells, "
        "what nodes keep is an "
        "estimate until one has shown it: set vm_memory_overhead_percent"
    )
