import json
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.decisions.record import to_plain
from shared.decisions.restore import RestoreError, restore
from shared.model.ec2.instance_types import CapacityType, InstanceType, Offering, OfferingKey
from shared.model.ec2.launches import LaunchIntent, Slot
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.provisioner import Provisioner
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import BOUNDS, PackingSettings
from shared.planning.decide import decide
from tests.property import strategies as some

st.register_type_strategy(
    Resources, st.dictionaries(st.text(), st.integers()).map(Resources.from_mapping)
)
st.register_type_strategy(
    PackingSettings,
    st.builds(
        PackingSettings,
        thorough=st.booleans(),
        type_weights=st.dictionaries(st.text(), st.integers(min_value=1)),
        **{name: st.integers(*bounds) for name, bounds in BOUNDS.items()},
    ),
)
st.register_type_strategy(
    Offering,
    st.builds(Offering, price_micros_per_hour=st.integers(min_value=1), interpolated=st.booleans()),
)
# As far as a Provisioner or an annotation may look ahead.
st.register_type_strategy(timedelta, st.timedeltas(timedelta(), timedelta(days=36_500)))
SPANS = st.none() | st.from_type(timedelta)


def plain(value: object) -> Any:
    """Return what a reader of the written document sees."""
    return json.loads(json.dumps(to_plain(value)))


@pytest.mark.parametrize(
    "kind", [DaemonSet, InstanceType, LaunchIntent, Node, PackingSettings, Plan, Pod, Slot]
)
def test_every_value_of_the_model_comes_back_exactly(kind: type[Any]) -> None:
    @given(st.from_type(kind))
    @settings(max_examples=20)
    def comes_back(value: Any) -> None:
        again = restore(kind, plain(value))
        if kind is Plan:
            # How close a bound is, is proved again with it.
            value = replace(value, bound_is_close=False)
        assert again == value
        assert plain(again) == plain(value)

    comes_back()


@given(st.builds(Provisioner, ttl_after_empty=SPANS, ttl_until_expired=SPANS))
@settings(max_examples=20)
def test_a_provisioner_comes_back_with_its_spans(value: Provisioner) -> None:
    again = restore(Provisioner, plain(value))
    assert again == value
    assert plain(again) == plain(value)


@given(snapshot=some.snapshots())
def test_a_snapshot_comes_back_and_decides_the_same(snapshot: ClusterSnapshot) -> None:
    again = restore(ClusterSnapshot, plain(snapshot))
    assert again == snapshot
    assert to_plain(decide(again)) == to_plain(decide(snapshot))


def test_what_an_older_document_lacks_takes_its_default() -> None:
    plain_settings = plain(PackingSettings(max_options=7))
    del plain_settings["thorough"]
    assert restore(PackingSettings, plain_settings) == PackingSettings(max_options=7)


@dataclass(frozen=True)
class _Odd:
    choice: int | str
    place: complex = 0


@pytest.mark.parametrize("kind", [_Odd, complex])
def test_a_type_without_a_plain_form_is_a_mistake_of_the_program(kind: type[Any]) -> None:
    with pytest.raises(TypeError, match="no plain form"):
        restore(kind, {"choice": 1})


@pytest.mark.parametrize(
    ("kind", "given_json", "message"),
    [
        (
            OfferingKey,
            {"instance_type": "m5.large", "zone": "a"},
            "OfferingKey lacks capacity_type",
        ),
        (
            OfferingKey,
            {"instance_type": "m5.large", "zone": "a", "capacity_type": "free"},
            "capacity_type: 'free' is no CapacityType",
        ),
        (Plan, {"nodes": {}}, "nodes: must be a list"),
        (Resources, {"items": [["cpu"]]}, "items.0: must be a list of 2"),
        (PackingSettings, {"type_weights": []}, "type_weights: must be an object"),
        (
            PackingSettings,
            {"max_options": 61},
            "max_options must be a whole number from 1 to 60",
        ),
        (
            PackingSettings,
            {"diversification_k_on_demand": 0},
            "diversification_k_on_demand must be a whole number of at least 1",
        ),
        (
            Offering,
            {"zone": "a", "capacity_type": "spot", "price_micros_per_hour": -1},
            "price_micros_per_hour must be above zero",
        ),
        (
            PackingSettings,
            {"type_weights": {"m5.large": 0}},
            "type_weights must be percentages of at least 1",
        ),
    ],
)
def test_another_form_is_refused_with_its_place(
    kind: type[Any], given_json: object, message: str
) -> None:
    with pytest.raises(RestoreError) as refused:
        restore(kind, given_json)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "items", [[["pods", 0]], [["cpu", 1], ["cpu", 1]], [["pods", 1], ["cpu", 1]]]
)
def test_resources_are_refused_in_a_form_that_the_model_never_has(items: list[Any]) -> None:
    with pytest.raises(RestoreError, match="once, sorted by name, and no amount of 0"):
        restore(Resources, {"items": items})


def test_limits_come_back_with_zeros_which_allow_nothing() -> None:
    limits = Resources((("cpu", 0), ("nodes", 0)))
    value = Provisioner(name="a", limits=limits)
    assert restore(Provisioner, plain(value)).limits == limits
    with pytest.raises(
        RestoreError, match=r"^limits: must have each resource once, sorted by name$"
    ):
        restore(Provisioner, {"name": "a", "limits": {"items": [["pods", 0], ["cpu", 1]]}})


def test_enumerations_come_back_as_themselves() -> None:
    key = OfferingKey(instance_type="a", zone="b", capacity_type=CapacityType.SPOT)
    assert restore(OfferingKey, plain(key)).capacity_type is CapacityType.SPOT
