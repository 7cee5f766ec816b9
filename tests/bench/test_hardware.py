"""What the machine is: texts of the kernel, both versions of the cgroup, and GPUs that answer, fail or hang."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from time import monotonic

import pytest

from bench import cgroup, procfs
from bench.arrow import table_from_rows
from bench.cgroup import CgroupReader
from bench.contract import OPENING
from bench.hardware import Hardware, probe_hardware
from tests.bench.fake_nvml import build_fake_nvml, environment_with

GIB = 2**30
V1_UNLIMITED = "9223372036854771712\n"


@pytest.fixture(scope="module")
def nvml_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fake_nvml(tmp_path_factory.mktemp("nvml"))


def system(root: Path, files: Mapping[str, str]) -> Path:
    """Write the files of a made-up system and return its root."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def v2_container(root: Path, files: Mapping[str, str]) -> CgroupReader:
    """A container's view of version 2: its own cgroup is the root of the mount."""
    inside = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    return CgroupReader(system(root, {"proc/self/cgroup": "0::/\n", **inside}))


def v1_container(root: Path, files: Mapping[str, str]) -> CgroupReader:
    """A container's view of version 1: /proc names the host's path, which does not exist inside."""
    membership = "11:memory:/docker/0123abcd\n5:cpu,cpuacct:/docker/0123abcd\n1:name=systemd:/docker/0123abcd\n0::/\n"
    inside = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    return CgroupReader(system(root, {"proc/self/cgroup": membership, **inside}))


@pytest.mark.parametrize(
    ("text", "limit_bytes"), [("max\n", None), ("68719476736\n", 64 * GIB), (V1_UNLIMITED, None), ("0\n", 0)]
)
def test_a_memory_limit_is_bytes_or_null_when_unlimited(text: str, limit_bytes: int | None) -> None:
    assert cgroup.memory_limit(text) == limit_bytes


@pytest.mark.parametrize(("text", "count"), [("max 100000\n", None), ("150000 100000\n", 1.5)])
def test_a_quota_of_version_2_is_processors(text: str, count: float | None) -> None:
    assert cgroup.cpu_quota_v2(text) == count


@pytest.mark.parametrize(("quota", "count"), [("-1\n", None), ("800000\n", 8.0)])
def test_a_quota_of_version_1_is_processors(quota: str, count: float | None) -> None:
    assert cgroup.cpu_quota_v1(quota, "100000\n") == count


@pytest.mark.parametrize(
    "text",
    ["low 0\nhigh 3\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"],
    ids=["v2", "v1"],
)
def test_the_oom_counter_is_found_in_both_versions(text: str) -> None:
    assert cgroup.oom_kills(text) == 1


def test_a_kernel_without_the_counter_says_so() -> None:
    with pytest.raises(ValueError, match="no line 'oom_kill'"):
        cgroup.oom_kills("oom_kill_disable 0\nunder_oom 0\n")


def test_version_2_is_read_in_a_container(tmp_path: Path) -> None:
    reader = v2_container(
        tmp_path,
        {
            "memory.max": f"{64 * GIB}\n",
            "memory.current": "4096\n",
            "memory.events": "oom_kill 2\n",
            "cpu.max": "max 100000\n",
        },
    )
    assert (reader.memory_limit_bytes(), reader.memory_current_bytes(), reader.oom_kill_count()) == (64 * GIB, 4096, 2)
    assert (reader.cpu_quota_count(), reader.missing_cpu_reason(), reader.missing_memory_reason()) == (None, None, None)


def test_version_1_is_read_in_a_container(tmp_path: Path) -> None:
    reader = v1_container(
        tmp_path,
        {
            "memory/memory.limit_in_bytes": f"{32 * GIB}\n",
            "memory/memory.usage_in_bytes": "8192\n",
            "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
            "cpu/cpu.cfs_quota_us": "250000\n",
            "cpu/cpu.cfs_period_us": "100000\n",
        },
    )
    assert (reader.memory_limit_bytes(), reader.memory_current_bytes(), reader.oom_kill_count()) == (32 * GIB, 8192, 3)
    assert reader.cpu_quota_count() == 2.5


