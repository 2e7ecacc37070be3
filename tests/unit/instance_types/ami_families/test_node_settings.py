"""What user data sets on nodes counts as if it stood in their documents; the rest is said."""

import json

import pytest

from shared.disruption.drift import shape_hash
from shared.instance_types.ami_families import FAMILIES, with_user_data_settings
from shared.instance_types.ami_families.node_settings import NodeSettings
from shared.model.dialect import OwnerKind
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.provisioner import KubeletConfiguration, NodeTemplate, Provisioner
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.model.values import replace

MIB = 2**20
DB = Taint(key="dedicated", value="db", effect=Effect.NO_SCHEDULE)
GPU = Taint(key="gpu", effect=Effect.NO_EXECUTE)
HEAD = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n'
CALL = "/etc/eks/bootstrap.sh cluster"
ROCKET = """
[settings.kubernetes]
max-pods = 20
cluster-domain = "cluster.local"
[settings.kubernetes.kube-reserved]
cpu = "1"
memory = "3Gi"
[settings.kubernetes.eviction-hard]
"memory.available" = "20%"
"nodefs.inodesFree" = "5%"
[settings.kubernetes.node-labels]
rack = "r1"
"node.kubernetes.io/instance-type" = "m5.large"
[settings.kubernetes.node-taints]
dedicated = ["db:NoSchedule"]
gpu = ":NoExecute"
"node.cloudprovider.kubernetes.io/uninitialized" = "true:NoSchedule"
"""
FLAGS = (
    "--kube-reserved=cpu=1,memory=3Gi --eviction-hard=memory.available<200Mi --max-pods 20 "
    "--node-labels=rack=r1 --register-with-taints=dedicated=db:NoSchedule,gpu:NoExecute --v=2"
)
# As Karpenter writes its labels.
QUOTED = [FLAGS.replace("rack=r1", '"rack=r1"')]
# What a flag does not name of a map is nothing, where a configuration leaves it to the image.
OF_FLAGS = KubeletConfiguration(
    max_pods=20,
    kube_reserved=Resources((("cpu", 1000), ("ephemeral-storage", 0), ("memory", 3072 * MIB))),
    eviction_hard={"memory.available": "200Mi", "nodefs.available": "0%"},
)


def node_config(spec: str) -> str:
    return f"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {spec}\n"


def parts(*texts: str, kind: str = "application/node.eks.aws") -> str:
    written = "".join(f"--B\nContent-Type: {kind}\n\n{text}\n" for text in texts)
    return f"{HEAD}{written}--B--\n"


def settings(family: str, custom: str) -> NodeSettings:
    FAMILIES[family].refuse_wrong(custom)
    return FAMILIES[family].settings(custom)


