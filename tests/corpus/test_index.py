"""A folder of manifests is judged as its index says."""

from pathlib import Path

import pytest

from tests.corpus.__main__ import main
from tests.corpus.judging import expected

GOOD = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: good}
spec:
  template:
    spec:
      requirements: []
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: elsewhere}
"""
STATIC = GOOD.replace("spec:\n  template", "spec:\n  replicas: 2\n  template", 1)
HEAD = "| file | source | expectation |\n|---|---|---|\n"


def judged(folder: Path, index: str, **files: str) -> int:
    (folder / "INDEX.md").write_text(f"{HEAD}{index}")
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return main([str(folder)])


def test_answers_as_expected_end_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = "| a.yaml | me | accept |\n| b.yaml | me | refuse: replicas (static pool) |\n"
    assert judged(tmp_path, index, a=GOOD, b=STATIC) == 0
    assert capsys.readouterr().out == "2 of 2 as expected; 1 accepted\n"


@pytest.mark.parametrize(
    ("cell", "text", "words"),
    [
        ("accept", STATIC, "a.yaml: is refused: spec.replicas: 2: remove it"),
        ("refuse: replicas", GOOD, "a.yaml: is accepted"),
        ("refuse: networkInterfaces", STATIC, "a.yaml: says none of networkInterfaces"),
        ("perhaps", GOOD, "an expectation begins with accept or refuse"),
        ("accept", "a: [", "a.yaml: a.yaml"),
    ],
)
def test_answer_that_differs_is_told_and_ends_badly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cell: str, text: str, words: str
) -> None:
    assert judged(tmp_path, f"| a.yaml | me | {cell} |\n", a=text) == 1
    assert words in capsys.readouterr().out


def test_file_that_is_not_there_differs(tmp_path: Path) -> None:
    assert judged(tmp_path, "| a.yaml | me | accept |\n") == 1


@pytest.mark.parametrize("arguments", [[], [""], ["nowhere"]])
def test_folder_without_an_index_is_refused(arguments: list[str]) -> None:
    assert main(arguments) == 2


def test_index_that_names_no_file_is_refused(tmp_path: Path) -> None:
    assert judged(tmp_path, "") == 2


def test_note_will_do_where_the_index_says_so() -> None:
    wanted = expected("refuse: unknown field spec.kubelet (or accept with a note that names it)")
    assert (wanted.refused, wanted.noted, wanted.words) == (True, True, ("spec.kubelet",))
    assert expected("refuse or accept per document: as it is").refused is None
