"""Values of the model become plain JSON and come back; other JSON is refused with its place."""

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from shared.model.codec import CodecError, from_json, from_plain, to_json, to_plain
from shared.model.ec2.instance_types import (
    CapacityType,
    InstanceType,
    Offering,
    OfferingKey,
    Overhead,
)
from shared.model.ec2.launches import LaunchIntent, Slot
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.note import Note
from shared.model.plan import Plan
from shared.model.policy import Trigger
from shared.model.provisioner import Provisioner
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import BOUNDS, PackingSettings
from shared.planning.decide import decide
from shared.snapshot.refusals import Refusals
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


def structs(kind: type[Struct] = Struct) -> Iterator[type[Struct]]:
    for below in kind.__subclasses__():
        if below.__module__.startswith("shared.model.") and below is not Note:
            yield below
        yield from structs(below)


# For a field that has a factory, Hypothesis takes the factory for the default.
for struct in structs():
    made = [known for known in fields(struct) if known.default_factory is not NODEFAULT]
    if made:
        drawn = {known.name: st.from_type(known.type) for known in made}
        st.register_type_strategy(struct, st.builds(struct, **drawn))

# As far as a Provisioner or an annotation may look ahead.
st.register_type_strategy(timedelta, st.timedeltas(timedelta(), timedelta(days=36_500)))
SPANS = st.none() | st.from_type(timedelta)


def written(value: object) -> Any:
    """Return what a reader of the written JSON sees; both ways to write it give the same."""
    read = json.loads(to_json(value))
    assert read == json.loads(json.dumps(to_plain(value)))
    return read


@pytest.mark.parametrize(
    "kind",
    [DaemonSet, InstanceType, LaunchIntent, Node, PackingSettings, Plan, Pod, Slot],
)
def test_every_value_of_the_model_comes_back_exactly(kind: type[Any]) -> None:
    @given(st.from_type(kind))
    @settings(max_examples=20)
    def comes_back(value: Any) -> None:
        again = from_plain(kind, written(value), exact=True)
        assert again == value
        assert to_json(again) == to_json(value)

    comes_back()


@given(st.builds(Provisioner, ttl_after_empty=SPANS, ttl_until_expired=SPANS))
@settings(max_examples=20)
def test_a_provisioner_comes_back_with_its_spans(value: Provisioner) -> None:
    assert from_plain(Provisioner, written(value), exact=True) == value


@given(snapshot=some.snapshots())
def test_a_snapshot_comes_back_and_decides_the_same(snapshot: ClusterSnapshot) -> None:
    again = from_plain(ClusterSnapshot, written(snapshot), exact=True)
    assert again == snapshot
    assert to_json(again) == to_json(snapshot)
    assert decide(again) == decide(snapshot)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "Input data was truncated"),
        ('{"name": 1, "value": {}}', "name: Expected `str`, got `int`"),
    ],
)
def test_a_json_text_that_is_no_value_is_refused_with_its_place(text: str, told: str) -> None:
    with pytest.raises(CodecError, match=f"^{told}"):
        from_json(Note, text)
    assert from_json(Note, '{"name": "a"}') == Note(name="a")


def test_equal_values_are_the_same_bytes_whatever_their_order_was() -> None:
    offerings = [
        OfferingKey(instance_type=name, zone=zone, capacity_type=kind)
        for name in ("m5.large", "c5.large")
        for zone in "ba"
        for kind in CapacityType
    ]
    values = [{"b": frozenset(order), "a": {*"xyz"}} for order in (offerings, offerings[::-1])]

    assert to_json(values[0]) == to_json(values[1])
    assert to_json(values[0]).startswith(b'{"a":["x","y","z"],"b":[{"capacity_type":"on-demand",')
    assert to_plain(values[0])["b"] == to_plain(sorted(offerings))


