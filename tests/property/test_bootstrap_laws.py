"""Whatever people write as user data: it is told to machines, or refused with its place."""

import tomllib
from email import message_from_string

from hypothesis import given
from hypothesis import strategies as st

from shared.instance_types.ami_families import FAMILIES, USER_DATA_LIMIT_BYTES, BootstrapOptions
from shared.model.errors import InvalidManifestError
from shared.model.kubernetes.taints import Effect, Taint

LINES = st.sampled_from(
    [
        "",
        "#!/bin/bash",
        "#cloud-config",
        "MIME-Version: 1.0",
        'Content-Type: multipart/mixed; boundary="B"',
        "Content-Type: multipart/mixed",
        "Content-Type: text/x-shellscript",
        "Content-Type: application/node.eks.aws",
        "Content-Transfer-Encoding: base64",
        "--B",
        "--B--",
        "--//",
        "apiVersion: node.eks.aws/v1alpha1",
        "kind: NodeConfig",
        "spec: {kubelet: {flags: []}}",
        "a: [",
        "? - !!python/name:os.system",
        "[settings.kubernetes]",
        "[settings.kubernetes.node-labels]",
        'cluster-name = "x"',
        "settings = 3",
        "max-pods = [1",
        "---",
        "\x00",
    ]
)
TEXTS = st.one_of(st.text(max_size=200), st.lists(LINES, max_size=12).map("\n".join))
JOINING = BootstrapOptions(
    cluster="test",
    endpoint="https://test.example",
    certificate_authority="Q0E=",
    service_cidr="172.20.0.0/16",
    labels={"team": "red"},
    taints=(Taint(key="a", value="b", effect=Effect.NO_SCHEDULE),),
)


def refusal(family: str, custom: str) -> InvalidManifestError | None:
    try:
        FAMILIES[family].refuse_wrong(custom)
    except InvalidManifestError as error:
        return error
    return None


@given(family=st.sampled_from(sorted(FAMILIES)), custom=TEXTS)
def test_user_data_is_accepted_or_refused_in_one_line(family: str, custom: str) -> None:
    error = refusal(family, custom)
    if error is not None:
        assert "\n" not in str(error)
        assert error.field.startswith("userData")
        assert error.remedy
        return
    text = FAMILIES[family].user_data(JOINING, custom)
    assert len(text.encode()) <= USER_DATA_LIMIT_BYTES
    if family == "Bottlerocket":
        told = tomllib.loads(text)["settings"]["kubernetes"]
        assert told["cluster-name"] == "test"
        assert told["node-labels"]["team"] == "red"
    elif family == "Custom":
        assert text == custom
    else:
        message = message_from_string(text)
        assert message.is_multipart()
        assert not message.defects
        (*_, ours) = message.walk()
        assert "test.example" in str(ours)
