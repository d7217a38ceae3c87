"""Accelerators, models and prices: facts with their sources, and what follows from a model's shape."""

from engine.catalog.accelerators import Accelerator, accelerator, accelerator_from_columns, accelerators
from engine.catalog.dtypes import KV_BYTES, WEIGHT_BYTES, bits, is_sixteen_bit
from engine.catalog.errors import CatalogError, Fault
from engine.catalog.models import Mla, Model, Moe, model, model_from_columns, models
from engine.catalog.parameters import (
    Parts,
    active_parameters,
    active_share,
    kv_bytes_per_token,
    parameters,
    part_dtype,
    weight_bytes,
)
from engine.catalog.prices import PriceRange, Quote, price, quotes

__all__ = [
    "KV_BYTES",
    "WEIGHT_BYTES",
    "Accelerator",
    "CatalogError",
    "Fault",
    "Mla",
    "Model",
    "Moe",
    "Parts",
    "PriceRange",
    "Quote",
    "accelerator",
    "accelerator_from_columns",
    "accelerators",
    "active_parameters",
    "active_share",
    "bits",
    "is_sixteen_bit",
    "kv_bytes_per_token",
    "model",
    "model_from_columns",
    "models",
    "parameters",
    "part_dtype",
    "price",
    "quotes",
    "weight_bytes",
]