def test_the_smallest_limit_on_the_way_up_holds(tmp_path: Path) -> None:
    root = system(
        tmp_path,
        {
            "proc/self/cgroup": "0::/user.slice/run.scope\n",
            "sys/fs/cgroup/user.slice/memory.max": f"{8 * GIB}\n",
            "sys/fs/cgroup/user.slice/run.scope/memory.max": "max\n",
            "sys/fs/cgroup/user.slice/run.scope/memory.events": "oom_kill 1\n",
        },
    )
    reader = CgroupReader(root)
    assert (reader.memory_limit_bytes(), reader.oom_kill_count()) == (8 * GIB, 1)


def test_a_memory_controller_of_version_1_is_read_beside_version_2(tmp_path: Path) -> None:
    root = system(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/job\n0::/\n",
            "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "77\n",
            "sys/fs/cgroup/unified/cgroup.procs": "1\n",
        },
    )
    assert CgroupReader(root).memory_current_bytes() == 77


def test_a_path_outside_the_namespace_does_not_lead_out_of_the_mount(tmp_path: Path) -> None:
    root = system(tmp_path, {"proc/self/cgroup": "0::/../../etc\n", "sys/etc/memory.max": "1\n", "sys/fs/cgroup/x": ""})
    assert CgroupReader(root).memory_limit_bytes() is None


def test_without_a_cgroup_everything_is_null_with_a_reason(tmp_path: Path) -> None:
    reader = CgroupReader(tmp_path)
    figures = (reader.memory_limit_bytes(), reader.memory_current_bytes(), reader.oom_kill_count())
    assert (*figures, reader.cpu_quota_count()) == (None, None, None, None)
    assert "no readable memory.max" in (reader.missing_memory_reason() or "")
    assert "no readable cpu.max" in (reader.missing_cpu_reason() or "")


def test_the_processor_is_named() -> None:
    assert procfs.cpu_model("processor\t: 0\nmodel name\t: AMD EPYC 7B13 \nflags\t: fpu\n") == "AMD EPYC 7B13"


def test_memory_is_counted_in_bytes() -> None:
    assert procfs.meminfo_bytes("MemTotal:       528482304 kB\nMemFree: 1 kB\n", "MemTotal") == 528482304 * 1024


@pytest.mark.parametrize(
    ("line", "name"), [('PRETTY_NAME="Ubuntu 24.04 LTS"', "Ubuntu 24.04 LTS"), ("PRETTY_NAME=Alpine", "Alpine")]
)
def test_the_operating_system_is_named(line: str, name: str) -> None:
    assert procfs.os_name(f"ID=x\n{line}\n") == name


def test_this_machine_is_described(tmp_path: Path) -> None:
    found = probe_hardware(tmp_path, os.environ)
    assert found.cpu_count == os.cpu_count()
    assert found.disk_free_bytes is not None
    assert found.disk_free_bytes > 0
    assert found.memory_bytes is not None
    assert found.kernel == os.uname().release


def test_a_machine_that_tells_nothing_gives_nulls_with_reasons(tmp_path: Path) -> None:
    found = probe_hardware(tmp_path / "gone", {}, system_root=tmp_path)
    silent = ("cpu_model", "cpu_quota_count", "memory_bytes", "memory_limit_bytes", "shm_bytes", "disk_free_bytes")
    for column in (*silent, "os_image", "container_image", "boot_id"):
        assert getattr(found, column) is None
        assert found.probe_errors[column]


def test_an_unlimited_cgroup_is_null_without_a_reason(tmp_path: Path) -> None:
    v2_container(tmp_path, {"memory.max": "max\n", "cpu.max": "max 100000\n"})
    found = probe_hardware(tmp_path, {}, system_root=tmp_path)
    assert (found.memory_limit_bytes, found.cpu_quota_count) == (None, None)
    assert not {"memory_limit_bytes", "cpu_quota_count"} & set(found.probe_errors)


