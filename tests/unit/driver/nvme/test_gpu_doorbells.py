"""What a GPU's IOMMU domain lets it do, on machines that are made up."""

from pathlib import Path

import pytest

from bamquery.driver.nvme.gpu_doorbells import gpu_doorbells
from tests.unit.driver.doctor.fake_machine import GPU, make

ADDRESS = "0000:41:00.0"
GROUP = {f"{GPU}/iommu_group": "sys/kernel/iommu_groups/9"}


@pytest.mark.parametrize(
    ("domain", "kind", "said"),
    [
        ("identity", "registers", "is identity"),
        ("DMA", "forwarded", "is DMA, not identity"),
        ("DMA-FQ", "forwarded", "iommu=pt"),
        ("blocked", "forwarded", "is blocked"),
    ],
)
def test_a_domain_that_translates_has_doorbells_forwarded(
    tmp_path: Path, domain: str, kind: str, said: str
) -> None:
    machine = make(tmp_path, {"sys/kernel/iommu_groups/9/type": domain}, GROUP)
    found = gpu_doorbells(ADDRESS, machine)
    assert found.kind == kind
    assert said in found.reason


def test_a_group_of_unknown_type_counts_as_translated(tmp_path: Path) -> None:
    machine = make(tmp_path, {"sys/kernel/iommu_groups/9/x": ""}, GROUP)
    assert gpu_doorbells(ADDRESS, machine).kind == "forwarded"


def test_without_an_iommu_registers_are_within_reach(tmp_path: Path) -> None:
    assert gpu_doorbells(ADDRESS, make(tmp_path)).kind == "registers"


def test_of_a_gpu_that_is_not_to_be_seen_nothing_is_taken_for_granted(tmp_path: Path) -> None:
    found = gpu_doorbells("0000:99:00.0", make(tmp_path))
    assert (found.kind, "nothing is known" in found.reason) == ("forwarded", True)
