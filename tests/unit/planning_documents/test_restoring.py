import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.instance_types import CapacityType, OfferingKey
from shared.model.launch import IntentState, LaunchIntent
from shared.model.plan import Plan
from shared.model.pods import LabelSelector, Pod, Scheduling, TopologySpread
from shared.model.provisioner import KubeletConfiguration, Provisioner
from shared.model.requirements import Requirements
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.planning.restoring import RestoreError, restore
from shared.services.recording import to_plain
from tests import builders as make
from tests.property import strategies as some

MOMENTS = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))]))
st.register_type_strategy(Requirements, some.requirement_sets)
st.register_type_strategy(Resources, some.amounts)
st.register_type_strategy(datetime, MOMENTS)
for labelled in (Mapping[str, str], Mapping[str, int]):
    value = st.text(max_size=5) if labelled == Mapping[str, str] else st.integers()
    del value


def plain(value: object) -> Any:
    """Return what a reader of the written document sees."""
    return json.loads(json.dumps(to_plain(value)))


@pytest.mark.parametrize(
    "kind",
    [
        ClusterSnapshot,
        KubeletConfiguration,
        LabelSelector,
        LaunchIntent,
        PackingSettings,
        Plan,
        Pod,
        Provisioner,
        Scheduling,
        TopologySpread,
    ],
)
def test_every_value_of_the_model_comes_back_exactly(kind: type[Any]) -> None:
    @given(st.from_type(kind))
    def comes_back(value: Any) -> None:
        again = restore(kind, plain(value))
        assert again == value
        assert plain(again) == plain(value)

    comes_back()


@given(snapshot=some.snapshots())
def test_a_snapshot_comes_back_and_decides_the_same(snapshot: ClusterSnapshot) -> None:
    again = restore(ClusterSnapshot, plain(snapshot))
    assert again == snapshot
    assert to_plain(decide(again)) == to_plain(decide(snapshot))
