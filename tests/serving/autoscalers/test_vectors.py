"""The controllers' own test cases, through the functions of the simulation and through the command."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from engine.__main__ import main
from engine.scenario import ScenarioError
from engine.serving import answer_vectors

TRUTH = Path(__file__).resolve().parents[2] / "truth"
GIVEN = TRUTH / "autoscaler_vectors.csv"
"""The project's own table of vectors, as it is handed out."""
UPSTREAM = TRUTH / "autoscaler_upstream.csv"
"""More cases of the same upstream tests, in the same form."""


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def table(*cases: tuple[str, Any]) -> bytes:
    quoted = (json.dumps(inputs).replace('"', '""') for _, inputs in cases)
    lines = [f'{algorithm},"{text}"' for (algorithm, _), text in zip(cases, quoted, strict=True)]
    return "\n".join(["algorithm,inputs_json", *lines]).encode()


def answer(algorithm: str, **inputs: Any) -> Any:
    return answer_vectors(table((algorithm, inputs)))[0]


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, id=row["source_path"].split("::")[-1]) for path in (GIVEN, UPSTREAM) for row in rows(path)],
)
def test_each(row: dict[str, str]) -> None:
    assert answer(row["algorithm"], **json.loads(row["inputs_json"])) == json.loads(row["expected"])


