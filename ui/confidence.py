"""How far a scenario's step times can be trusted, in words. No Streamlit here."""

from __future__ import annotations

from engine.machine import Evidence, replica_evidence, step_time_error
from engine.scenario import Scenario, describe
from ui.words import NBSP, plain

FAMILIES = {
    "hopper": "Hopper",
    "ampere": "Ampere",
    "blackwell": "Blackwell",
    "ada": "Ada",
    "blackwell_workstation": "Blackwell workstation",
    "ampere_workstation": "Ampere workstation",
    "turing": "Turing",
    "cdna3": "CDNA 3",
    "cdna2": "CDNA 2",
    "gaudi": "Gaudi",
    "tpu": "TPU",
    "intel_arc": "Intel Arc",
    "other": "other",
}
KINDS = {"dense": "dense models", "moe": "models with experts (MoE)"}
_OLDER = {
    "vllm_2024": "vLLM up to 0.6",
    "vllm_0_7": "vLLM 0.7",
    "vllm_2023": "vLLM of 2023",
    "vllm_2024_rocm": "vLLM of 2024 on AMD",
    "tensorrt_llm_2024": "TensorRT-LLM up to 0.16",
    "deepspeed_gaudi": "DeepSpeed on Gaudi",
    "lmdeploy": "LMDeploy",
    "llama_cpp": "llama.cpp",
}


def engine_word(engine: str) -> str:
    """What people call an engine, or its generation."""
    now = {choice.value: choice.word for choice in describe("performance.engine").choices}
    return now.get(engine) or _OLDER.get(engine, engine)


def class_word(found: Evidence) -> str:
    """The class that an error is of: accelerators, engine, kind of model."""
    return f"{FAMILIES.get(found.family, found.family)}, {engine_word(found.engine)}, {KINDS[found.kind]}"


def band(scenario: Scenario) -> str:
    """ "within 18 % for half, 35 % for nine in ten of published deployments ...", for a scenario with constants."""
    error = step_time_error(scenario)
    if error is None:
        return ""
    half, most = (_percent(share) for share in (error.median, error.p90))
    return f"within {half} for half, {most} for nine in ten of published deployments not used in the fit"


def status(scenario: Scenario) -> str:
    """For a caption: "step times calibrated (Hopper, vLLM, dense models): within ..."."""
    found = replica_evidence(scenario)
    if found is None:
        return "step times from a measured profile"
    own = _own_point(scenario)
    corrected = ", corrected by your measurement" if own else ""
    return f"step times {found.status} ({class_word(found)}){corrected}: {band(scenario)}"


def assumption(scenario: Scenario) -> str:
    """The same as an assumption of the page's list; Markdown."""
    found = replica_evidence(scenario)
    if found is None:
        return "**Step times:** from a measured profile; how far it carries is yours to know."
    corrected = " Your measurement corrects them." if _own_point(scenario) else ""
    off = _percent(found.median_ape / 100), _percent(found.p90_ape / 100)
    return (
        f"**Step times:** {found.status} for {plain(class_word(found))}. {_why(found, scenario)} Off by at most "
        f"{off[0]} for half, {off[1]} for nine in ten of {_deployments(found)} not used in the fit.{corrected}"
    )


def _why(found: Evidence, scenario: Scenario) -> str:
    device = plain(scenario.hardware.accelerator)
    if found.status == "calibrated":
        return f"Published measurements of {device} are in the fit."
    if found.status == "extrapolated":
        return f"Its family was measured, not this combination: the error is that of {found.basis}."
    return f"No measurement stands behind them: the error is that of {found.basis}."


def _deployments(found: Evidence) -> str:
    return f"{found.deployments:,} published deployment{'s' if found.deployments != 1 else ''}"


def _own_point(scenario: Scenario) -> bool:
    scale = getattr(scenario.performance, "scale", None)
    return scale is not None and (scale.tpot != 1.0 or scale.prefill != 1.0)


def _percent(share: float) -> str:
    return f"{share * 100:.0f}{NBSP}%"
