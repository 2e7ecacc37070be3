"""Provisioners and AWSNodeTemplates: refused in one line, or they say nothing but what they may."""

from typing import Any, Final

from hypothesis import strategies as st

from shared.instance_types.ami_families import FAMILIES, refuse_wrong_user_data
from shared.manifests.custom_resources.provisioners import decode_provisioners
from shared.model import labels as keys
from shared.model.provisioner import InvalidProvisioner, Provisioner
from shared.nodes.launch.node_taints import kubelet_taints
from shared.planning.offerings.picks import label_choices
from shared.planning.rules.provisioner_offerings import node_labels
from tests.hostile.corpus import batches, mutated, try_batch
from tests.hostile.judging import judge
from tests.infra.cluster.provisioner_documents import WHOLE, document
from tests.infra.cluster.test_node_templates import WHOLE as TEMPLATE
from tests.infra.cluster.test_node_templates import template
from tests.unit.instance_types.ami_families.joinings import joining

_BY_REFERENCE: Final = {key: value for key, value in WHOLE.items() if key != "provider"}
PROVISIONERS: Final = (
    document(WHOLE),
    document({**_BY_REFERENCE, "providerRef": {"name": "nodes"}}),
)
LONGEST_LINE: Final = 2000
drawn = st.tuples(
    st.one_of(st.sampled_from(PROVISIONERS), mutated(PROVISIONERS)),
    st.one_of(st.just(template(TEMPLATE)), mutated((template(TEMPLATE),))),
)


@batches
def test_a_provisioner_is_refused_in_one_line_or_says_only_what_it_may(batch: int) -> None:
    taken = 0

    def check(documents: tuple[dict[str, Any], dict[str, Any]]) -> None:
        nonlocal taken
        usable, refused = decode_provisioners(
            [documents[0]], [documents[1]], check=refuse_wrong_user_data
        )
        for wrong in refused:
            check_refusal(wrong)
        for right in usable:
            taken += 1
            check_taken(right)
        assert len(usable) + len(refused) == 1

    try_batch(batch, drawn, check)
    assert taken


def check_refusal(refused: InvalidProvisioner) -> None:
    """Assert that each problem is one line that names a field and what to write there."""
    assert refused.reasons
    for reason in refused.reasons:
        assert reason.isprintable()
        assert reason.count(": ") >= 2
        assert len(reason) <= LONGEST_LINE


def check_taken(taken: Provisioner) -> None:
    """Assert that machines receive its settings, and that it sets none of Dovetail's own keys."""
    own = [*taken.labels, *taken.annotations, *taken.template.tags]
    assert not [key for key in own if key.startswith(("dovetail.dev/", "kubernetes.io/cluster/"))]
    assert not [key for key in taken.annotations if keys.is_control_annotation(key)]
    labels = {**label_choices(taken, [taken.requirements])[-1], **node_labels(taken)}
    told = joining(labels=labels, taints=kubelet_taints(taken), kubelet=taken.kubelet)
    for family in sorted(set(FAMILIES) - {"Custom"}):
        custom = taken.template.user_data if family == taken.template.ami_family else ""
        judge(family, FAMILIES[family].user_data(told, custom), told)