def owner(custom: str, family: str = "AL2023", **fields: object) -> Provisioner:
    template = NodeTemplate(name="default", ami_family=family, user_data=custom)
    plain = Provisioner(name="default", kind=OwnerKind.NODE_POOL, template=template)
    return replace(plain, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("family", ["Bottlerocket", "Custom"])
def test_settings_of_bottlerocket_are_read(family: str) -> None:
    assert settings(family, ROCKET) == NodeSettings(
        kubelet_defaults=KubeletConfiguration(
            max_pods=20,
            kube_reserved=Resources((("cpu", 1000), ("memory", 3072 * MIB))),
            eviction_hard={"memory.available": "20%"},
        ),
        labels={"rack": "r1"},
        taints=(DB, GPU),
    )


@pytest.mark.parametrize("family", ["AL2023", "Custom"])
def test_of_several_node_configs_the_later_wins_and_their_flags_add_up(family: str) -> None:
    first = """{kubelet: {config: {maxPods: 8, podsPerCore: 3, kubeReserved: {memory: 4Gi, cpu: 1},
        registerWithTaints: [{key: a, effect: NoSchedule}]}, flags: [--node-labels=rack=r0]}}"""
    second = """{kubelet: {config: {maxPods: 9, kubeReserved: {cpu: 200m}, systemReserved:
        {memory: 1Gi}, registerWithTaints: [{key: dedicated, value: db, effect: NoSchedule}]},
        flags: ["--node-labels=rack=r1,row=2"]}, instance: {localStorage: {strategy: RAID0}}}"""
    assert settings(family, parts(node_config(first), node_config(second))) == NodeSettings(
        kubelet_defaults=KubeletConfiguration(
            max_pods=9,
            pods_per_core=3,
            kube_reserved=Resources.of(cpu=200, memory=4096 * MIB),
            system_reserved=Resources.of(memory=1024 * MIB),
        ),
        labels={"rack": "r1", "row": "2"},
        taints=(DB,),
        instance_store=True,
    )


@pytest.mark.parametrize(
    ("family", "custom"),
    [
        ("AL2023", node_config(f"{{kubelet: {{flags: ['{FLAGS}']}}}}")),
        ("AL2023", node_config(f"{{kubelet: {{flags: {json.dumps(QUOTED)}}}}}")),
        ("AL2", f"#!/bin/bash\n{CALL} --kubelet-extra-args '{FLAGS}' || exit 1\n"),
        ("Ubuntu", f"#!/bin/bash\nset -e\n{CALL} \\\n  --kubelet-extra-args '{FLAGS}'\n"),
        ("AL2", f"#!/bin/bash\nexport KUBELET_EXTRA_ARGS='{FLAGS}'\n"),
        (
            "Custom",
            (
                f"#!/bin/bash\nKUBELET_EXTRA_ARGS='{FLAGS}'\n# the kubelet\nsudo {CALL} "
                '--kubelet-extra-args "$KUBELET_EXTRA_ARGS"\n'
            ),
        ),
    ],
    ids=["NodeConfig", "quoted", "call", "long call", "variable", "call with the variable"],
)
def test_flags_are_read_wherever_they_stand_and_replace_whole_maps(
    family: str, custom: str
) -> None:
    found = settings(family, custom)
    assert found == NodeSettings(
        kubelet_overrides=OF_FLAGS, labels={"rack": "r1"}, taints=(DB, GPU)
    )


def test_taints_of_the_last_flag_stand_in_place_of_all_others() -> None:
    first = """{kubelet: {config: {registerWithTaints: [{key: a, effect: NoSchedule}]},
        flags: [--register-with-taints=b:NoSchedule]}}"""
    second = "{kubelet: {flags: ['--register-with-taints=dedicated=db:NoSchedule']}}"
    third = "{kubelet: {config: {registerWithTaints: [{key: c, effect: NoSchedule}]}}}"
    custom = parts(*map(node_config, (first, second, third)))
    assert settings("AL2023", custom).taints == (DB,)


@pytest.mark.parametrize(
    ("family", "reserved", "hard"),
    [
        (
            "AL2",
            (("cpu", 500), ("ephemeral-storage", 0), ("memory", 0)),
            {"nodefs.available": "0%"},
        ),
        ("AL2023", (("cpu", 500),), {}),
    ],
)
def test_kubelets_that_are_told_by_flags_keep_nothing_that_these_leave_out(
    family: str, reserved: tuple[tuple[str, int], ...], hard: dict[str, str]
) -> None:
    told = KubeletConfiguration(
        kube_reserved=Resources.of(cpu=500), eviction_hard={"memory.available": "1Gi"}
    )
    found = FAMILIES[family].effective_kubelet(told)
    assert found.kube_reserved == Resources(reserved)
    assert found.eviction_hard == {"memory.available": "1Gi", **hard}
    assert FAMILIES[family].effective_kubelet(KubeletConfiguration()) == KubeletConfiguration()


def test_the_bootstrap_script_is_told_of_pods_and_disks() -> None:
    custom = f"#!/bin/sh\n{CALL} --use-max-pods false --local-disks raid0\n"
    assert settings("AL2", custom) == NodeSettings(
        kubelet_overrides=KubeletConfiguration(max_pods=110), instance_store=True
    )


@pytest.mark.parametrize(
    ("family", "custom", "unread"),
    [
        ("AL2", "#!/bin/sh\necho {} > /etc/kubernetes/kubelet/kubelet-config.json\n", "line 2"),
        ("AL2", f"#!/bin/sh\n{CALL} --kubelet-extra-args '--max-pods\n", "line 2"),
        (
            "AL2",
            f"#!/bin/sh\n{CALL} --kubelet-extra-args --max-pods=$PODS\n",
            "line 2: --max-pods",
        ),
        ("AL2", "#cloud-config\nruncmd: [systemctl restart kubelet]\n", "line 2"),
        (
            "AL2023",
            parts(
                "#!/bin/sh\n", "#!/bin/sh\nsysctl -w vm.nr_hugepages=9\n", kind="text/x-shellscript"
            ),
            "part 2, line 2",
        ),
        (
            "AL2023",
            node_config("{kubelet: {maxPodsExpression: '9'}}"),
            "spec.kubelet.maxPodsExpression",
        ),
        (
            "AL2023",
            node_config("{featureGates: {MemoryLimitMaxPods: true}}"),
            "spec.featureGates.MemoryLimitMaxPods",
        ),
        (
            "Bottlerocket",
            '[settings.kernel.sysctl]\na = "1"\n"vm.nr_hugepages" = "9"\n',
            "settings.kernel",
        ),
        ("Custom", "[not toml nor a script", "all of it"),
        *(
            (
                "AL2023",
                node_config(f"{{kubelet: {{config: {{{text}}}}}}}"),
                f"spec.kubelet.config.{name}",
            )
            for text, name in (
                ("maxPods: many", "maxPods"),
                ("maxPods: -1", "maxPods"),
                ("podsPerCore: true", "podsPerCore"),
                ("kubeReserved: 1", "kubeReserved"),
                ("kubeReserved: {cpu: [1]}", "kubeReserved.cpu"),
                ("kubeReserved: {cpu: one}", "kubeReserved.cpu"),
                ("systemReserved: {memory: -1}", "systemReserved.memory"),
                ("systemReserved: {gpu: 1}", "systemReserved.gpu"),
                ("evictionHard: {memory.available: 101%}", "evictionHard.memory.available"),
                ("reservedSystemCPUs: 3", "reservedSystemCPUs"),
                ("registerWithTaints: a", "registerWithTaints"),
                ("registerWithTaints: [{key: a, effect: Never}]", "registerWithTaints"),
                ("registerWithTaints: [{key: a b, effect: NoSchedule}]", "registerWithTaints"),
            )
        ),
        *(
            (
                "AL2023",
                node_config(f"{{kubelet: {{flags: ['{flag}']}}}}"),
                f"spec.kubelet.flags: {place}",
            )
            for flag, place in (
                ("--max-pods=many", "--max-pods"),
                ("--reserved-cpus=0-x", "--reserved-cpus"),
                ("--reserved-cpus=3-1", "--reserved-cpus"),
                ("--node-labels=kubernetes.io/x=1", "--node-labels: kubernetes.io/x"),
                ("--node-labels=node-role.kubernetes.io/x=1", "--node-labels: node-role.kubern"),
                ("--register-with-taints=a=b", "--register-with-taints"),
                ('--node-labels="a=b', "a quotation mark"),
            )
        ),
    ],
)
def test_what_is_not_read_is_said_by_its_place(family: str, custom: str, unread: str) -> None:
    found = settings(family, custom)
    assert len(found.unread) == 1
    assert found.unread[0].startswith(unread)
    assert found == NodeSettings(unread=found.unread)


@pytest.mark.parametrize(
    ("family", "custom"),
    [
        ("AL2023", node_config("{kubelet: {config: 3, flags: 3}, instance: 3}")),
        ("AL2023", node_config("{kubelet: {config: {maxParallelImagePulls: 3}}}")),
        (
            "Bottlerocket",
            "[settings]\nkernel = 3\n[settings.kubernetes]\nnode-labels = 3\nnode-taints = 3",
        ),
        ("Bottlerocket", "[settings.kernel]\nsysctl = 3\n"),
        ("AL2", "#!/bin/sh\nyum install -y jq\n"),
    ],
)
def test_other_user_data_sets_nothing(family: str, custom: str) -> None:
    assert settings(family, custom) == NodeSettings()


def test_documents_stand_above_configuration_and_flags_above_documents() -> None:
    custom = node_config(
        "{kubelet: {config: {maxPods: 8, kubeReserved: {cpu: 1, memory: 4Gi}}, "
        "flags: ['--pods-per-core=4']}}"
    )
    own = KubeletConfiguration(
        max_pods=30, pods_per_core=2, kube_reserved=Resources.of(cpu=500), image_gc_low_percent=1
    )
    found = with_user_data_settings(owner(custom, kubelet=own))
    assert found.kubelet == KubeletConfiguration(
        max_pods=30,
        pods_per_core=4,
        kube_reserved=Resources.of(cpu=500, memory=4096 * MIB),
        image_gc_low_percent=1,
    )


def test_labels_and_taints_of_user_data_are_those_of_the_pool_unless_it_has_others() -> None:
    custom = node_config(
        "{kubelet: {flags: ['--node-labels=rack=r1,team=red,row=2', "
        "'--register-with-taints=dedicated=web:NoSchedule,gpu:NoExecute,"
        "ebs.csi.aws.com/agent-not-ready:NoExecute']}}"
    )
    pool = owner(
        custom,
        labels={"team": "blue"},
        requirements=Requirements.of([Requirement.of("team", "blue"), Requirement.of("row", "3")]),
        taints=(DB,),
    )
    found = with_user_data_settings(pool)
    assert found.labels == {"team": "blue", "rack": "r1"}
    assert found.requirements.first_refusing({"team": "blue", "row": "3", "rack": "r1"}) is None
    assert found.requirements.first_refusing({"team": "blue", "row": "3", "rack": "x"}) is not None
    assert found.taints == (DB, GPU)
    assert [taint.key for taint in found.startup_taints] == ["ebs.csi.aws.com/agent-not-ready"]


def test_what_is_not_read_is_a_warning_with_the_field_to_write() -> None:
    custom = "#!/bin/sh\necho --max-pods=9 > /etc/sysconfig/kubelet\n"
    (warning,) = with_user_data_settings(owner(custom)).warnings
    assert warning == (
        "EC2NodeClass default: spec.userData: line 2: not read: what it sets on the kubelet is "
        "not counted; set it in spec.kubelet"
    )
    inline = replace(
        owner(custom), kind=OwnerKind.PROVISIONER, template=NodeTemplate(user_data=custom)
    )
    (warning,) = with_user_data_settings(inline).warnings
    assert warning.startswith("spec.provider.userData: line 2: ")
    assert warning.endswith("set it in spec.kubeletConfiguration")


def test_nodes_that_were_launched_before_user_data_was_read_have_not_drifted() -> None:
    pool = owner(node_config("{kubelet: {config: {maxPods: 8}}}"))
    found = with_user_data_settings(pool)
    assert (found.kubelet.max_pods, found.without_user_data) == (8, pool)
    assert shape_hash(found) == shape_hash(pool)
    assert with_user_data_settings(owner("")) == owner("")


@pytest.mark.parametrize(
    ("spec", "cores"),
    [
        ("{config: {reservedSystemCPUs: '0-3,8,2'}}", 5),
        ("{config: {reservedSystemCPUs: '0-3'}, flags: ['--reserved-cpus=0,32']}", 2),
        ("{config: {reservedSystemCPUs: '0-3'}, flags: ['--reserved-cpus=']}", 0),
    ],
    ids=["configuration", "flag", "none by flag"],
)
def test_cores_that_a_list_reserves_are_counted(spec: str, cores: int) -> None:
    found = with_user_data_settings(owner(node_config(f"{{kubelet: {spec}}}")))
    assert (found.kubelet, found.warnings) == (KubeletConfiguration(reserved_cpus=cores), ())
