"""Faults on demand."""

import http.client

import pytest

from infra.local.kube.server import EmbeddedKube
from tests.local.kube.client import MAPS, PODS, Api, config_map


def test_the_nth_answer_fails_and_the_next_is_right_again(kube: EmbeddedKube, api: Api) -> None:
    fault = kube.fault(PODS, status=503, reason="ServiceUnavailable", skip=1, retry_after=3)
    replies = [api.get(PODS) for _ in range(3)]
    assert [reply.status for reply in replies] == [200, 503, 200]
    assert replies[1].body["reason"] == "ServiceUnavailable"
    assert replies[1].headers["retry-after"] == "3"
    assert fault.struck == 1


def test_a_fault_strikes_its_method_only(kube: EmbeddedKube, api: Api) -> None:
    kube.fault(MAPS, method="POST", status=500, times=2)
    assert api.get(MAPS).status == 200
    assert api.post(MAPS, config_map("m")).status == 500
    kube.clear_faults()
    assert api.post(MAPS, config_map("m")).status == 201


def test_a_connection_is_aborted_without_an_answer(kube: EmbeddedKube, api: Api) -> None:
    kube.fault(PODS, abort=True)
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        api.get(PODS)


def test_a_watch_is_closed_at_once_and_lists_are_spared(kube: EmbeddedKube, api: Api) -> None:
    kube.fault(PODS, watch=True, close=True)
    assert api.get(PODS).status == 200
    with api.watch(PODS) as stream:
        assert list(stream) == []


def test_a_late_answer_is_still_the_right_one(kube: EmbeddedKube, api: Api) -> None:
    kube.fault(PODS, delay_seconds=0.05)
    assert api.get(PODS).status == 200
