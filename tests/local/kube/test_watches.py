"""Watches: replay, selectors, ends, bookmarks, history that is gone."""

import pytest

from infra.local.kube.server import EmbeddedKube
from tests.local.kube.client import (
    CRDS,
    MAPS,
    NODES,
    PODS,
    TABLE,
    Api,
    config_map,
    definition,
    node,
    pod,
)


def test_watch_replays_changes_after_its_version_and_continues(api: Api) -> None:
    api.post(PODS, pod("before"))
    version = api.get(PODS).version
    api.post(PODS, pod("a"))
    with api.watch(PODS, resourceVersion=version) as stream:
        assert stream.seen(1) == [("ADDED", "a")]
        api.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "1"}}})
        assert stream.seen(1) == [("MODIFIED", "a")]


def test_deleting_a_pod_is_seen_as_modified_and_then_deleted(api: Api) -> None:
    api.post(PODS, pod("a", node="n"))
    version = api.get(PODS).version
    api.delete(f"{PODS}/a", gracePeriodSeconds=0)
    with api.watch(PODS, resourceVersion=version) as stream:
        first, last = stream.take(2)
    assert (first["type"], last["type"]) == ("MODIFIED", "DELETED")
    assert first["object"]["metadata"]["deletionGracePeriodSeconds"] == 0
    versions = [int(entry["object"]["metadata"]["resourceVersion"]) for entry in (first, last)]
    assert versions == sorted(set(versions))


def test_deleting_anything_else_is_seen_once(api: Api) -> None:
    api.post(NODES, node("n"))
    version = api.get(NODES).version
    api.delete(f"{NODES}/n")
    api.post(NODES, node("m"))
    with api.watch(NODES, resourceVersion=version) as stream:
        assert stream.seen(2) == [("DELETED", "n"), ("ADDED", "m")]


@pytest.mark.parametrize("word", ["true", "1", "True"])
def test_a_watch_without_a_version_starts_with_what_is_there(api: Api, word: str) -> None:
    api.post(PODS, pod("a"))
    with api.watch(PODS, watch=word) as stream:
        assert stream.seen(1) == [("ADDED", "a")]


def test_entering_and_leaving_a_label_selector_is_added_and_deleted(api: Api) -> None:
    version = api.post(PODS, pod("a")).version
    with api.watch(PODS, resourceVersion=version, labelSelector="x=1") as stream:
        api.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "1"}}})
        left = api.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "2"}}})
        added, deleted = stream.take(2)
    assert (added["type"], deleted["type"]) == ("ADDED", "DELETED")
    # The state that was last seen, under the version at which it left.
    assert deleted["object"]["metadata"]["labels"] == {"x": "1"}
    assert deleted["object"]["metadata"]["resourceVersion"] == left.version


def test_a_bound_pod_leaves_the_pending_ones(api: Api) -> None:
    version = api.post(PODS, pod("a")).version
    with api.watch("/api/v1/pods", resourceVersion=version, fieldSelector="spec.nodeName=") as s:
        api.post(f"{PODS}/a/binding", {"target": {"kind": "Node", "name": "n"}})
        assert s.seen(1) == [("DELETED", "a")]


def test_a_watch_sees_its_namespace_only(api: Api) -> None:
    version = api.get(PODS).version
    api.post("/api/v1/namespaces/kube-system/pods", pod("other"))
    api.post(PODS, pod("a"))
    with api.watch(PODS, resourceVersion=version) as stream:
        assert stream.seen(1) == [("ADDED", "a")]


def test_a_watch_ends_when_its_time_is_over_and_says_how_far_it_came(api: Api) -> None:
    version = api.get(PODS).version
    query = {"timeoutSeconds": "1", "allowWatchBookmarks": "true"}
    with api.watch(PODS, resourceVersion=version, **query) as stream:
        lines = list(stream)
    assert [line["type"] for line in lines] == ["BOOKMARK"]
    assert lines[0]["object"]["metadata"]["resourceVersion"] == version


def test_a_version_that_is_too_old_is_an_error_line_under_status_200(
    kube: EmbeddedKube, api: Api
) -> None:
    version = api.get(PODS).version
    api.post(PODS, pod("a"))
    kube.compact()
    for old in (version, "1"):
        with api.watch(PODS, resourceVersion=old) as stream:
            assert stream.response.status == 200
            (line,) = list(stream)
        assert line["type"] == "ERROR"
        assert (line["object"]["reason"], line["object"]["code"]) == ("Expired", 410)


def test_a_watch_from_the_present_survives_a_compaction(kube: EmbeddedKube, api: Api) -> None:
    version = api.post(PODS, pod("a")).version
    with api.watch(PODS, resourceVersion=version) as stream:
        kube.compact()
        api.post(PODS, pod("b"))
        assert stream.seen(1) == [("ADDED", "b")]


def test_a_streamed_list_ends_with_a_marked_bookmark(api: Api) -> None:
    api.post(PODS, pod("a"))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    with api.watch(PODS, allowWatchBookmarks="true", **query) as stream:
        added, end = stream.take(2)
    assert added["type"] == "ADDED"
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_many_watchers_see_the_same_order(api: Api) -> None:
    version = api.get(MAPS).version
    streams = [api.watch(MAPS, resourceVersion=version) for _ in range(5)]
    for index in range(20):
        api.post(MAPS, config_map(f"m{index}"))
    expected = [("ADDED", f"m{index}") for index in range(20)]
    for stream in streams:
        with stream:
            assert stream.seen(20) == expected


def test_a_match_behind_a_thousand_others_is_not_kept_waiting(api: Api) -> None:
    version = api.get(MAPS).version
    for index in range(1100):
        api.post(MAPS, config_map(f"m{index}"))
    api.post(MAPS, {"metadata": {"name": "last", "labels": {"x": "1"}}})
    with api.watch(MAPS, resourceVersion=version, labelSelector="x=1") as stream:
        assert stream.seen(1) == [("ADDED", "last")]


def test_a_watched_table_names_its_columns_once(api: Api) -> None:
    api.post(PODS, pod("a"))
    api.post(PODS, pod("b"))
    with api.watch(PODS, accept=TABLE) as stream:
        first, second = stream.take(2)
    assert first["object"]["columnDefinitions"]
    assert not second["object"]["columnDefinitions"]


def test_a_watch_ends_with_the_definition_of_its_resource(api: Api) -> None:
    api.post(CRDS, definition({}))
    widgets = "/apis/example.dev/v1/widgets"
    api.post(widgets, {"metadata": {"name": "w"}})
    with api.watch(widgets) as stream:
        assert stream.seen(1) == [("ADDED", "w")]
        api.delete(f"{CRDS}/widgets.example.dev")
        assert [line["type"] for line in stream] == ["DELETED"]
    assert api.get(widgets).status == 404