def test_any_mapping_and_any_text_can_be_written() -> None:
    held = MappingProxyType({Trigger.DRIFT: True})
    assert to_plain(held) == written(held) == {"drift": True}
    assert json.loads(to_json({"b": "\ud800", "a": 2**70})) == {"a": 2**70, "b": "\ud800"}
    with pytest.raises(NotImplementedError, match="no plain form"):
        to_plain(object())


def test_what_is_missing_takes_its_default_and_what_is_unknown_is_left_out_or_refused() -> None:
    plain = {"max_options": 7, "later": 1}
    assert from_plain(PackingSettings, plain) == PackingSettings(max_options=7)
    with pytest.raises(CodecError, match=r"^PackingSettings has no field 'later'$"):
        from_plain(PackingSettings, plain, exact=True)


_OFFERING = {"instance_type": "m5.large", "zone": "a", "capacity_type": "spot"}


@pytest.mark.parametrize(
    ("kind", "plain", "message"),
    [
        (Plan, None, "Expected `object`, got `null`"),
        (Plan, {"nodes": {}}, "nodes: Expected `array`, got `object`"),
        (Plan, {"order": [{}]}, "order.0: Object missing required field `namespace`"),
        (
            OfferingKey,
            {**_OFFERING, "capacity_type": "free"},
            "capacity_type: Invalid enum value 'free'",
        ),
        (
            frozenset[OfferingKey],
            [_OFFERING, {**_OFFERING, "zone": "b", "new": 1}],
            "1: OfferingKey has no field 'new'",
        ),
        (Mapping[str, int], {"a.b": "1"}, "Expected `int`, got `str`"),
        (Refusals, {"provisioner": "a", "until": "soon"}, "until: Invalid RFC3339"),
        (Resources, {"items": [["cpu"]]}, "items.0: Expected `array` of length 2, got 1"),
        (PackingSettings, {"max_options": True}, "max_options: Expected `int`, got `bool`"),
        (
            PackingSettings,
            {"max_options": 61},
            "max_options must be a whole number from 1 to 60",
        ),
        (
            Overhead,
            {"kube_reserved": {"items": [["pods", 1], ["cpu", 1]]}},
            "kube_reserved: must have each resource once, sorted by name, and no amount of 0",
        ),
    ],
)
def test_another_form_is_refused_with_its_place(kind: Any, plain: object, message: str) -> None:
    with pytest.raises(CodecError) as refused:
        from_plain(kind, plain, exact=True)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    "items", [[["pods", 0]], [["cpu", 1], ["cpu", 1]], [["pods", 1], ["cpu", 1]]]
)
def test_resources_are_refused_in_a_form_that_the_model_never_has(items: list[Any]) -> None:
    with pytest.raises(CodecError, match="once, sorted by name, and no amount of 0"):
        from_plain(Resources, {"items": items}, exact=True)


def test_limits_come_back_with_zeros_which_allow_nothing() -> None:
    value = Provisioner(name="a", limits=Resources((("cpu", 0), ("nodes", 0))))
    assert from_plain(Provisioner, written(value), exact=True) == value
    with pytest.raises(CodecError, match=r"^limits: must have each resource once, sorted by name$"):
        from_plain(
            Provisioner,
            {"name": "a", "limits": {"items": [["pods", 0], ["cpu", 1]]}},
            exact=True,
        )


@pytest.mark.parametrize(
    ("kind", "plain", "message"),
    [
        (
            Offering,
            {"zone": "a", "capacity_type": "spot", "price_micros_per_hour": -1},
            "price_micros_per_hour must be above zero",
        ),
        (PackingSettings, {"max_options": 61}, "max_options must be a whole number from 1 to 60"),
        (
            PackingSettings,
            {"type_weights": {"m5.large": 0}},
            "type_weights must be percentages of at least 1",
        ),
    ],
)
def test_what_a_value_itself_refuses_is_told(kind: type, plain: object, message: str) -> None:
    with pytest.raises(CodecError, match=message):
        from_plain(kind, plain)
