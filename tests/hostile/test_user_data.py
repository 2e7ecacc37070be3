"""User data: a machine is told the flags, labels and taints that are meant, or it is refused."""

from typing import Any

from hypothesis import strategies as st

from shared.instance_types.ami_families import FAMILIES, USER_DATA_LIMIT_BYTES
from shared.model.errors import InvalidManifestError
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.provisioner import KubeletConfiguration
from tests.hostile.corpus import batches, texts, try_batch
from tests.hostile.judging import bash_words, judge, meant_words
from tests.property.test_bootstrap_laws import TEXTS as CUSTOM
from tests.unit.instance_types.ami_families.joinings import joining

RIGHT_KEYS = (
    "team",
    "example.com/a_b.c",
    "node.kubernetes.io/role",
    "kubernetes.io/hostname",
    "k8s.io/x",
)
keys = st.one_of(*[st.sampled_from(RIGHT_KEYS)] * 3, texts)
label_values = st.one_of(*[st.sampled_from(("red", "", "A-1.x_y", "a" * 63))] * 3, texts)
taints = st.builds(Taint, key=keys, value=label_values, effect=st.sampled_from(list(Effect)))
signals = st.dictionaries(
    st.one_of(st.sampled_from(("memory.available", "nodefs.available")), texts),
    st.one_of(st.sampled_from(("5%", "100Mi", "1m30s")), texts),
    max_size=2,
)
kubelets = st.builds(
    KubeletConfiguration,
    cluster_dns=st.lists(st.one_of(st.just("10.0.0.10"), texts), max_size=2).map(tuple),
    max_pods=st.sampled_from((None, 0, 110)),
    eviction_hard=signals,
    eviction_soft=signals,
    eviction_soft_grace_period=signals,
    cpu_cfs_quota=st.sampled_from((None, True, False)),
)
plain = st.just(KubeletConfiguration())


asked = st.fixed_dictionaries(
    {
        "labels": st.dictionaries(keys, label_values, max_size=3),
        "taints": st.lists(
            taints, max_size=2, unique_by=lambda taint: (taint.key, taint.effect)
        ).map(tuple),
        "kubelet": st.one_of(st.just(KubeletConfiguration()), kubelets),
    }
)
families = st.sampled_from(sorted(set(FAMILIES) - {"Custom"}))


@batches
def test_user_data_says_what_is_meant_or_is_refused(batch: int) -> None:
    scripts: list[str] = []
    refusals: list[str] = []

    def check(drawn: tuple[str, dict[str, Any], str]) -> None:
        family, wanted, custom = drawn
        try:
            told = joining(**wanted)
            text = FAMILIES[family].user_data(told, custom)
        except InvalidManifestError as error:
            refusals.append(str(error))
            return
        assert len(text.encode()) <= USER_DATA_LIMIT_BYTES
        judge(family, text, told)
        if family in ("AL2", "Ubuntu") and not custom:
            scripts.append(text)

    try_batch(batch, st.tuples(families, asked, st.one_of(st.just(""), CUSTOM)), check)
    assert all(map(str.isprintable, refusals))
    assert bash_words(scripts) == [meant_words(text) for text in scripts] != []
