"""Accelerators: what one device can hold, read, compute and send."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, Self

from engine.catalog.columns import Column, check, from_text, read_table, unknown_name

LinkKind = Literal["scale_up", "bridge", "pcie", "none"]

_COLUMNS = {
    "accelerator": Column("text"),
    "vendor": Column("text"),
    "memory_gb": Column("number", needed=True, low=1e-3),
    "hbm_bandwidth_gbps": Column("number", needed=True, low=1e-3),
    "dense_fp16_bf16_tflops": Column("number", needed=True, low=1e-3),
    "dense_fp8_tflops": Column("number", low=1e-3),
    "dense_int8_tops": Column("number", low=1e-3),
    "dense_fp4_tflops": Column("number", low=1e-3),
    "bf16": Column("flag"),
    "link_kind": Column("text", choices=("scale_up", "bridge", "pcie", "none")),
    "intra_node_interconnect": Column("text"),
    "intra_node_gbps_per_direction": Column("number", low=1e-3),
    "scale_up_domain_size": Column("whole", low=1),
    "pcie_gbps_per_direction": Column("number", low=1e-3),
    "pcie": Column("text"),
    "tdp_w": Column("number", low=0),
    "source": Column("text"),
    "note": Column("text"),
    "unverified_fields": Column("text"),
}
# A user may paste a whole row of a hardware table; its price is the scenario's own field.
_IGNORED = (
    "price_usd_per_gpu_hour_low",
    "price_usd_per_gpu_hour_median",
    "price_usd_per_gpu_hour_high",
    "price_source",
)

_PCIE_GB_PER_S = {"3": 16.0, "4": 32.0, "5": 64.0, "6": 128.0}  # sixteen lanes, one direction


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator. None means that no source gave the figure.

    memory_gib in units of 2^30 bytes; bandwidths in 1e9 bytes/s, links per direction; rates in 1e12 dense operations/s
    (a multiply and an add are two). `link_kind`: `scale_up` joins `scale_up_domain` devices at full speed, `bridge`
    joins that few and PCIe the rest, `pcie` is PCIe alone, `none`: no link between devices is known.
    """

    name: str
    vendor: str
    memory_gib: float
    bandwidth_gb_per_s: float
    fp16_tflops: float | None
    fp8_tflops: float | None
    int8_tops: float | None
    fp4_tflops: float | None
    has_bf16: bool
    link_kind: LinkKind
    link: str
    link_gb_per_s: float | None
    scale_up_domain: int | None
    pcie_gb_per_s: float | None
    tdp_w: float | None
    source: str
    note: str
    unverified: str

    @property
    def memory_bytes(self) -> float:
        """Device memory in bytes: the "80 GB" of a data sheet are 80 * 2^30."""
        return self.memory_gib * 2.0**30

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Peak rate at which the device reads its own memory."""
        return self.bandwidth_gb_per_s * 1e9

    def peak_flops(self, dtype: str) -> float | None:
        """Peak dense operations per second with operands of this format; None where the device has no such units."""
        rate = {"fp8": self.fp8_tflops, "int8": self.int8_tops, "fp4": self.fp4_tflops, "int4": None}.get(
            dtype, self.fp16_tflops
        )
        return None if rate is None else rate * 1e12

    @classmethod
    def _of(cls, values: Mapping[str, Any], name: str) -> Self:
        domain, rate = values.get("scale_up_domain_size"), values.get("intra_node_gbps_per_direction")
        pcie = values.get("pcie_gbps_per_direction") or _pcie_rate(values.get("pcie", ""))
        kind: LinkKind = values.get("link_kind") or ("scale_up" if domain and rate else "pcie" if pcie else "none")
        return cls(
            name=name,
            vendor=values.get("vendor", ""),
            memory_gib=values["memory_gb"],
            bandwidth_gb_per_s=values["hbm_bandwidth_gbps"],
            fp16_tflops=values.get("dense_fp16_bf16_tflops"),
            fp8_tflops=values.get("dense_fp8_tflops"),
            int8_tops=values.get("dense_int8_tops"),
            fp4_tflops=values.get("dense_fp4_tflops"),
            has_bf16=values.get("bf16", True),
            link_kind=kind,
            link=values.get("intra_node_interconnect", ""),
            link_gb_per_s=rate,
            scale_up_domain=domain,
            pcie_gb_per_s=pcie,
            tdp_w=values.get("tdp_w"),
            source=values.get("source", ""),
            note=values.get("note", ""),
            unverified=values.get("unverified_fields", ""),
        )


def _pcie_rate(text: str) -> float | None:
    """GB/s per direction of "PCIe 4.0 x16"; None when the text names no generation that is known."""
    found = re.search(r"PCIe (\d)\.\d(?:/\d\.\d)?(?: x(\d+))?", text)
    if found is None or found[1] not in _PCIE_GB_PER_S:
        return None
    return _PCIE_GB_PER_S[found[1]] * int(found[2] or 16) / 16


@cache
def accelerators() -> Mapping[str, Accelerator]:
    """Every accelerator of the catalogue by name, in the table's order."""
    rows = [from_text(row, _COLUMNS) for row in read_table("accelerators.csv")]
    return MappingProxyType({row["accelerator"]: Accelerator._of(row, row["accelerator"]) for row in rows})


def accelerator(name: str) -> Accelerator:
    """The accelerator of this name; CatalogError with the nearest names when there is none."""
    known = accelerators()
    if name not in known:
        raise unknown_name("accelerator", name, known)
    return known[name]


def accelerator_from_columns(row: Mapping[str, Any], name: str = "custom") -> Accelerator:
    """An accelerator from a row's columns (names and units of accelerators.csv); CatalogError names the bad ones.

    Needed: memory_gb, hbm_bandwidth_gbps, dense_fp16_bf16_tflops. A row's own `accelerator` wins over `name`.
    """
    values = check(row, _COLUMNS, _IGNORED)
    return Accelerator._of(values, values.get("accelerator", name))
