"""The zones that nodes may be assumed to be in where nothing says which subnets there are."""

from collections.abc import Mapping

from shared.model import labels as keys
from shared.model.snapshot import ClusterSnapshot
from shared.planning.initial_state import pods_to_place
from shared.planning.offerings.offering_index import OfferingIndex
from shared.planning.offerings.offering_table import ProvisionerPicks, offering_table
from shared.planning.rules.node_constraints import node_constraints_of
from shared.planning.rules.provisioner_offerings import usable_in_order


def zones_not_assumed(snapshot: ClusterSnapshot) -> Mapping[str, tuple[str, ...]]:
    """Return, by Provisioner, the zones where it may launch only special types that no pod needs.

    If such a zone were assumed to have a subnet, a spread over zones would force pods onto bare
    metal or accelerators there. Each Provisioner keeps at least one zone.
    """
    sites = {site.provisioner: site for site in snapshot.sites}
    picks = [
        ProvisionerPicks(provisioner=owner, site=sites[owner.name], picks=({},))
        for owner in usable_in_order(snapshot.provisioners)
    ]
    table = offering_table(
        picks, snapshot.instance_types, snapshot.daemonsets, snapshot.unavailable
    )
    index = OfferingIndex(table, ())
    index.leave_out_special(())
    if not _with_nothing_else(index):
        return {}
    demands = {id(pod.scheduling): pod.scheduling for pod in pods_to_place(snapshot)}
    # Without topology keys: what suits a pod that may go to any zone that it accepts.
    index.leave_out_special(
        index.suited([node_constraints_of(demand)], demand.requests, ())
        for demand in demands.values()
    )
    return _with_nothing_else(index)


def _with_nothing_else(index: OfferingIndex) -> Mapping[str, tuple[str, ...]]:
    """Return, by Provisioner, the zones where all its offerings are left out, unless all are."""
    zones = index.table.by_label(keys.ZONE).items()
    found = {}
    for name, own in index.table.by_provisioner().items():
        usual = own & ~index.left_out
        only = [zone for zone, there in zones if zone and own & there and not usual & there]
        if usual and only:
            found[name] = tuple(sorted(only))
    return found
