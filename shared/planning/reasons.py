"""Why a pod fits nothing: per provisioner, the first thing that ruled it out."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from shared.model import labels as keys
from shared.model.provisioner import Provisioner
from shared.model.resources import Resources, format_amount
from shared.model.snapshot import ClusterSnapshot, ProvisionerSite
from shared.scheduling.classes import PodClass
from shared.scheduling.compatibility import (
    accepted_terms,
    labels_accepted,
    taint_refusal,
)
from shared.scheduling.limits import remaining
from shared.scheduling.offers import Offer, in_order, label_choices, offers, place_labels

# Values named in a reason before the rest is only counted.
_SHOWN: Final = 5


def explain(snapshot: ClusterSnapshot, one: PodClass, limited: frozenset[str]) -> tuple[str, ...]:
    """Return one line per provisioner, in the order they are tried.

    Args:
        limited: Provisioners that would have held the pods but for their limits.
    """
    usable = in_order(snapshot.provisioners)
    if not usable:
        return ("no usable Provisioner: create one, or see the conditions of those there are",)
    sites = {site.provisioner: site for site in snapshot.sites}
    lines = []
    for provisioner in usable:
        at_limit = provisioner.name in limited
        why = _why(snapshot, provisioner, sites.get(provisioner.name), one, at_limit=at_limit)
        lines.append(f"{provisioner.name}: {why}")
    return tuple(lines)


def _why(
    snapshot: ClusterSnapshot,
    provisioner: Provisioner,
    site: ProvisionerSite | None,
    one: PodClass,
    *,
    at_limit: bool,
) -> str:
    refusal = taint_refusal(one.scheduling, provisioner.taints)
    if refusal:
        return refusal
    if site is None or not site.zones:
        return "no subnet: " + (site.reason if site and site.reason else "nothing was found")
    every = _offers(snapshot, provisioner, site, one, available_only=False)
    if not every:
        return "its requirements leave no instance type in the zones of its subnets"
    accepting = [offer for offer in every if _accepts(offer, one)]
    if not accepting:
        return _missing_label(every, one)
    requests = one.scheduling.requests
    holding = [offer for offer in accepting if requests.fits(offer.available)]
    if not holding:
        return _too_large(requests, accepting)
    on_sale = _offers(snapshot, provisioner, site, one, available_only=True)
    if not any(_accepts(offer, one) and requests.fits(offer.available) for offer in on_sale):
        return "EC2 is out of capacity for every instance type that would hold it; tried again"
    if at_limit:
        return _limit_reached(snapshot, provisioner)
    return "its topology rules leave no place"


def _offers(
    snapshot: ClusterSnapshot,
    provisioner: Provisioner,
    site: ProvisionerSite,
    one: PodClass,
    *,
    available_only: bool,
) -> tuple[Offer, ...]:
    terms = accepted_terms(one.scheduling)
    return tuple(
        offer
        for chosen in label_choices(provisioner, terms)
        for offer in offers(
            provisioner,
            site,
            snapshot.instance_types,
            snapshot.daemonsets,
            unavailable=snapshot.unavailable if available_only else frozenset(),
            chosen=chosen,
        )
    )


def _accepts(offer: Offer, one: PodClass) -> bool:
    return any(labels_accepted(one.scheduling, labels) for labels in _standing(offer))


def _standing(offer: Offer) -> list[dict[str, str]]:
    """Return the labels nodes of an offer could stand with, by offering."""
    return [{**offer.labels, **place_labels(offering)} for offering in offer.offerings]


def _missing_label(every: Sequence[Offer], one: PodClass) -> str:
    """Return the first thing asked for that no machine has, or that none has all at once."""
    standing = [labels for offer in every for labels in _standing(offer)]
    for term in accepted_terms(one.scheduling):
        for wanted in term:
            values = {labels.get(wanted.key) for labels in standing}
            if not any(wanted.allows(value) for value in values):
                offered = sorted(value for value in values if value is not None)
                more = f" and {len(offered) - _SHOWN} more" if len(offered) > _SHOWN else ""
                text = ", ".join(offered[:_SHOWN]) or "no such label"
                hint = _near_miss(wanted.key, standing[0])
                return f"needs {wanted.describe()}, offered {text}{more}{hint}"
    return "no instance type has all labels it needs at once"


def _near_miss(key: str, labels: Mapping[str, str]) -> str:
    """Return a hint when a label differs from a known one only in its domain or its writing."""
    known = {one.rsplit("/", 1)[-1]: one for one in sorted({*keys.WELL_KNOWN, *labels})}
    near = known.get(key.rsplit("/", 1)[-1].lower().replace("_", "-"))
    return f" (did you mean {near}?)" if near is not None and near != key else ""


def _too_large(requests: Resources, accepting: Iterable[Offer]) -> str:
    largest = Resources()
    for offer in accepting:
        largest = largest.largest(offer.available)
    missing = requests.exceeding(largest)
    if not missing:
        return "no single instance type has enough of all it requests at once"
    parts = []
    for name in missing:
        most = format_amount(name, largest[name])
        parts.append(f"{name} {format_amount(name, requests[name])} (at most {most})")
    return "no instance type is large enough: requests " + ", ".join(parts)


def _limit_reached(snapshot: ClusterSnapshot, provisioner: Provisioner) -> str:
    left = remaining(snapshot).get(provisioner.name, Resources())
    limits = provisioner.limits or Resources()
    parts = [
        f"{name} {format_amount(name, max(amount, 0))} left of {format_amount(name, limits[name])}"
        for name, amount in left.items
    ]
    return "its limits are in the way: " + ", ".join(parts)
