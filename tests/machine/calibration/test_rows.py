"""Published rows become points as the mapping says, or are left out with a reason.

Rows are from the sources that their `source_group` names (files and commits: measurements_train.csv).
"""

from __future__ import annotations

from typing import Any

import pytest

from engine.catalog import accelerator, model
from engine.machine.calibration.names import find_accelerator, find_engine, find_kv_dtype, find_model, find_weight_dtype
from engine.machine.calibration.rows import LeftOut, point_of
from tests.machine.calibration.conftest import RowOf

TRT_DOCS = {
    "source_group": "TensorRT-LLM docs",
    "engine": "TensorRT-LLM",
    "load_kind": "offline_max",
    "concurrency": "",
}
ARGONNE = {
    "source_group": "Argonne LLM-Inference-Bench",
    "engine": "vLLM",
    "date": "2024 (paper arXiv 2411.00136; repo 2025-07-18)",
    "dtype_weights": "fp16 (repo command lines; not per row)",
    "load_kind": "static_batch",
    "concurrency": "",
    "batch": 16.0,
    "input_len": 128.0,
    "output_len": 128.0,
}


def test_closed_loop_tpot_in_seconds_with_inferencemax_lengths(row_of: RowOf) -> None:
    point = point_of(row_of())
    assert (point.metric, point.load, point.value, point.seqs) == ("tpot", "closed_loop", 0.016, 16)
    assert (point.prompt, point.output) == pytest.approx((921.6, 921.6))
    assert (point.model.name, point.accelerator.name, point.engine) == ("Llama-3.1-70B", "H100-SXM-80GB", "vllm")
    d = point.deployment
    assert (d.weight_dtype, d.kv_dtype, d.tp, d.ep, d.attention_dp) == ("fp8", "bf16", 2, 1, False)
    assert point.deployment_key == ("InferenceMAX/InferenceX", "Llama-3.1-70B", "H100-SXM-80GB", "vLLM", 2)


def test_ttft_only_with_few_requests_at_once(row_of: RowOf) -> None:
    assert point_of(row_of(metric="ttft_ms_unspec", concurrency=4.0, value=120.0)).value == 0.12
    with pytest.raises(LeftOut, match="TTFT above 4 requests at once"):
        point_of(row_of(metric="ttft_ms_unspec", concurrency=8.0))


def test_offline_rates_of_the_whole_group(row_of: RowOf) -> None:
    total = point_of(row_of(**TRT_DOCS, engine_version="0.17", metric="output_tok_s_total", value=6645.12))
    assert (total.metric, total.value, total.seqs) == ("output_tok_s", 6645.12, 2048)
    # perf-overview v1.1: DeepSeek-R1-0528 with attention data-parallel and experts over four B200.
    deepseek = {"model": "DeepSeek-R1-0528", "gpu": "B200-SXM-180GB", "dtype_weights": "fp4", "tp": 1.0, "n_gpus": 4}
    spread = {
        "ep": 4.0,
        "dp_attention": 4.0,
        "metric": "output_tok_s_per_gpu",
        "value": 4000.0,
        "engine_version": "1.1+",
    }
    point = point_of(row_of(**TRT_DOCS, **deepseek, **spread))
    d = point.deployment
    assert (d.tp, d.ep, d.attention_dp, point.value) == (4, 4, True, 16_000.0)
    assert (point.model.name, point.seqs) == ("DeepSeek-R1", 4 * 2048)
    requests = point_of(row_of(**TRT_DOCS, metric="req_s", value=3.0, output_len=100.0))
    assert requests.value == 300.0


def test_a_static_batch_has_a_latency_whichever_way_it_is_published(row_of: RowOf) -> None:
    latency = point_of(row_of(**ARGONNE, metric="batch_latency_s", value=2.0))
    rate = point_of(row_of(**ARGONNE, metric="total_tok_s", value=16 * 256 / 2.0))
    assert latency.metric == rate.metric == "batch_latency"
    assert (latency.value, rate.value) == (2.0, 2.0)
    assert latency.engine == "vllm_2024"


def test_a_lone_request_of_a_script(row_of: RowOf) -> None:
    # XiongjieDai/GPU-Benchmarks-on-LLM-Inference: Llama 3 8B, fp16, average generation speed.
    lone = {"source_group": "XiongjieDai llama.cpp", "engine": "llama.cpp", "load_kind": "static_batch", "batch": 1.0}
    rest = {"metric": "decode_tok_s_bs1", "value": 50.0, "input_len": "", "output_len": 1024.0, "tp": 1.0, "n_gpus": 1}
    point = point_of(row_of(**lone, **rest, model="Llama-3-8B", dtype_weights="fp16", concurrency=""))
    assert (point.metric, point.value, point.seqs, point.prompt) == ("tpot", 0.02, 1, 1)
    assert (point.engine, point.deployment.weight_dtype) == ("llama_cpp", "fp16")


