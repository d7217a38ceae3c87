"""The accelerators' figures and the ways to give one's own."""

import pytest

from engine.catalog import CatalogError, accelerator, accelerator_from_columns, accelerators


def test_all_accelerators_have_memory_bandwidth_and_a_source() -> None:
    assert len(accelerators()) == 40
    for name, one in accelerators().items():
        assert one.name == name
        assert one.memory_gib > 0
        assert one.bandwidth_gb_per_s > 0
        assert one.source


def test_an_80_gb_device_has_85_9e9_bytes() -> None:
    assert accelerator("H100-SXM-80GB").memory_bytes == pytest.approx(85.9e9, rel=1e-3)


def test_figures_of_the_h100() -> None:
    h100 = accelerator("H100-SXM-80GB")
    assert h100.bandwidth_bytes_per_s == 3350e9
    assert (h100.peak_flops("bf16"), h100.peak_flops("fp8"), h100.peak_flops("int8")) == (989e12, 1979e12, 1979e12)
    assert h100.peak_flops("fp4") is None
    assert h100.peak_flops("int4") is None
    assert (h100.link_kind, h100.link_gb_per_s, h100.scale_up_domain) == ("scale_up", 450, 8)


def test_what_no_source_gave_stays_unknown() -> None:
    assert accelerator("MI350X").fp16_tflops is None
    assert accelerator("T4").peak_flops("fp8") is None
    assert not accelerator("T4").has_bf16
    assert accelerator("GH200").link_kind == "none"
    assert "hbm_bandwidth_gbps" in accelerator("H20-96GB").unverified


def test_an_unknown_name_gets_the_nearest_ones() -> None:
    with pytest.raises(CatalogError) as error:
        accelerator("H100")
    said = str(error.value)
    assert said.startswith('"H100" is no accelerator of the catalogue; nearest: ')
    assert "H100-SXM-80GB" in said
    with pytest.raises(CatalogError, match="nearest: RTX 4090"):
        accelerator("4090")


NEEDED = {"memory_gb": 80, "hbm_bandwidth_gbps": 3000, "dense_fp16_bf16_tflops": 900}


def test_a_custom_accelerator_from_the_needed_columns() -> None:
    mine = accelerator_from_columns(NEEDED, "mine")
    assert (mine.name, mine.memory_gib, mine.link_kind, mine.fp8_tflops) == ("mine", 80.0, "none", None)


@pytest.mark.parametrize(
    ("columns", "kind", "pcie"),
    [
        ({"pcie": "PCIe 4.0 x16"}, "pcie", 32.0),
        ({"pcie": "PCIe 5.0 x8"}, "pcie", 32.0),
        ({"pcie": "PCIe 5.0/6.0", "scale_up_domain_size": 8, "intra_node_gbps_per_direction": 900}, "scale_up", 64.0),
        ({"pcie_gbps_per_direction": 28.4}, "pcie", 28.4),
        ({"pcie": "NVLink-C2C"}, "none", None),
        ({"link_kind": "none", "pcie": "PCIe 4.0 x16"}, "none", 32.0),
    ],
)
def test_the_link_of_a_custom_accelerator(columns: dict[str, object], kind: str, pcie: float | None) -> None:
    mine = accelerator_from_columns({**NEEDED, **columns})
    assert (mine.link_kind, mine.pcie_gb_per_s) == (kind, pcie)


def test_a_whole_row_of_a_hardware_table_may_be_pasted() -> None:
    row = {
        **NEEDED,
        "accelerator": "X1",
        "vendor": "ACME",
        "tdp_w": 700,
        "dense_fp4_tflops": None,
        "price_usd_per_gpu_hour_low": 1.0,
        "price_source": "somewhere",
    }
    assert accelerator_from_columns(row, "mine").name == "X1"


def test_what_is_wrong_with_a_custom_accelerator_is_said() -> None:
    with pytest.raises(CatalogError) as error:
        accelerator_from_columns({"memory_gb": 0, "hbm_bandwith_gbps": 3000, "link_kind": "string"})
    assert str(error.value).splitlines() == [
        "hbm_bandwith_gbps: 3000 is for a column that isn't known; did you mean hbm_bandwidth_gbps?",
        "memory_gb: 0 is below 0.001; give a number of at least 0.001",
        "hbm_bandwidth_gbps: is missing; give a number of at least 0.001",
        "dense_fp16_bf16_tflops: is missing; give a number of at least 0.001",
        'link_kind: "string" is not accepted; give one of scale_up, bridge, pcie, none',
    ]
