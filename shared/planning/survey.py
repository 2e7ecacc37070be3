"""The survey: what a decision starts from, made of a snapshot."""

from collections.abc import Iterable, Sequence

from shared.model.pods import Pod, Scheduling
from shared.model.requirements import Requirements
from shared.model.snapshot import ClusterSnapshot
from shared.model.taints import Effect, Taint
from shared.packing.problem import PackingSettings
from shared.planning.board import Board
from shared.scheduling.applicants import Applicant
from shared.scheduling.census import Census, Place, Profile, add, expect
from shared.scheduling.classes import PodClass, group, selected_keys
from shared.scheduling.companions import Companions
from shared.scheduling.compatibility import accepted_terms
from shared.scheduling.existing import Bystander, Room, bystanders, rooms
from shared.scheduling.limits import remaining
from shared.scheduling.offers import Offer, in_order, label_choices, offers
from shared.scheduling.rules import Rulebook
from shared.scheduling.selection import Namespaces
from shared.scheduling.spots import Spot
from shared.scheduling.wares import Wares


def survey(snapshot: ClusterSnapshot, waiting: Sequence[Pod], settings: PackingSettings) -> Board:
    """Return the board before anything is decided: who waits, what stands, what can be bought."""
    existing = rooms(snapshot)
    others = bystanders(snapshot, existing)
    standing = _pods(existing, others)
    rules = [pod.scheduling for pod in standing]
    rules += [one.scheduling for one in snapshot.daemonsets]
    classes = group(waiting, rules)
    census = Census()
    book = _rulebook(snapshot, census, classes, standing)
    companions = Companions(snapshot.daemonsets, book)
    found = _offers(snapshot, classes)
    wares = Wares(found, existing)
    taints = [one.provisioner.taints for one in found] + [room.taints for room in existing]
    soft_taints = _soft(taints)
    spots = [Spot(room.name, room.labels, room) for room in existing]
    _count(census, book, [*(one.scheduling for one in classes), *rules], spots, others)
    _expect_companions(companions, spots)
    census.mark()
    applicants = tuple(
        Applicant(index, one, book, wares, soft_taints=soft_taints)
        for index, one in enumerate(classes)
    )
    return Board(
        wares=wares,
        census=census,
        applicants=applicants,
        spots=spots,
        limits=remaining(snapshot),
        settings=settings,
        seed=snapshot.seed,
        companions=companions,
        topology_keys=census.keys(),
    )


def _pods(existing: Iterable[Room], others: Iterable[Bystander]) -> list[Pod]:
    found = [pod for room in existing for pod in room.pods]
    return found + [pod for one in others for pod in one.pods]


def _rulebook(
    snapshot: ClusterSnapshot,
    census: Census,
    classes: Iterable[PodClass],
    standing: Iterable[Pod],
) -> Rulebook:
    """Return the rule book, all rules of pods that wait or stand registered."""
    listed = tuple(classes)
    on_nodes = {
        (pod.namespace, id(pod.scheduling)): pod for pod in standing if pod.scheduling.anti_affinity
    }
    seen = {one.namespace for one in listed} | {pod.namespace for pod in standing}
    seen |= {one.namespace for one in snapshot.daemonsets}
    book = Rulebook(census, Namespaces(snapshot.namespaces, seen))
    registered: set[tuple[str, int]] = set()
    for one in listed:
        if (one.namespace, id(one.scheduling)) not in registered:
            registered.add((one.namespace, id(one.scheduling)))
            book.register(one.namespace, one.scheduling)
    for pod in on_nodes.values():
        book.owned(pod.namespace, pod.scheduling)
    for daemon in snapshot.daemonsets:
        book.owned(daemon.namespace, daemon.scheduling)
    return book


def _offers(snapshot: ClusterSnapshot, classes: Iterable[PodClass]) -> tuple[Offer, ...]:
    sites = {site.provisioner: site for site in snapshot.sites}
    demands = {id(one.scheduling): one.scheduling for one in classes}
    terms: dict[Requirements, None] = {}
    topology: set[str] = set()
    for scheduling in demands.values():
        terms.update(dict.fromkeys(accepted_terms(scheduling)))
        terms.update(dict.fromkeys(one.requirements for one in scheduling.preferred_nodes))
        topology.update(one.key for one in scheduling.spreads)
        topology.update(one.key for one in scheduling.affinity)
        topology.update(one.key for one in scheduling.anti_affinity)
        topology.update(one.key for one in scheduling.ties)
    return tuple(
        offer
        for provisioner in in_order(snapshot.provisioners)
        if provisioner.name in sites
        for chosen in label_choices(provisioner, terms, sorted(topology))
        for offer in offers(
            provisioner,
            sites[provisioner.name],
            snapshot.instance_types,
            snapshot.daemonsets,
            unavailable=snapshot.unavailable,
            chosen=chosen,
        )
    )


def _soft(taints: Iterable[Sequence[Taint]]) -> bool:
    return any(
        taint.effect == Effect.PREFER_NO_SCHEDULE
        for many in {id(one): one for one in taints}.values()
        for taint in many
    )


def _count(
    census: Census,
    book: Rulebook,
    rules: Iterable[Scheduling],
    spots: Sequence[Spot],
    others: Sequence[Bystander],
) -> None:
    """Count who stands where already."""
    if not census:
        return
    visible = selected_keys({id(one): one for one in rules}.values())
    profiles: dict[tuple[object, ...], Profile] = {}

    def profile(pod: Pod) -> Profile:
        shown = tuple([pod.labels.get(key) for key in visible])
        owner = id(pod.scheduling) if pod.scheduling.anti_affinity else 0
        identity = (pod.namespace, shown, owner, pod.is_terminating)
        if identity not in profiles:
            profiles[identity] = book.profile(
                pod.namespace, pod.labels, pod.scheduling, terminating=pod.is_terminating
            )
        return profiles[identity]

    places: list[tuple[Place, tuple[Pod, ...]]] = [
        (spot, spot.room.pods) for spot in spots if spot.room is not None
    ]
    places += [(Place(one.name, one.labels, one.taints), one.pods) for one in others]
    for place, _ in places:
        census.open(place)
    for place, pods in places:
        for pod in pods:
            if pod.node_name or not pod.nominated_node:
                add(profile(pod), place)
            else:
                expect(profile(pod), place)
    # Of a node that may be any of several, whoever comes must be right with each.
    maybe = [(Place(one.name, had, one.taints), one.pods) for one in others for had in one.possible]
    for place, pods in maybe:
        census.open(place)
        for pod in pods:
            expect(profile(pod), place)


def _expect_companions(companions: Companions, spots: Iterable[Spot]) -> None:
    """Count the pods of DaemonSets that nodes in flight will still get."""
    for spot in spots:
        room = spot.room
        if companions and room is not None and room.starting:
            present = [
                (pod.namespace, pod.owner.name)
                for pod in room.pods
                if pod.owner is not None and pod.is_daemon
            ]
            for profile in companions.of(room.labels, room.taints, present):
                add(profile, spot)
