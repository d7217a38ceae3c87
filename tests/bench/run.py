"""``make bench``: how fast and how big, written to bench.json.

Every case runs in a process of its own. ``cpu_s`` is CPU time of one core from scenario to summary, start-up excluded;
``yardstick_s`` is a fixed NumPy loop timed in the same process just before, so that figures from different machines and
busy hours can be compared.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(os.environ.get("HEADROOM_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
PROFILE = {"kind": "linear", "overhead_s": 0.002, "weights_s": 0.010, "token_s": 0.00005, "kv_token_s": 2e-8}
REPEATS = 3
"""The median of so many runs is reported."""


def workload(replicas: int, seeds: int) -> dict[str, Any]:
    """Workload W: 1,024 prompt and 128 output tokens, Poisson 6/s a replica, 2,500 requests a replica."""
    return {
        "traffic": {"rate_rps": 6.0 * replicas, "classes": [one_class(constant(1024), constant(128))]},
        "performance": PROFILE,
        "batching": {"max_num_seqs": 128, "max_num_batched_tokens": 2048, "kv_capacity_tokens": 400_000},
        "fleet": {"replicas": replicas},
        "run": {"horizon_s": 2500 / 6.0, "warmup_s": 0, "seeds": seeds},
    }


def with_deadline() -> dict[str, Any]:
    """``monte_carlo`` with clients who give up, late enough that hardly anybody does."""
    scenario = workload(4, 64)
    scenario["traffic"]["client"] = {"timeout_s": 30.0}
    return scenario


def with_classes() -> dict[str, Any]:
    """``monte_carlo`` with two urgencies."""
    scenario = workload(4, 64)
    (only,) = scenario["traffic"]["classes"]
    scenario["traffic"]["classes"] = [only, {**only, "name": "later", "priority": 1}]
    return scenario


def with_cap() -> dict[str, Any]:
    """``monte_carlo`` with a limit on what a replica takes."""
    return {**workload(4, 64), "admission": {"max_outstanding": 64}}


def fleet_jsq() -> dict[str, Any]:
    """Workload W on eight replicas behind a router that looks at their load every 0.1 s."""
    scenario = workload(8, 8)
    scenario["fleet"]["routing"] = {"policy": "least_outstanding"}
    return scenario


def autoscale_hour() -> dict[str, Any]:
    """An hour of workload W's requests, 3/s a replica, that needs 2 to 12 replicas; Kubernetes' HPA on the rate."""
    scenario = workload(1, 8)
    points = [[0.0, 1.0], [600.0, 2.0], [1200.0, 4.0], [2100.0, 6.0], [3000.0, 2.0]]
    scenario["traffic"] |= {"rate_rps": 6.0, "shape": {"kind": "steps", "points": points}}
    scenario["fleet"]["replicas"] = 2
    scenario["autoscaler"] = {"policy": "hpa", "metric": "rate", "target": 3.0, "min_replicas": 2, "max_replicas": 12}
    scenario["run"] = {"horizon_s": 3600.0, "warmup_s": 0, "seeds": 8}
    return scenario


def retry_storm() -> dict[str, Any]:
    """The preset: impatient clients who try again, ignored by the servers."""
    from engine.scenario import preset

    return preset("retry-storm").scenario.to_dict()


def constant(value: int) -> dict[str, Any]:
    """A length that never varies, tokens."""
    return {"dist": "constant", "value": value}


def one_class(prompt: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
    """The only class of a benchmark's traffic."""
    return {"name": "all", "prompt_tokens": prompt, "output_tokens": output}


def kv_bound() -> dict[str, Any]:
    """Long conversations in little KV, arrivals at 0.95 of what a replica can complete."""
    from engine import Scenario
    from engine.machine import replica_model
    from engine.study import capacity_rps

    scenario = workload(1, 64)
    prompt = {"dist": "lognormal", "mean": 2000, "cv": 1.0, "max": 16000}
    scenario["traffic"]["classes"] = [one_class(prompt, {"dist": "lognormal", "mean": 400, "cv": 0.8, "max": 4000})]
    scenario["batching"]["kv_capacity_tokens"] = 60_000
    s = Scenario.from_dict(scenario)
    capacity = capacity_rps(s, replica_model(s))
    assert capacity is not None
    scenario["traffic"]["rate_rps"] = 0.95 * capacity
    scenario["run"]["horizon_s"] = 1000 / (0.95 * capacity)
    return scenario


