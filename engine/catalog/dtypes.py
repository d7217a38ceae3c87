"""Number formats: how many bytes a value takes, and what is kept at 16 bits beside it."""

from __future__ import annotations

SIXTEEN_BIT_BYTES = 2.0

# int4: one 16-bit scale and one 4-bit zero point for 128 weights (the usual group of AWQ and GPTQ).
# fp4: NVFP4, one 8-bit scale for 16 weights. fp8 and int8: scales per channel or block, below 0.1 %.
WEIGHT_BYTES = {
    "fp16": SIXTEEN_BIT_BYTES,
    "bf16": SIXTEEN_BIT_BYTES,
    "fp8": 1.0,
    "int8": 1.0,
    "fp4": 0.5 + 1 / 16,
    "int4": 0.5 + 2.5 / 128,
}
# Models published in MXFP4 have one 8-bit scale for 32 weights.
MXFP4_BYTES = 0.5 + 1 / 32

KV_BYTES = {"fp16": 2.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0}


def bits(dtype: str) -> int:
    """16, 8 or 4: the width of a format's values."""
    return int(dtype.lstrip("bfpint"))


def is_sixteen_bit(dtype: str) -> bool:
    """Whether weights of this format are not quantised."""
    return bits(dtype) == 16