def test_a_kernel_log_that_is_not_there_is_absent(tmp_path: Path) -> None:
    assert probe_hardware(tmp_path, {}, system_root=tmp_path).kernel_log == "absent"


def test_a_kernel_log_that_can_be_read_is_readable(tmp_path: Path) -> None:
    system(tmp_path, {"dev/kmsg": "6,1,0,-;a record\n"})
    assert probe_hardware(tmp_path, {}, system_root=tmp_path).kernel_log == "readable"


def test_the_image_is_named_by_the_environment(tmp_path: Path) -> None:
    found = probe_hardware(tmp_path, {"CONTAINER_IMAGE": "curio/cuzk:1"}, system_root=tmp_path)
    assert found.container_image == "curio/cuzk:1"


def gpus_that_are(nvml_folder: Path, behaviour: str, limit_s: float = 20.0) -> Hardware:
    return probe_hardware(nvml_folder, environment_with(nvml_folder, behaviour), nvml_limit_s=limit_s)


def test_gpus_are_described(nvml_folder: Path) -> None:
    found = gpus_that_are(nvml_folder, "good")
    assert (found.gpu_model, found.num_gpus) == ("NVIDIA Fake 0", 2)
    assert (found.driver_version, found.cuda_version) == ("570.86.15", "12.8")
    assert found.gpus[1] == {
        "index": 1,
        "uuid": "GPU-00000001",
        "model": "NVIDIA Fake 1",
        "memory_bytes": 24 * GIB,
        "pcie_gen": 5,
        "pcie_width": 16,
        "power_limit_w": 145.0,
        "ecc": True,
    }


def test_the_row_fits_the_opening(nvml_folder: Path) -> None:
    row = gpus_that_are(nvml_folder, "good").as_row()
    assert set(row) <= set(OPENING.column_names)
    stored = table_from_rows(OPENING, [{**OPENING.empty_row(), **row}]).to_pylist()[0]
    assert [gpu["index"] for gpu in stored["gpus"]] == [0, 1]


def test_a_lost_gpu_is_named_and_the_other_described(nvml_folder: Path) -> None:
    found = gpus_that_are(nvml_folder, "lost")
    assert ([gpu["index"] for gpu in found.gpus], found.num_gpus) == ([0], 2)
    assert found.probe_errors["gpus"] == "NVML about GPU 1: GPU is lost"


def test_figures_that_a_gpu_does_not_have_are_null(nvml_folder: Path) -> None:
    gpu = gpus_that_are(nvml_folder, "bare").gpus[0]
    assert (gpu["power_limit_w"], gpu["ecc"], gpu["pcie_gen"]) == (None, None, 5)


def test_absurd_figures_are_null(nvml_folder: Path) -> None:
    gpu = gpus_that_are(nvml_folder, "absurd").gpus[0]
    figures = {name: gpu[name] for name in ("memory_bytes", "pcie_gen", "pcie_width", "power_limit_w", "ecc")}
    assert figures == dict.fromkeys(figures)


def test_a_library_that_prints_lines_of_its_own_is_still_understood(nvml_folder: Path) -> None:
    assert gpus_that_are(nvml_folder, "noisy").num_gpus == 2


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("no_driver", "NVML: Driver Not Loaded"),
        ("crash_at_start", "the process that asked NVML was ended by signal 11"),
    ],
)
def test_gpus_that_cannot_be_asked_are_null_with_the_reason(nvml_folder: Path, behaviour: str, reason: str) -> None:
    found = gpus_that_are(nvml_folder, behaviour)
    assert (found.gpus, found.num_gpus, found.gpu_model) == ([], None, None)
    assert {found.probe_errors[name] for name in ("gpus", "num_gpus", "gpu_model", "driver_version")} == {reason}


def test_a_library_that_hangs_costs_its_time_limit_and_no_more(nvml_folder: Path) -> None:
    started_s = monotonic()
    found = gpus_that_are(nvml_folder, "hang_at_start", limit_s=0.5)
    assert monotonic() - started_s < 5
    assert found.probe_errors["gpus"] == "NVML did not answer within 0.5 s"