def test_loops_in_step_are_those_of_engines_that_read_prompts_first(row_of: RowOf) -> None:
    same = {"source_group": "aiconfigurator gap-analysis", "engine": "SGLang", "engine_version": "0.5.1.post1"}
    assert point_of(row_of(**same)).waves
    assert not point_of(row_of(**same | {"engine": "TensorRT-LLM"})).waves
    assert not point_of(row_of(engine="SGLang")).waves, "lengths of InferenceMAX vary"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"source_group": "MLPerf Inference v5.1", "load_kind": "server_sla"}, "MLPerf: no tp, batch or input length"),
        ({"load_kind": "open_loop_rate"}, "open-loop or finite burst: needs the event engine"),
        (
            {"load_kind": "offline_max", "metric": "output_tok_s_total", "notes": "whole set handed over at once"},
            "open-loop or finite burst: needs the event engine",
        ),
        ({"metric": "tpot_ms_p99"}, "tail percentile: needs the event engine"),
        ({"metric": "joules"}, "metric without a mapping"),
        ({"load_kind": "unheard of"}, "load kind without a mapping"),
        ({"gpu": "RTX 4080"}, "accelerator not in the catalogue"),
        ({"model": "BLOOM-176B"}, "model not in the catalogue"),
        ({"pp": 2.0}, "pipeline parallel: not part of the fit"),
        ({"value": ""}, "no value above 0"),
        ({"value": 0.0}, "no value above 0"),
        ({"input_len": ""}, "no prompt or answer length"),
        ({"concurrency": ""}, "no batch or concurrency"),
        ({"tp": 28.0, "n_gpus": 28, "gpu": "GB200"}, "model can't be split over so many devices"),
        ({"tp": 64.0, "n_gpus": 64, "gpu": "GB200", "model": "DeepSeek-R1"}, "disaggregated"),
        ({"dtype_weights": "ternary"}, "format of the weights isn't known"),
        ({"gpu": "H100-NVL-94GB"}, "accelerator without an arithmetic rate"),
    ],
)
def test_reasons_for_leaving_a_row_out(row_of: RowOf, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(LeftOut) as caught:
        point_of(row_of(**changes))
    assert str(caught.value).startswith(reason)


@pytest.mark.parametrize(
    ("text", "name", "dtype"),
    [
        ("not stated (bf16 likely)", "Qwen3-32B", "bf16"),
        ("fp16 (repo command lines; not per row)", "Qwen3-32B", "fp16"),
        ("w4a16", "Qwen3-32B", "int4"),
        ("q4_k_m", "Llama-3-8B", "int4"),
        ("NVFP4", "Llama-3.1-70B", "fp4"),
        ("INT8", "Llama-3.1-70B", "int8"),
        ("", "Qwen3-32B", "bf16"),
        ("nan", "DeepSeek-R1", "fp8"),
        ("mixed", "DeepSeek-R1", "fp8"),
        ("fp8", "gpt-oss-120b", "fp4"),  # published in MXFP4, whatever the table's word for its arithmetic
        ("ternary", "Qwen3-32B", None),
    ],
)
def test_formats_of_weights(text: str, name: str, dtype: str | None) -> None:
    assert find_weight_dtype(text, model(name)) == dtype


def test_kv_is_at_8_bits_only_where_that_is_stated() -> None:
    assert find_kv_dtype("fp8 (assumed: ModelOpt checkpoints; not stated per row)", "fp4") == "fp8"
    assert find_kv_dtype("not stated", "fp8") == "bf16"
    assert find_kv_dtype("", "fp16") == "fp16"


def test_names() -> None:
    found = find_model("meta-llama/Llama-3.1-70B-Instruct")
    assert found is not None
    assert found.name == "Llama-3.1-70B"
    assert find_model("deepseek-ai/DeepSeek-R1-0528") == model("DeepSeek-R1")
    assert find_model("GPT-9") is None
    assert find_accelerator("NVIDIA H200") == accelerator("H200-SXM-141GB")
    assert find_accelerator("A100 (40 or 80GB: not stated per row)") == accelerator("A100-SXM4-40GB")
    assert find_accelerator("Abacus") is None
    h100, mi300x = accelerator("H100-SXM-80GB"), accelerator("MI300X")
    assert find_engine("vLLM", "0.12.0", "", h100) == "vllm"
    assert find_engine("vLLM", "0.7.3", "2026-04-15", h100) == "vllm_0_7"
    assert find_engine("vLLM", "", "2024", h100) == "vllm_2024"
    assert find_engine("vLLM", "0.6.1", "2024", mi300x) == "vllm_2024_rocm"
    assert find_engine("TensorRT-LLM + Triton", "0.14.0", "", h100) == "tensorrt_llm_2024"
    assert find_engine("SGLang", "0.5.9", "", mi300x) == "sglang"
    assert find_engine("", "", "", h100) == find_engine("nobody's", "1", "2026", h100) == "vllm"