@pytest.mark.parametrize(("path", "count"), [(GIVEN, 89), (UPSTREAM, 35)])
def test_the_command(path: Path, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["autoscale", str(path)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert json.loads(said.out) == [json.loads(row["expected"]) for row in rows(path)]
    assert len(rows(path)) == count


def test_nothing_but_the_inputs_is_needed() -> None:
    cases = [(row["algorithm"], json.loads(row["inputs_json"])) for row in rows(GIVEN)]
    assert answer_vectors(table(*cases)) == [json.loads(row["expected"]) for row in rows(GIVEN)]


class TestHpa:
    """Corners of Kubernetes' rules, by hand from replica_calculator.go and horizontal.go."""

    def test_a_tolerance_includes_its_ends(self) -> None:
        assert answer("k8s-hpa-v2", kind="pod", current=10, levels=[1100] * 10, target=1000) == {"replicas": 10}
        assert answer("k8s-hpa-v2", kind="pod", current=10, levels=[900] * 10, target=1000) == {"replicas": 10}
        assert answer("k8s-hpa-v2", kind="pod", current=10, levels=[1101] * 10, target=1000) == {"replicas": 12}
        assert answer("k8s-hpa-v2", kind="pod", current=10, levels=[899] * 10, target=1000) == {"replicas": 9}

    def test_averages_and_percentages_are_cut(self) -> None:
        # mean 1333.67 is 1333, so a target of 1333 is met; 66.67 % is 66 %
        assert (
            answer("k8s-hpa-v2", kind="pod", current=3, levels=[2000, 2000, 1], target=1333, tolerance=0)["replicas"]
            == 3
        )
        cut = answer("k8s-hpa-v2", kind="resource", current=1, levels=[2], requests=[3], target=66, tolerance=0)
        assert cut == {"replicas": 1}

    def test_missing_pods_use_their_request_or_a_higher_target(self) -> None:
        # one pod at 150 % of a target of 200 %, one unknown, taken to be at 200 %: 175 / 200 of two is two
        pods = {"kind": "resource", "current": 2, "requests": [1000, 1000], "levels": [1500], "target": 200}
        assert answer("k8s-hpa-v2", **pods) == {"replicas": 2}

    def test_unready_pods_hold_back_what_is_nearly_met_with_them(self) -> None:
        # two ready pods with 4.2 times their target are 1.05 times the target of all eight
        pods = {"kind": "pod", "current": 8, "phase": ["Running"] * 2 + ["Pending"] * 6, "levels": [4200, 4200]}
        assert answer("k8s-hpa-v2", **pods, target=1000) == {"replicas": 8}
        assert answer("k8s-hpa-v2", **pods, target=1000, tolerance=0.01) == {"replicas": 9}

    def test_percentages_are_rounded_in_favour_of_the_change(self) -> None:
        half = {"cur": 3, "pol": [["Percent", 50]]}
        assert answer("k8s-hpa-v2 rate-limit", **half, des=9) == {"replicas": 5}
        assert answer("k8s-hpa-v2 rate-limit", **half, des=1, dirn="down") == {"replicas": 1}

    def test_no_replica_is_ready(self) -> None:
        none = [False, False, False]
        assert answer("k8s-hpa-v2", kind="object", current=3, ready=none, levels=[50], target=10) == {"replicas": 0}
        assert answer("k8s-hpa-v2", kind="object_per_pod", current=3, ready=none, levels=[50], target=10) == {
            "replicas": 5
        }
        unready = {"kind": "resource", "current": 3, "ready": none, "requests": [9] * 3, "levels": [9] * 3}
        assert answer("k8s-hpa-v2", **unready, target=10) == {"replicas": 3}

    def test_from_zero(self) -> None:
        for kind in ("object", "external", "object_per_pod", "external_per_pod"):
            assert answer("k8s-hpa-v2", kind=kind, current=0, levels=[25], target=10) == {"replicas": 3}
            assert answer("k8s-hpa-v2", kind=kind, current=0, levels=[0], target=10) == {"replicas": 0}

    def test_external_metrics_are_summed(self) -> None:
        assert answer("k8s-hpa-v2", kind="external_per_pod", current=1, levels=[20, 25], target=10) == {"replicas": 5}

    def test_the_highest_metric_wins_and_a_failed_one_blocks_the_way_down(self) -> None:
        low, high, failed = ({"kind": "external_per_pod", "levels": levels} for levels in ([20], [90], []))
        for metrics, replicas in (([low, high], 9), ([low], 2), ([low, failed], 5), ([high, failed], 9), ([failed], 5)):
            assert answer("k8s-hpa-v2", current=5, target=10, metrics=metrics) == {"replicas": replicas}

    def test_an_age_of_the_whole_window_is_outside(self) -> None:
        old = {"current": 9, "desired": 2, "down_window_s": 60}
        assert answer("k8s-hpa-v2 stabilization", **old, recommendations_value_age_s=[[5, 60]]) == {"replicas": 2}
        assert answer("k8s-hpa-v2 stabilization", **old, recommendations_value_age_s=[[5, 59]]) == {"replicas": 5}

    @pytest.mark.parametrize(("select", "up", "down"), [("Max", 20, 4), ("Min", 12, 8), ("Disabled", 10, 10)])
    def test_which_policy_wins(self, select: str, up: int, down: int) -> None:
        policies = [["Pods", 2], ["Percent", 60 if select != "Max" else 100]]
        found = answer("k8s-hpa-v2 rate-limit", cur=10, des=99, pol=policies, sel=select)
        assert found == {"replicas": up}
        policies[1][1] = 60
        found = answer("k8s-hpa-v2 rate-limit", cur=10, des=1, pol=policies, sel=select, dirn="down")
        assert found == {"replicas": down}

    def test_a_change_exactly_a_period_ago_is_over(self) -> None:
        # one pod every 30 s: ticks at 0, 30, 60
        found = answer(
            "k8s-hpa-v2 behavior", start=1, mn=1, mx=9, up=[["Pods", 1, 30]], desired_each_15s=[9, 9, 9, 9, 9]
        )
        assert found == [2, 2, 3, 3, 4]


class TestOthers:
    def test_knative_without_a_spec_has_the_defaults(self) -> None:
        steps = [{"t": 0, "ready": 2, "stable": 71, "panic": 71}, {"t": 2, "ready": 9, "stable": 0, "panic": 0}]
        assert answer("knative-kpa", steps=steps) == [2, 4]

    def test_knative_in_panic_from_the_start(self) -> None:
        spec = {"target": 10, "panic_time": 0, "max_panic": 4}
        quiet = [{"t": t, "ready": 4, "stable": 0, "panic": 0} for t in (2, 60, 62)]
        assert answer("knative-kpa", spec=spec, steps=quiet) == [4, 4, 2]

    def test_knative_activation_scale(self) -> None:
        steps = [{"t": 0, "ready": 1, "stable": x, "panic": x} for x in (0, 1, 45)]
        assert answer("knative-kpa", spec={"target": 10, "activation": 3, "panic": 9}, steps=steps) == [0, 3, 5]

    def test_ray_shrinks_by_one_at_least(self) -> None:
        assert answer("ray-serve desired", running=5, total_requests=8, down=0.1)["desired"] == 4

    def test_ray_with_nothing_running(self) -> None:
        assert answer("ray-serve desired", running=0, total_requests=0) == {"desired": 0, "cold_start": False}
        found = answer("ray-serve desired", running=0, total_requests=1, target_num_replicas=3)
        assert found == {"desired": 3, "cold_start": True}

    def test_aibrix_has_defaults(self) -> None:
        assert answer("aibrix-apa", current=4, use_per_pod=100, target=10) == {"replicas": 8}
        assert answer("aibrix-apa", current=5, use_per_pod=0, target=10) == {"replicas": 2}

    def test_keda_before_it_falls_back(self) -> None:
        case = {"current": 3, "fallback_replicas": 6, "failure_threshold": 3}
        assert answer("keda fallback", **case, failures=3) == {"metric_over_target": None}
        assert answer("keda fallback", **case, failures=4) == {"metric_over_target": 6}
        higher = answer("keda fallback", **case, behavior="currentReplicasIfLower")
        assert higher == {"metric_over_target": 3}


ROW = "algorithm,inputs_json\naibrix-apa,"
BAD: list[tuple[bytes, str]] = [
    (b"", "header: has no header; begin with algorithm,inputs_json"),
    (b"a,b\n1,2\n", 'header: "a,b" has not exactly one column algorithm; begin with algorithm,inputs_json'),
    (b"\xff", "table: is not UTF-8 text; save it as UTF-8"),
    (b'algorithm,inputs_json\n"open', "line 2: is not CSV: unexpected end of data; quote each JSON cell"),
    (f'{ROW}{{"a": 1, "b": 2}}'.encode(), "row 1: has 3 cells, the header 2; quote each JSON cell"),
    (
        b"algorithm,inputs_json\naibrix,{}",
        'row 1, algorithm: "aibrix" is no algorithm that is known; give k8s-hpa-v2, ',
    ),
    (f"{ROW}{{".encode(), 'row 1, inputs_json: "{" is not JSON at character 2'),
    (f"{ROW}{'[' * 100_000}".encode(), "row 1, inputs_json: is nested too deeply"),
    (f"{ROW}[]".encode(), "row 1, inputs_json: [] is not an object; give {...}"),
    (f"{ROW}{{}}".encode(), "row 1, current: is missing; give it; the object is empty"),
    (f'{ROW}"{{""current"": NaN}}"'.encode(), "row 1, inputs_json: NaN is not JSON; give a finite number, or null"),
]
INPUTS: list[tuple[str, dict[str, Any], str]] = [
    ("aibrix-apa", {"current": 2, "use_per_pod": 1}, "target: is missing; give it beside current, use_per_pod"),
    ("aibrix-apa", {"current": None}, "current: is null; give it beside current"),
    ("aibrix-apa", {"current": 1.5}, "current: 1.5 is no number of replicas; give a whole number from 0 to 1,000,000"),
    ("aibrix-apa", {"current": -1}, "current: -1 is no number of replicas"),
    ("aibrix-apa", {"current": True}, "current: true is not a number; give a number"),
    ("aibrix-apa", {"current": 1, "use_per_pod": 1e300}, "use_per_pod: 1e+300 is too large; give a number up to 1e+15"),
    ("aibrix-apa", {"current": 1, "use_per_pod": 1, "target": 0}, "target: 0 is not above 0; give a number above 0"),
    (
        "aibrix-apa",
        {"current": 1, "use_per_pod": 1, "target": 1e-99},
        "target: 1e-99 is too small; give at least 1e-0",
    ),
    (
        "k8s-hpa-v2",
        {"current": 1, "kind": "pods"},
        'kind: "pods" is not one of the choices; give resource, pod',
    ),
    ("k8s-hpa-v2", {"current": 1, "kind": "pod", "levels": 3}, "levels: 3 is not a list; give a list: [...]"),
    ("k8s-hpa-v2", {"current": 1, "kind": "pod", "levels": ["a"]}, 'levels[0]: "a" is not a number; give a number'),
    (
        "k8s-hpa-v2 rate-limit",
        {"pol": [["Pods"]]},
        'pol[0]: ["Pods"] has the wrong shape; give [type, value',
    ),
    ("k8s-hpa-v2 rate-limit", {"pol": [["Nodes", 1]]}, 'pol[0], type: "Nodes" is not one of the choices; give Pods,'),
    ("k8s-hpa-v2 rate-limit", {"mn": 9, "mx": 3}, "mn: 9 is above mx (3); give mn at most mx"),
    ("knative-kpa", {"spec": {"reachable": 1}}, "spec, reachable: 1 is neither true nor false; give true or false"),
    ("knative-kpa", {"steps": [{"t": 0, "ready": 1, "stable": 2}]}, "steps[0], panic: is missing; give it beside t, "),
    (
        "ray-serve delay",
        {"start": 1, "steps": [[0, 1, 2]]},
        "steps[0]: [0, 1, 2] has the wrong shape; give [t, ",
    ),
]


class TestTrouble:
    @pytest.mark.parametrize(("data", "complaint"), BAD, ids=[complaint for _, complaint in BAD])
    def test_tables(self, data: bytes, complaint: str) -> None:
        with pytest.raises(ScenarioError) as raised:
            answer_vectors(data)
        assert str(raised.value).startswith(complaint)
        assert len(str(raised.value).splitlines()) == 1

    @pytest.mark.parametrize(("algorithm", "inputs", "complaint"), INPUTS, ids=[text for *_, text in INPUTS])
    def test_inputs(self, algorithm: str, inputs: dict[str, Any], complaint: str) -> None:
        good = ("aibrix-apa", {"current": 1, "use_per_pod": 1, "target": 1})
        with pytest.raises(ScenarioError) as raised:
            answer_vectors(table(good, (algorithm, inputs)))
        assert str(raised.value).startswith(f"row 2, {complaint}")

    def test_the_command(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "bad.csv"
        path.write_bytes(table(("aibrix-apa", {"current": "two"})))
        assert main(["autoscale", str(path)]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err == 'row 1, current: "two" is not a number; give a number\n'
        assert main(["autoscale", str(tmp_path / "absent.csv")]) == 2
        assert capsys.readouterr().err == f"{tmp_path / 'absent.csv'}: No such file or directory\n"

    def test_an_empty_table(self) -> None:
        assert answer_vectors(b"\xef\xbb\xbfalgorithm,inputs_json\r\n\r\n") == []
