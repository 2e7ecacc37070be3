import io
import json
import sys
from pathlib import Path

import pytest

from tests.unit.cli.running import (
    PROVISIONER,
    container,
    deployment,
    node,
    pod,
    run,
    written,
)

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(10)
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} {{<<: [{', '.join(['*' + chr(97 + n)] * 9)}]}}\n"
    for n in range(10)
)
CASES = {
    "empty": (b"", "is empty; expected Kubernetes manifests"),
    "only comments": (b"# nothing\n---\n", "is empty; expected Kubernetes manifests"),
    "binary": (b"\x89PNG\xff\xfe", "is not UTF-8 text"),
    "zeros": (b"\0" * 100, "is not YAML: control characters are not allowed"),
    "a word": (b"hello", "document 1: hello: must be an object with apiVersion and kind"),
    "a list": (b"- a\n- b\n", "document 1: a list of 2: must be an object"),
    "a tab": (b"a: 1\n\tb: 2\n", "document 1: line 2, column 1: is not YAML: found a tab"),
    "alias bomb": (BOMB.encode(), "document 1: its aliases expand to more than 5000000 values"),
    "merge bomb": (MERGES.encode(), "document 1: its aliases expand to more than 5000000 values"),
    "alias of itself": (b"a: &a {b: *a}", "document 1: an alias refers to what contains it"),
    "deep brackets": (b"[" * 60_000, "is nested more than 200 levels deep"),
    "deep dashes": (b"- " * 60_000 + b"a", "is nested more than 200 levels deep"),
    "deep json": (b'{"a":' * 60_000, "is nested more than 200 levels deep"),
    "too large": (
        b"#" * (16 * 2**20 + 1),
        "a document has more than 16 MiB; split it, or write it as JSON",
    ),
    "a python tag": (b"!!python/name:os.system ''", "could not determine a constructor"),
    "a long number": (b"a: " + b"9" * 5000, "document 1: is not YAML: Exceeds the limit"),
    "no such number": (b"a: !!float x", "document 1: is not YAML: could not convert"),
    "no kind": (b"apiVersion: v1", "document 1: kind: write the kind of a Kubernetes object"),
    "old version": (
        b"apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: a}",
        "document 1: apiVersion: apps/v1beta1: write apps/v1",
    ),
    "items that are none": (b"{kind: List, apiVersion: v1, items: 3}", "items: 3: must be a list"),
    "an item that is none": (
        b"{kind: List, apiVersion: v1, items: [3]}",
        "document 1, items[0]: 3: must be an object",
    ),
    "a pod without spec": (POD.encode(), "document 1: spec: must be an object with containers"),
    "a second document": (
        f"# one\n---\n{POD}spec: {{containers: []}}\n".encode(),
        "document 1: spec.containers: a list of 0: must be a list of at least one container",
    ),
    "metadata that is none": (b"{apiVersion: v1, kind: Pod, metadata: 3}", "metadata: 3: write an"),
    "a provisioner without fields": (
        b"apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\n",
        "document 1: metadata.name: write a name",
    ),
    "a key twice": (
        f"{POD}spec:\n  containers: []\n  containers: [{{name: a}}]\n".encode(),
        "document 1: line 6, column 3: says 'containers' twice; keep one of them",
    ),
    "a key twice in JSON": (
        b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "name": "b"}}',
        "document 1: name: is said twice; keep one of them",
    ),
    "user data with half a character": (
        b"""{"apiVersion": "karpenter.k8s.aws/v1alpha1", "kind": "AWSNodeTemplate",
             "metadata": {"name": "a"}, "spec": {"userData": "#!/bin/sh \\ud800"}}""",
        r"document 1: spec.userData: '#!/bin/sh \ud800': holds half of a surrogate pair",
    ),
    "a key with half a character": (
        b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a\\uDFFF": "b"}}}',
        r"document 1: 'metadata.labels.a\udfff': 'a\udfff': holds half of a surrogate pair",
    ),
    "half a character in YAML": (
        b'apiVersion: v1\nkind: Pod\nmetadata: {name: "\\ud800"}',
        "document 1: line 3, column 21: is not YAML: found invalid Unicode",
    ),
    "half a character as bytes": (b'{"kind": "Pod", "a": "\xed\xa0\x80"}', "is not UTF-8 text"),
    "ten megabytes of small objects": (
        b"a: [" + b"{b: 1}, " * (10 * 2**17) + b"]",
        "holds too many values",
    ),
    "many broken brackets": (b"[]," * 5000, "is not YAML"),
    "a provisioner with a wrong field": (
        b"""{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner,
             metadata: {name: a}, spec: {t: 1}}""",
        "document 1: spec.t: 1: unknown field; known are annotations",
    ),
}


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the one line that a refused command says."""
    capsys.readouterr()
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert len(err) < 1000
    return err


@pytest.mark.parametrize("case", CASES)
def test_a_hostile_file_gets_one_line(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, expected = CASES[case]
    file = tmp_path / "in.yaml"
    file.write_bytes(content)
    told = refused(capsys, "plan", "-f", str(file))
    assert told.startswith(f"dovetail plan: {file}: ")
    assert expected in told


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            pod(containers=[container(memory="1GiB")]),
            "spec.containers[0].resources.requests.memory: 1GiB: write a quantity such as",
        ),
        (
            pod(initContainers=[container(cpu=-1)]),
            "spec.initContainers[0].resources.requests.cpu: -1: write a quantity of 0 or more",
        ),
        *(
            (
                pod(containers=[container(cpu=value)]),
                f"spec.containers[0].resources.requests.cpu: {shown}: write a quantity",
            )
            for value, shown in (
                (float("nan"), "nan"),
                (float("inf"), "inf"),
                ("1e400", "1e400"),
                (True, "True"),
                ("-1", "-1"),
            )
        ),
        (pod(overhead={"cpu": "x"}), "spec.overhead.cpu: x: write a quantity"),
        (pod(nodeSelector={"a": 1}), "spec.nodeSelector.a: 1: write a string"),
        (pod(tolerations={"a": 1}), "spec.tolerations: an object of 1: write a list of objects"),
        (pod(affinity={"podafinity": {}}), "spec.affinity.podafinity"),
        (
            pod(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}),
            "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        ),
        (deployment(replicas=-1), "spec.replicas: -1: write a whole number from 0"),
        (deployment(replicas=10**9), "spec.replicas: 1000000000: write a whole number from 0"),
        *(
            ({**deployment(replicas=10**9), "kind": kind}, "spec.replicas: 1000000000: write")
            for kind in ("ReplicaSet", "StatefulSet")
        ),
        (
            {
                **deployment(),
                "apiVersion": "batch/v1",
                "kind": "Job",
                "spec": {
                    "parallelism": 10**9,
                    "completions": 10**9,
                    "template": {"spec": {"containers": [container()], "restartPolicy": "Never"}},
                },
            },
            "spec.parallelism: 1000000000: write a whole number from 0",
        ),
        ({**deployment(), "spec": {}}, "spec.template: must be an object with named fields"),
        ({**deployment(), "metadata": {"labels": {"a": 1}, "name": "b"}}, "metadata.labels.a: 1"),
        ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}, "status.allocatable"),
        (
            {**node(), "status": {"allocatable": {"cpu": "8 cores"}}},
            "status.allocatable.cpu: 8 cores: write a quantity",
        ),
        (
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": {}},
            "spec.template: must be an object",
        ),
    ],
)
def test_a_wrong_field_is_named_with_its_document(
    document: dict[str, object],
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = written(tmp_path / "in.yaml", PROVISIONER, document)
    assert f"{file}: document 2: {expected}" in refused(capsys, "plan", "-f", file)


def test_two_documents_of_one_name_are_refused_unless_they_are_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "a.yaml", PROVISIONER, deployment(), deployment())
    assert run("plan", "-f", file) == 0
    file = written(tmp_path / "b.yaml", PROVISIONER, deployment(), deployment(replicas=4))
    told = refused(capsys, "plan", "-f", file)
    assert f"another Deployment of that name is in {file}: document 2" in told


def test_many_workloads_together_may_not_ask_for_too_many_pods(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "a.yaml", deployment("a", 200_000), deployment("b", 1))
    assert "more than 200000 pods" in refused(capsys, "plan", "-f", file)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("plan", "-f", "/nowhere/a.yaml"), "/nowhere/a.yaml: No such file or directory"),
        (("plan", "-f", "a\0b"), "expected a file name"),
        (("plan", "-f", ""), "'': is no file name; is a variable of the shell unset?"),
        (("what-if", ""), "'': is no file name"),
        (("plan", "-f", "{loop}"), "loop: Too many levels of symbolic links; expected a readable"),
        (("plan", "-f", "{good}", "--existing", "{loop}"), "loop: Too many levels"),
        (("plan", "-f", "{good}", "--catalog", "{empty_folder}"), "empty_folder: Is a directory"),
        (("plan", "-f", "/nowhere", "--save", "{empty_folder}"), "empty_folder: cannot be written"),
        (("report", "-f", "/nowhere", "--output", "/nowhere/a"), "--output /nowhere/a: cannot be"),
        (("replay", "{empty_folder}"), "empty_folder: Is a directory"),
        (("plan", "-f", "{good}", "--catalog", "{good}"), "good.yaml: document 1: catalog"),
        (("plan", "-f", "{good}", "--catalog", "{binary}"), "is not UTF-8 text"),
        (("plan", "-f", "/nowhere", "--svg", "/nowhere/a.svg"), "--svg /nowhere/a.svg: cannot be"),
        (("plan", "-f", "{good}", "--explain", "x/y"), "--explain x/y: no such pod"),
        (("plan", "-f", "{empty_folder}"), "holds no .yaml, .yml or .json file"),
        (("replay", "/nowhere/a"), "/nowhere/a: No such file or directory"),
        (("replay", "{good}"), "good.yaml: document 1: document: must be a decision"),
        (("replay", "{binary}"), "binary: document 1: document: must be a decision"),
        (("plan", "-f", "{good}", "--set", "x"), "--set 'x': write key=value"),
        (("plan", "-f", "{good}", "--set", "x=1"), "--set x: unknown setting; known are density"),
        (("plan", "-f", "{good}", "--set", "__doc__=1"), "--set __doc__: unknown setting"),
        (("plan", "-f", "{good}", "--set", "max_options=61"), "write a whole number from 1 to 60"),
    ],
)
def test_what_cannot_be_used_is_reported_in_one_line(
    arguments: tuple[str, ...],
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    written(tmp_path / "good.yaml", PROVISIONER, deployment())
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "empty_folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    places = {
        "{good}": str(tmp_path / "good.yaml"),
        "{binary}": str(tmp_path / "binary"),
        "{empty_folder}": str(tmp_path / "empty_folder"),
        "{loop}": str(tmp_path / "loop"),
    }
    assert expected in refused(capsys, *(places.get(argument, argument) for argument in arguments))


def test_names_cannot_write_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nasty = pod("a\x1b[31m\nb", nodeSelector={"k\x1b[0m": "v\r"})
    strange = {"apiVersion": "v1", "kind": "Strange\x07", "metadata": {"name": "s"}}
    file = written(tmp_path / "in.yaml", PROVISIONER, nasty, strange)
    assert run("plan", "-f", file, "--explain", "a\x1b[31m\nb") == 3
    out, err = capsys.readouterr()
    assert "default/a?[31m?b" in out
    assert not set("\x1b\r\x07") & {*out, *err}


def test_an_interrupted_command_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("functions.cli.plan.inputs.read_all", stop)
    assert run("plan", "-f", "a.yaml") == 130
    assert capsys.readouterr().err == "dovetail plan: stopped\n"


def test_standard_input_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.dumps({"kind": "List", "apiVersion": "v1", "items": [PROVISIONER, deployment()]})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    assert run("plan", "-f", "-") == 0
    assert "for 3 pods" in capsys.readouterr().out


def test_standard_input_without_manifests_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert run("plan", "-f", "-") == 2
    assert capsys.readouterr().err == (
        "dovetail plan: stdin: is empty; expected Kubernetes manifests\n"
    )


def test_a_folder_leaves_out_what_is_no_kubernetes_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path / "a.yaml", PROVISIONER, deployment())
    (tmp_path / "values.yaml").write_text("title: something else\n")
    (tmp_path / "README.md").write_text("not read")
    assert run("plan", "-f", str(tmp_path)) == 0
    out, err = capsys.readouterr()
    assert "for 3 pods" in out
    assert "values.yaml: holds no Kubernetes object, left out" in err
