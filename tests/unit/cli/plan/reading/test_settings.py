import pytest

from functions.cli.input_error import InvalidSettingError
from functions.cli.plan.packing_settings import (
    changed_settings,
    described_settings,
    with_settings,
    without_each_setting,
)
from shared.model.policy import PreferencePolicy
from shared.packing.problem import PackingSettings


def test_every_setting_is_explained_with_its_default() -> None:
    told = {key: (default, meaning) for key, default, meaning in described_settings()}
    assert set(told) == set(PackingSettings.__struct_fields__)
    assert all(meaning for _, meaning in told.values())
    assert told["max_node_vcpus"][0] == "96"
    assert told["thorough"][0] == "false"
    assert "micro-dollars per hour" in told["node_fee_micros_per_hour"][1]


def test_every_setting_can_be_given() -> None:
    samples = {
        int: ("7", 7),
        bool: ("TRUE", True),
        PreferencePolicy: ("respect", PreferencePolicy.RESPECT),
    }
    for name in PackingSettings.__struct_fields__:
        if name == "type_weights":
            continue
        text, value = samples[type(getattr(PackingSettings(), name))]
        changed = with_settings(PackingSettings(), [f"{name} = {text}"])
        assert getattr(changed, name) == value
        assert [written.lower() for written in changed_settings(changed)] == [
            f"{name}={text.lower()}"
        ]


def test_the_last_one_counts_and_numbers_may_be_grouped() -> None:
    settings = with_settings(PackingSettings(), ["max_options=3", "max_options=5"])
    assert settings.max_options == 5
    grouped = with_settings(PackingSettings(), ["node_fee_micros_per_hour=1_000_000"])
    assert grouped.node_fee_micros_per_hour == 1_000_000


def test_one_key_sets_both_diversifications() -> None:
    settings = with_settings(PackingSettings(), ["diversification_k=2"])
    assert (settings.diversification_k_on_demand, settings.diversification_k_spot) == (2, 2)


def test_each_setting_can_be_taken_back_alone() -> None:
    default = PackingSettings()
    assert without_each_setting(default) == ()
    given = ["max_node_vcpus=8", "diversification_k=2", "thorough=true"]
    settings = with_settings(default, given)
    found = dict(without_each_setting(settings))
    assert found == {
        value: with_settings(default, [other for other in given if other != value])
        for value in given
    }


def test_diversifications_that_differ_count_apart() -> None:
    given = ["diversification_k_on_demand=2", "diversification_k_spot=3"]
    settings = with_settings(PackingSettings(), given)
    assert [named for named, _ in without_each_setting(settings)] == given
    alone = with_settings(PackingSettings(), given[:1])
    assert without_each_setting(alone) == ((given[0], PackingSettings()),)


def test_weights_are_pairs() -> None:
    settings = with_settings(PackingSettings(), ["type_weights=m5.large:80,c5.large:120"])
    assert settings.type_weights == {"c5.large": 120, "m5.large": 80}
    assert changed_settings(settings) == ("type_weights=c5.large:120,m5.large:80",)
    for none in ("type_weights=", "type_weights=none"):
        assert with_settings(settings, [none]).type_weights == {}


@pytest.mark.parametrize("text", ["type_weights=m5.large", "type_weights=:3", "type_weights=a:0"])
def test_weights_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(InvalidSettingError, match="write type:percent pairs"):
        with_settings(PackingSettings(), [text])


@pytest.mark.parametrize("value", ["", "x", "-1", "1.5", "9" * 20, "\u0663"])
def test_no_whole_number_is_refused(value: str) -> None:
    with pytest.raises(InvalidSettingError, match="write a whole number of at least 0"):
        with_settings(PackingSettings(), [f"max_node_vcpus={value}"])


def test_a_policy_that_there_is_not_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="write Respect or Weigh or Ignore"):
        with_settings(PackingSettings(), ["preference_policy=always"])