def azure_conv() -> dict[str, Any]:
    """The whole real trace, Llama-3.1-8B at 16 bit on two A100-80."""
    return {
        "traffic": {"process": "trace", "trace": {"source": str(DATA / "traces" / "AzureLLMInferenceTrace_conv.csv")}},
        "model": {"name": "Llama-3.1-8B", "weight_dtype": "bf16", "kv_dtype": "bf16"},
        "hardware": {"accelerator": "A100-SXM4-80GB"},
        "parallelism": {"tp": 1},
        "fleet": {"replicas": 2},
        "run": {"horizon_s": None, "warmup_s": 0, "seeds": 1},
    }


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "one_run": lambda: workload(4, 1),
    "monte_carlo": lambda: workload(4, 64),
    "sweep": lambda: workload(1, 1024),
    "kv_bound": kv_bound,
    "azure_conv": azure_conv,
    "deadline": with_deadline,
    "two_classes": with_classes,
    "cap": with_cap,
    "fleet_jsq": fleet_jsq,
    "autoscale_hour": autoscale_hour,
    "retry_storm": retry_storm,
}


def yardstick() -> float:
    """CPU seconds of a fixed loop of small NumPy calls and one large sort."""
    rng = np.random.default_rng(1)
    small, large = rng.random(64), rng.random(1_000_000)
    started = time.process_time()
    for _ in range(100_000):
        np.add(small, 1.0, out=small)
        small.take([1, 5, 9])
    np.sort(large)
    return time.process_time() - started


def measure(case: str) -> dict[str, Any]:
    """Run one case in this process."""
    from engine import Scenario, read_trace, simulate
    from engine.study import forget_capacities

    scenario = Scenario.from_dict(CASES[case]())
    simulate(Scenario.from_dict({"run": {"horizon_s": 5, "warmup_s": 0, "seeds": 1}})).summary()  # imports, first calls
    yard = yardstick()
    times, requests = [], 0
    for _ in range(REPEATS):
        if case != "kv_bound":  # its arrivals follow from the capacity, which is known before
            forget_capacities()
        started = time.process_time()
        source = scenario.traffic.trace.source
        result = simulate(scenario, None if source is None else read_trace(Path(source)))
        summary = result.summary()
        times.append(time.process_time() - started)
        requests = int(summary["run"]["simulated_requests"])  # type: ignore[index,call-overload]
    cpu = float(np.median(times))
    return {
        "case": case,
        "requests": requests,
        "cpu_s": round(cpu, 3),
        "requests_per_cpu_s": round(requests / cpu),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "yardstick_s": round(yard, 3),
    }


def slider() -> dict[str, Any]:
    """From a slider's move on ``monday`` to the changed chart in Chromium, median over ten moves, wall seconds."""
    from tests.e2e.conftest import serving
    from tests.e2e.measure_slider import measure as watch

    with serving() as address:
        seconds = watch(f"{address}/?p=monday")
    row = dict.fromkeys(("requests", "cpu_s", "requests_per_cpu_s", "peak_mb"))
    return {"case": "slider_monday", **row, "yardstick_s": round(yardstick(), 3), "wall_s": float(np.median(seconds))}


def main() -> None:
    """Run the cases named on the command line, or all of them; print and write bench.json."""
    if len(sys.argv) == 3 and sys.argv[1] == "--case":
        print(json.dumps(measure(sys.argv[2])))
        return
    rows = []
    for case in sys.argv[1:] or [*CASES, "slider_monday"]:
        if case == "slider_monday":
            rows.append(slider())
            print(rows[-1])
            continue
        if case == "azure_conv" and not DATA.exists():
            print(f"azure_conv: skipped, no data at {DATA}; set HEADROOM_DATA", file=sys.stderr)
            continue
        command = [sys.executable, "-m", "tests.bench.run", "--case", case]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(rows[-1])
    Path("bench.json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
