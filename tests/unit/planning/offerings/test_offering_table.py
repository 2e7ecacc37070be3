"""The offering table is made once for what it depends on, and anew for anything else."""

import pytest

from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.provisioner import Provisioner
from shared.model.values import replace
from shared.planning.offerings import offering_table as tables
from shared.planning.offerings.offering_table import OfferingTable, ProvisionerPicks, offering_table
from tests import builders as make

MACHINES = (make.instance_type("m5.large"), make.instance_type("m5.xlarge"))
OUT = OfferingKey(instance_type="m5.large", zone="us-east-1a", capacity_type=CapacityType.ON_DEMAND)


def table_of(provisioner: Provisioner, **changes: object) -> OfferingTable:
    seller = ProvisionerPicks(provisioner=provisioner, site=make.site(), picks=({},))
    asked = {"instance_types": MACHINES, "daemonsets": (), "unavailable": frozenset(), **changes}
    return offering_table((seller,), **asked)  # type: ignore[arg-type]


def test_another_version_of_the_same_provisioner_sells_the_same() -> None:
    provisioner = make.provisioner()
    written = replace(provisioner, resource_version="17", generation=3)
    assert table_of(written) is table_of(provisioner)


@pytest.mark.parametrize(
    "changes",
    [
        {"unavailable": frozenset({OUT})},
        {"daemonsets": (make.daemonset(cpu=100),)},
        {"instance_types": MACHINES[:1]},
    ],
    ids=["unavailable", "daemonsets", "instance types"],
)
def test_whatever_it_depends_on_makes_another_table(changes: dict[str, object]) -> None:
    provisioner = make.provisioner()
    assert table_of(provisioner, **changes) is not table_of(provisioner)


def test_nothing_is_kept_for_labels_that_no_offer_has() -> None:
    table = table_of(make.provisioner())
    for number in range(5):
        assert table.by_label(f"example.com/{number}") == {None: table.all}
    assert OfferingTable(()).by_label("example.com/x") == {}


def test_of_topology_keys_a_bounded_number_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_MOST_DOMAINS", 1)
    table = table_of(make.provisioner(labels={"a": "b"}))
    found = [table.by_domain((key,)) for key in ("a", "c", "a")]
    assert found[0] == found[2] == {("b",): table.all}
    assert found[1] == {(None,): table.all}
