import pytest

from shared.instance_types import facts
from shared.model import labels as keys
from tests.unit.instance_types.catalog_rows import fact, gpus


def labels_of(name: str, **more: object) -> dict[str, str]:
    row = fact(name, **more)  # type: ignore[arg-type]
    return facts.labels_of(row, region="r1", arch="amd64")


def test_a_plain_type_answers_the_well_known_labels() -> None:
    labels = labels_of("m5.large")
    assert labels == {
        keys.INSTANCE_TYPE: "m5.large",
        keys.ARCH: "amd64",
        keys.OS: "linux",
        keys.REGION: "r1",
        keys.INSTANCE_FAMILY: "m5",
        keys.INSTANCE_CATEGORY: "m",
        keys.INSTANCE_GENERATION: "5",
        keys.INSTANCE_SIZE: "large",
        keys.INSTANCE_CPU: "2",
        keys.INSTANCE_MEMORY: "8192",
        keys.INSTANCE_HYPERVISOR: "nitro",
        keys.INSTANCE_NETWORK_BANDWIDTH: "750",
        keys.INSTANCE_ENCRYPTION: "false",
        keys.INSTANCE_FLEX: "false",
    }
    assert list(labels) == sorted(labels)
    assert set(labels) <= keys.WELL_KNOWN


@pytest.mark.parametrize(
    ("name", "category", "generation"),
    [
        ("g4dn.xlarge", "g", "4"),
        ("u-6tb1.56xlarge", "u", "1"),
        ("u7i-12tb.224xlarge", "u", "7"),
        ("im4gn.large", "im", "4"),
        ("m7i-flex.large", "m", "7"),
        ("mac-m4.metal", None, None),
    ],
)
def test_category_and_generation_come_from_the_family(
    name: str, category: str | None, generation: str | None
) -> None:
    labels = labels_of(name)
    assert labels.get(keys.INSTANCE_CATEGORY) == category
    assert labels.get(keys.INSTANCE_GENERATION) == generation


def test_a_property_that_a_type_lacks_is_no_label() -> None:
    network = fact()["NetworkInfo"] | {"NetworkCards": []}
    labels = labels_of("m5.metal", Hypervisor=None, NetworkInfo=network)
    assert keys.INSTANCE_HYPERVISOR not in labels
    assert keys.INSTANCE_NETWORK_BANDWIDTH not in labels
    assert keys.INSTANCE_LOCAL_NVME not in labels
    assert keys.INSTANCE_GPU_NAME not in labels


@pytest.mark.parametrize(
    ("cards", "performance", "shown"),
    [
        # As EC2 describes c6in.32xlarge, p5.48xlarge, i7ie.48xlarge and m5.large.
        ([200.0, 200.0], "200 Gigabit", "200000"),
        ([100.0] * 32, "3200 Gigabit", "3200000"),
        ([100.0, 100.0], "100 Gigabit (per card)", "200000"),
        ([0.75], "Up to 10 Gigabit", "750"),
        ([0.75], "Moderate", "750"),
        ([12.5], "12.5 Gigabit", "12500"),
    ],
)
def test_a_machine_has_no_more_bandwidth_than_ec2_says_of_the_whole(
    cards: list[float], performance: str, shown: str
) -> None:
    rows = [{"BaselineBandwidthInGbps": gbps} for gbps in cards]
    network = fact()["NetworkInfo"] | {"NetworkCards": rows, "NetworkPerformance": performance}
    found = labels_of("m5.large", NetworkInfo=network)
    assert found[keys.INSTANCE_NETWORK_BANDWIDTH] == shown


def test_a_processor_shows_who_made_it_and_its_clock_speed() -> None:
    processor = {
        "SupportedArchitectures": ["x86_64"],
        "Manufacturer": "Intel",
        "SustainedClockSpeedInGhz": 3.2,
    }
    labels = labels_of("m7i-flex.large", ProcessorInfo=processor)
    assert labels[keys.INSTANCE_CPU_MANUFACTURER] == "intel"
    assert labels[keys.INSTANCE_CLOCK_SPEED] == "3200"
    assert labels[keys.INSTANCE_FLEX] == "true"


@pytest.mark.parametrize(("support", "shown"), [("default", "10000"), ("supported", None)])
def test_the_bandwidth_to_ebs_shows_where_every_machine_has_it(
    support: str, shown: str | None
) -> None:
    told = {"EbsOptimizedInfo": {"MaximumBandwidthInMbps": 10000}, "EbsOptimizedSupport": support}
    assert labels_of("m5.large", EbsInfo=told).get(keys.INSTANCE_EBS_BANDWIDTH) == shown
    bare = {"EbsOptimizedSupport": support}
    assert keys.INSTANCE_EBS_BANDWIDTH not in labels_of("m5.large", EbsInfo=bare)


@pytest.mark.parametrize(("support", "shown"), [("required", "475"), ("unsupported", None)])
def test_only_nvme_disks_count_as_local_nvme(support: str, shown: str | None) -> None:
    storage = {"TotalSizeInGB": 475, "NvmeSupport": support}
    labels = labels_of("i3.large", InstanceStorageInfo=storage)
    assert labels.get(keys.INSTANCE_LOCAL_NVME) == shown


