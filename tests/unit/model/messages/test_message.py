"""Dovetail's own messages: read strictly, written so that they are read back."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.errors import InvalidMessageError
from shared.model.messages.message import (
    MAX_OBJECTS,
    Message,
    MessageKind,
    ObjectRef,
    decode,
    decode_text,
    encode,
    make_message,
)

AT = "2026-01-01T00:00:00Z"


def event(**changes: Any) -> dict[str, Any]:
    detail = {"version": 1, "cluster": "prod", "at": AT, **changes.pop("detail", {})}
    return {"source": "dovetail.prod", "detail-type": "pod-pending", "detail": detail, **changes}


ids = st.text("abc-.", min_size=1, max_size=8)
refs = st.builds(
    ObjectRef,
    namespace=st.from_regex(r"([a-z0-9]([a-z0-9-]{0,9}[a-z0-9])?)?", fullmatch=True),
    name=st.from_regex(r"[a-z0-9]([a-z0-9-]{0,9}[a-z0-9])?(\.[a-z0-9]{1,5}){0,2}", fullmatch=True),
    uid=ids,
    resource_version=ids,
)


@given(
    kind=st.sampled_from(list(MessageKind)),
    cluster=st.from_regex(r"[0-9A-Za-z][A-Za-z0-9_-]{0,20}", fullmatch=True),
    at=st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2100, 1, 1)),  # noqa: DTZ001
    objects=st.lists(refs, max_size=4),
    leading=st.booleans(),
)
def test_what_is_encoded_is_decoded(
    *, kind: MessageKind, cluster: str, at: datetime, objects: list[ObjectRef], leading: bool
) -> None:
    message = make_message(kind, cluster, at.replace(tzinfo=UTC), objects=objects, leading=leading)
    assert decode(encode(message)) == message
    assert decode_text(json.dumps(encode(message))) == message
    assert message.cluster == cluster


def test_a_message_carries_utc() -> None:
    at = datetime(2026, 1, 1, 3, tzinfo=timezone(timedelta(hours=3)))
    assert encode(make_message(MessageKind.RESUME, "prod", at))["detail"]["at"] == AT


def test_unknown_fields_are_ignored_and_known_ones_have_defaults() -> None:
    message = decode(event(id="1", detail={"more": True, "objects": [{"name": "a", "kind": "x"}]}))
    assert isinstance(message, Message)
    assert message.detail.objects == (ObjectRef(name="a"),)
    assert not message.detail.leading


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (event(source="aws.ec2"), "source: 'aws.ec2': expected 'dovetail.<cluster>'"),
        ({}, "source: None: expected 'dovetail.<cluster>'"),
        (
            event(source="dovetail.other"),
            "source: 'dovetail.other' may not send messages about 'prod'",
        ),
        (event(**{"detail-type": "pod-gone"}), "detail-type: 'pod-gone': expected one of pod-"),
        (event(detail={"version": 2}), "detail.version: Invalid enum value 2"),
        (event(detail={"cluster": ""}), "detail.cluster: Expected `str` matching regex"),
        (event(detail={"cluster": "a/b"}), "detail.cluster: Expected `str` matching regex"),
        (
            event(detail={"at": "2026-01-01T00:00:00"}),
            "detail.at: Expected `datetime` with",
        ),
        (event(detail={"objects": [{}]}), "detail.objects.0: Object missing required field"),
        (
            event(detail={"objects": [{"name": "a"}] * (MAX_OBJECTS + 1)}),
            "detail.objects: Expected `array` of length <= 200",
        ),
        (
            {"source": "dovetail.prod", "detail-type": "resume"},
            "detail: Expected `object`",
        ),
    ],
)
def test_a_wrong_message_is_refused_and_the_field_named(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidMessageError, match="^" + text.replace("(", r"\(")):
        decode(wrong)


@pytest.mark.parametrize(
    "name",
    [
        "../pods",
        "..",
        "a/b",
        "a?limit=0",
        "../namespaces/kube-system/secrets/x",
        "A",
        "-a",
        "a.-b",
        "a..b",
        "a\n",
        "ä",
    ],
)
def test_a_name_that_no_object_can_have_is_refused(name: str) -> None:
    for field in ("name", "namespace"):
        wrong = event(detail={"objects": [{"name": "a", field: name}]})
        with pytest.raises(
            InvalidMessageError, match=rf"^detail\.objects\.0\.{field}: Expected `str`"
        ):
            decode(wrong)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "body: not JSON"),
        ("[]", "body: expected an object, found list"),
        ('{"a":' * 100_000, "body: not JSON"),
    ],
    ids=["torn", "list", "deep"],
)
def test_a_text_that_is_no_object_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidMessageError, match=reason):
        decode_text(text)
