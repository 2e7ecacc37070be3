"""Settings: read from the environment, wrong ones named."""

from datetime import timedelta

import pytest

from shared.model.codec import CodecError, from_plain
from shared.model.policy import LaunchPolicy
from shared.settings import (
    BindSettings,
    ClusterAttachment,
    ForwarderSettings,
    FunctionSettings,
    ProvisionSettings,
    RefreshCatalogSettings,
    SettingsError,
    SweepSettings,
    TerminationSettings,
    TimerSettings,
)
from tests.attachments import attachment

BASE = {
    "DOVETAIL_TABLE": "ledger",
    "DOVETAIL_BUCKET": "archive",
    "DOVETAIL_QUEUE_URL": "https://sqs/wakes",
    "DOVETAIL_DEAD_LETTER_URL": "https://sqs/dead",
}
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:x"
TIMERS = {
    **BASE,
    **{
        f"DOVETAIL_{kind}_MACHINE": MACHINE
        for kind in ("EMPTINESS", "EXPIRATION", "REGISTRATION", "TERMINATION")
    },
    "DOVETAIL_REPLACEMENT_MACHINE": "arn:aws:states:us-east-1:1:stateMachine:r2",
    "DOVETAIL_BIND_FUNCTION": "bind",
    "DOVETAIL_PROVISION_FUNCTION": "provision",
}


@pytest.mark.parametrize(
    ("model", "environment"),
    [
        (FunctionSettings, BASE),
        (RefreshCatalogSettings, BASE),
        (TimerSettings, TIMERS),
        (BindSettings, {**TIMERS, "DOVETAIL_BINDING_POLICY": "ready"}),
        (ProvisionSettings, {**TIMERS, "DOVETAIL_BATCH_IDLE_SECONDS": "0.25"}),
        (TerminationSettings, {**TIMERS, "DOVETAIL_DRAIN_DEADLINE_SECONDS": "600.0"}),
        (SweepSettings, {**TIMERS, "DOVETAIL_SWEEP_FUNCTION": "sweep"}),
    ],
)
def test_settings_are_written_so_that_they_are_read_back(
    model: type[FunctionSettings], environment: dict[str, str]
) -> None:
    found = model.from_environment({**environment, "PATH": "/bin", "DOVETAIL_OTHER": "x"})
    assert model.from_environment(found.to_environment()) == found
    assert environment.items() <= found.to_environment().items()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"DOVETAIL_TABLE": None}, "DOVETAIL_TABLE: is missing"),
        ({"DOVETAIL_LEASE_SECONDS": "61"}, "DOVETAIL_LEASE_SECONDS: Expected `float` <= 60"),
        ({"DOVETAIL_BATCH_MAX_SECONDS": "nan"}, "DOVETAIL_BATCH_MAX_SECONDS: Expected `float`"),
        (
            {"DOVETAIL_MINIMUM_POD_AGE_SECONDS": "inf"},
            "DOVETAIL_MINIMUM_POD_AGE_SECONDS: Expected `float`",
        ),
        ({"DOVETAIL_BINDING_POLICY": "late"}, "DOVETAIL_BINDING_POLICY: expected one of early, "),
        (
            {"DOVETAIL_EMPTINESS_MACHINE": "x"},
            "DOVETAIL_EMPTINESS_MACHINE: Expected `str`",
        ),
    ],
)
def test_a_wrong_variable_is_named_with_what_was_found(
    changes: dict[str, str | None], text: str
) -> None:
    given = {k: v for k, v in {**TIMERS, **changes}.items() if v is not None}
    with pytest.raises(SettingsError, match=f"^{text}"):
        ProvisionSettings.from_environment(given)


def test_a_lease_outlives_any_call_it_covers() -> None:
    defaults = ProvisionSettings.from_environment(TIMERS)
    assert defaults.lease_span == timedelta(seconds=50)
    assert defaults.api_timeout_seconds < defaults.lease_seconds


def test_the_default_policy_gives_a_machine_up_before_its_pods_would_be_deleted() -> None:
    policy = LaunchPolicy()
    assert policy.registration_timeout <= timedelta(seconds=300)
    assert policy.lease_span <= timedelta(seconds=60)
    assert policy.consistency_delay < policy.replay_window


def test_an_attachment_names_roles() -> None:
    found = from_plain(ClusterAttachment, attachment("prod", more=1))
    assert found.instance_profile == "prod-nodes"
    with pytest.raises(CodecError, match=r"^launch_role: "):
        from_plain(ClusterAttachment, attachment("prod", launch_role="x"))


@pytest.mark.parametrize(
    "name", sorted(set(ClusterAttachment.__struct_fields__) - {"migrate_role"})
)
def test_an_attachment_has_all_that_a_stack_writes(name: str) -> None:
    written = attachment("prod")
    assert from_plain(ClusterAttachment, written).migrate_role == ""
    del written[name]
    with pytest.raises(CodecError, match=f"missing required field `{name}`"):
        from_plain(ClusterAttachment, written)


def test_a_forwarder_needs_its_cluster_and_its_bus() -> None:
    given = {"DOVETAIL_CLUSTER": "prod", "DOVETAIL_BUS": "dovetail", "DOVETAIL_HEALTH_PORT": "80"}
    found = ForwarderSettings.from_environment({**given, "HOME": "/"})
    assert (found.cluster, found.bus, found.health_port) == ("prod", "dovetail", 80)
    with pytest.raises(SettingsError, match=r"^DOVETAIL_BUS: is missing"):
        ForwarderSettings.from_environment({"DOVETAIL_CLUSTER": "prod"})


def test_the_lease_must_outlive_three_calls() -> None:
    with pytest.raises(SettingsError, match=r"lease_seconds 30 must be more than 3 x"):
        ProvisionSettings.from_environment(
            {**TIMERS, "DOVETAIL_LEASE_SECONDS": "30", "DOVETAIL_API_TIMEOUT_SECONDS": "10"}
        )