def test_a_gpu_shows_name_manufacturer_count_and_memory() -> None:
    labels = labels_of("g7.2xlarge", GpuInfo=gpus("RTX PRO 4500", "NVIDIA", 1))
    assert labels[keys.INSTANCE_GPU_NAME] == "rtx-pro-4500"
    assert labels[keys.INSTANCE_GPU_MANUFACTURER] == "nvidia"
    assert labels[keys.INSTANCE_GPU_COUNT] == "1"
    assert labels[keys.INSTANCE_GPU_MEMORY] == "16384"


def test_an_accelerator_shows_name_manufacturer_and_count() -> None:
    inference = {"Accelerators": [{"Name": "Inferentia", "Manufacturer": "AWS", "Count": 4}]}
    labels = labels_of("inf1.6xlarge", InferenceAcceleratorInfo=inference)
    assert labels[keys.INSTANCE_ACCELERATOR_NAME] == "inferentia"
    assert labels[keys.INSTANCE_ACCELERATOR_MANUFACTURER] == "aws"
    assert labels[keys.INSTANCE_ACCELERATOR_COUNT] == "4"
    neuron = {"NeuronDevices": [{"Name": "Trainium", "Count": 16}]}
    assert labels_of("trn1.32xlarge", NeuronInfo=neuron) == (
        labels_of("trn1.32xlarge")
        | {
            keys.INSTANCE_ACCELERATOR_NAME: "trainium",
            keys.INSTANCE_ACCELERATOR_MANUFACTURER: "aws",
            keys.INSTANCE_ACCELERATOR_COUNT: "16",
        }
    )


@pytest.mark.parametrize(
    ("manufacturer", "resource"),
    [
        ("NVIDIA", "nvidia.com/gpu"),
        ("AMD", "amd.com/gpu"),
        ("Habana", "habana.ai/gaudi"),
    ],
)
def test_each_manufacturer_has_its_resource(manufacturer: str, resource: str) -> None:
    row = fact(GpuInfo=gpus("X", manufacturer, 8))
    assert facts.gpus_of(row) == [{"resource": resource, "count": 8, "name": "X"}]
    assert facts.accelerator_count_of(row) == 8


def test_neuron_devices_are_asked_for_by_one_name() -> None:
    inference = {"Accelerators": [{"Name": "Inferentia", "Manufacturer": "AWS", "Count": 4}]}
    wanted = [{"resource": "aws.amazon.com/neuron", "count": 4, "name": "Inferentia"}]
    assert facts.gpus_of(fact(InferenceAcceleratorInfo=inference)) == wanted
    both = {"NeuronDevices": [{"Name": "Inferentia", "Count": 4}]}
    row = fact(InferenceAcceleratorInfo=inference, NeuronInfo=both)
    assert facts.gpus_of(row) == wanted


def test_neuron_cores_can_be_asked_for_too() -> None:
    devices = [{"Name": "Trainium2", "Count": 16, "CoreInfo": {"Count": 8, "Version": 3}}]
    row = fact(NeuronInfo={"NeuronDevices": devices})
    assert facts.neuron_cores_of(row) == {"aws.amazon.com/neuroncore": 128}
    assert facts.accelerator_count_of(row) == 16
    unsaid = fact(NeuronInfo={"NeuronDevices": [{"Name": "Trainium", "Count": 16}]})
    assert facts.neuron_cores_of(unsaid) == {}


def test_devices_without_a_resource_are_paid_for_but_not_offered() -> None:
    other = {"Accelerators": [{"Name": "AI100", "Manufacturer": "Qualcomm", "Count": 8}]}
    row = fact(InferenceAcceleratorInfo=other, GpuInfo=gpus("Y", "Unknown", 1))
    assert facts.gpus_of(row) == []
    assert facts.accelerator_count_of(row) == 8
    assert facts.accelerator_count_of(fact(FpgaInfo={"Fpgas": [{"Count": 2}]})) == 2
    assert facts.accelerator_count_of(fact(MediaAcceleratorInfo={"Accelerators": []})) == 0


def test_a_slice_of_a_gpu_is_one_device() -> None:
    assert facts.gpus_of(fact(GpuInfo=gpus("L4", "NVIDIA", 0)))[0]["count"] == 1


def test_only_what_runs_linux_nodes_has_an_architecture() -> None:
    assert facts.arch_of(fact(arch="x86_64")) == "amd64"
    assert facts.arch_of(fact(arch="arm64")) == "arm64"
    assert facts.arch_of(fact(arch="arm64_mac")) is None
    assert facts.arch_of(fact(SupportedVirtualizationTypes=["paravirtual"])) is None


def test_pods_count_on_the_default_network_card_only() -> None:
    cards = [{"NetworkCardIndex": n, "MaximumNetworkInterfaces": 15} for n in range(4)]
    network = {
        "MaximumNetworkInterfaces": 60,
        "Ipv4AddressesPerInterface": 50,
        "NetworkCards": cards,
    }
    told = {"interfaces": 60, "default_card": 15, "addresses": 50}
    assert facts.network_of(fact(NetworkInfo=network)) == told
    without = facts.network_of(fact(NetworkInfo=network | {"NetworkCards": []}))
    assert without == {**told, "default_card": 60}
