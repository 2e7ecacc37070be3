"""Rows of the catalogue, as machines are set up in a Region."""

import json
from typing import Any

import pytest

from shared.instance_types.building import build_catalog, format_catalog
from shared.instance_types.catalog import embedded_catalog, load_catalog
from shared.instance_types.instance_setup import InstanceSetup
from shared.instance_types.overhead import MEASURED_OVERHEAD_MIB, VM_MEMORY_OVERHEAD_PERCENT
from shared.instance_types.pod_addresses import PodNetwork
from shared.model import labels as keys
from shared.model.errors import InvalidManifestError
from tests.unit.instance_types.catalog_rows import fact, flat_row, row_of

DEFAULT = VM_MEMORY_OVERHEAD_PERCENT
EVERYTHING = InstanceSetup(
    network=PodNetwork(prefix_delegation=True, reserved_interfaces=1, pod_interfaces=True),
    memory_percent=5.5,
)


def text_of(*rows: Any) -> str:
    document = build_catalog(
        facts=[],
        offerings=[],
        on_demand_prices={},
        spot_prices={},
        region="r1",
        source="a test",
        date="2026-01-31",
    )
    return format_catalog({**document, "types": [*rows]})


@pytest.mark.parametrize(
    ("percent", "mib"),
    [(None, 615), (DEFAULT, 467), (5.5, 451), (0, 0)],
    ids=["estimate", "measured", "set", "none"],
)
def test_a_setting_stands_above_what_was_measured_and_that_above_the_estimate(
    percent: float | None, mib: int
) -> None:
    assert row_of(fact(), InstanceSetup(memory_percent=percent))["vm_overhead_mib"] == mib


def test_a_type_that_nobody_measured_has_the_estimate() -> None:
    row = row_of(fact("m5.xlarge", memory_mib=16384), InstanceSetup(memory_percent=DEFAULT))
    assert row["vm_overhead_mib"] == 1229


def test_what_was_measured_leaves_more_than_half_of_the_memory_and_less_than_all() -> None:
    for name, mib in MEASURED_OVERHEAD_MIB.items():
        known = embedded_catalog().get(name)
        assert known is not None
        assert 0 < mib < int(known.labels[keys.INSTANCE_MEMORY]) * 0.11


def test_a_catalogue_can_be_read_as_machines_are_set_up_though_it_was_written_otherwise() -> None:
    plain, wanted = row_of(fact(), InstanceSetup()), row_of(fact(), EVERYTHING)
    assert wanted["max_pods"] == 110
    assert (wanted["image_max_pods"], wanted["extended"]) == (29, {"vpc.amazonaws.com/pod-eni": 9})
    read = load_catalog(text_of(plain), EVERYTHING)
    assert read == load_catalog(text_of(wanted))
    assert load_catalog(text_of(wanted), InstanceSetup()) == load_catalog(text_of(plain))


def test_a_row_that_says_only_what_is_left_is_read_as_it_is() -> None:
    text = text_of(flat_row())
    assert load_catalog(text, EVERYTHING) == load_catalog(text)


@pytest.mark.parametrize(
    ("network", "field"),
    [
        (3, "m5.large.network"),
        ({"interfaces": 3, "addresses": 10}, "m5.large.network.default_card"),
        ({"interfaces": 3, "default_card": 0, "addresses": 1}, "m5.large.network.default_card"),
    ],
)
def test_interfaces_that_are_none_are_refused(network: Any, field: str) -> None:
    row = {**json.loads(json.dumps(row_of(fact(), InstanceSetup()))), "network": network}
    with pytest.raises(InvalidManifestError) as caught:
        load_catalog(text_of(row))
    assert caught.value.field == field
