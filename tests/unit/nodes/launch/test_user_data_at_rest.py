"""Where the user data of Provisioners is kept, for users write secrets into it."""

import base64
import binascii
import gzip
import re

from functions.cli.plan.recorded_decision import load_decision
from shared.manifests.api.selector_map import selector_of
from shared.model.plan import Plan
from shared.model.provisioner import NodeTemplate
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.provisioning.decisions.bases import DecisionWriter
from shared.provisioning.decisions.record import decision_document, recorded_snapshot
from tests.builders import pods, provisioner, snapshot
from tests.fakes.decisions import FakeDecisions
from tests.unit.worlds import World

SECRET = b"REGISTRY_TOKEN=not-for-readers"
SCRIPT = f"#!/bin/bash\nexport {SECRET.decode()}\n"
_ENCODED = re.compile(rb"[A-Za-z0-9+/]{24,}={0,2}")


def asking(user_data: str = SCRIPT) -> NodeTemplate:
    return NodeTemplate(
        subnet_selector=selector_of({"Name": "*"}),
        security_group_selector=selector_of({"Name": "*"}),
        user_data=user_data,
    )


def holds_the_secret(document: bytes) -> bool:
    """Return whether a document says it, in clear or in base64, compressed or not."""
    text = gzip.decompress(document) if document.startswith(b"\x1f\x8b") else document
    found = [text]
    for match in _ENCODED.findall(text):
        try:
            found.append(base64.b64decode(match))
        except binascii.Error:
            continue
    return any(SECRET in value for value in found)


def test_only_bodies_of_launches_hold_user_data_and_none_of_the_decisions() -> None:
    world = World(provisioner(template=asking()), *pods(2))
    world.provision()

    holding = {key for key, text in world.decisions.documents.items() if holds_the_secret(text)}
    assert [key.split("/")[0] for key in sorted(holding)] == ["launches"]
    assert [key for key in world.decisions.documents if key.startswith("decisions/")]


def test_decision_keeps_the_hash_of_user_data_which_shows_changes() -> None:
    plain = [
        recorded_snapshot(snapshot(provisioners=(provisioner(template=asking(text)),)))
        .provisioners[0]
        .template.user_data
        for text in ("", SCRIPT, SCRIPT, f"{SCRIPT}#")
    ]
    assert plain[0] == ""
    assert plain[1] == plain[2] != plain[3]
    assert re.fullmatch(r"sha256:[0-9a-f]{64}, \d+ bytes", plain[1])


def test_a_decision_with_user_data_is_replayed_to_the_same_plan() -> None:
    seen = replace(snapshot(*pods(3)), provisioners=(provisioner(template=asking()),))
    document = decision_document("p", seen, decide(seen), PackingSettings())
    decision = load_decision(document)

    assert not holds_the_secret(document)
    assert decision.is_identical(decision.replay(PackingSettings()))
    assert decision.plan != Plan()


def test_decisions_since_a_base_hold_no_user_data_either() -> None:
    decisions = FakeDecisions()
    seen = replace(snapshot(*pods(3)), provisioners=(provisioner(template=asking()),))
    DecisionWriter(small=0).write(decisions, "p", seen, decide(seen))

    assert len(decisions.documents) == 2
    assert not any(map(holds_the_secret, decisions.documents.values()))
