"""What can be split over what, and over which link."""

import pytest

from engine.catalog import accelerator, model
from engine.machine.parallel import kv_shards, link, split_sizes, tensor_problems


@pytest.mark.parametrize(
    ("name", "tp", "rate", "pcie"),
    [
        ("H100-SXM-80GB", 8, 450e9, False),
        ("GB200", 72, 900e9, False),
        ("RTX A6000", 2, 56.25e9, False),  # a bridge joins two
        ("RTX A6000", 4, 32e9, True),
        ("RTX 3090", 2, 32e9, True),  # the bridge's rate is not known
        ("L40S", 8, 32e9, True),
        ("Intel Arc Pro B60", 2, 28.4e9, True),
    ],
)
def test_the_link_of_a_group(name: str, tp: int, rate: float, pcie: bool) -> None:
    found = link(accelerator(name), tp)
    assert found is not None
    assert (found.bytes_per_s, found.pcie) == (rate, pcie)


@pytest.mark.parametrize(("name", "tp"), [("H100-SXM-80GB", 16), ("GH200", 2), ("L40S", 16), ("Inferentia2", 2)])
def test_no_link_where_none_is_known(name: str, tp: int) -> None:
    assert link(accelerator(name), tp) is None


@pytest.mark.parametrize(
    ("model_name", "device", "tp", "said"),
    [
        ("Llama-3.1-70B", "H100-SXM-80GB", 3, "parallelism.tp: 3 doesn't divide the 64 attention heads"),
        (
            "Llama-3.1-70B",
            "H100-SXM-80GB",
            16,
            "parallelism.tp: 16 is beyond the 8 H100-SXM-80GB that a fast link joins",
        ),
        ("Phi-4", "H100-SXM-80GB", 4, "parallelism.tp: 4 neither divides the 10 KV heads nor is a multiple of them"),
        (
            "Qwen2.5-7B",
            "GH200",
            2,
            "parallelism.tp: 2 needs a link between GH200 devices, and the catalogue knows none",
        ),
    ],
)
def test_why_a_split_is_impossible(model_name: str, device: str, tp: int, said: str) -> None:
    problems = tensor_problems(model(model_name), accelerator(device), tp)
    assert [problem.field for problem in problems] == ["parallelism.tp"]
    assert str(problems[0]).startswith(said)


def test_the_remedy_lists_what_works() -> None:
    (problem,) = tensor_problems(model("Llama-3.1-70B"), accelerator("H100-SXM-80GB"), 3)
    assert problem.remedy == "Llama-3.1-70B on H100-SXM-80GB splits into 1, 2, 4, 8"


def test_sizes_that_work_have_no_problem_and_the_others_have_one() -> None:
    for model_name in ("Llama-3.1-8B", "Falcon-7B", "Qwen2.5-0.5B", "Phi-4", "DeepSeek-V3"):
        for device in ("H100-SXM-80GB", "L40S", "RTX A6000", "GH200", "GB200"):
            fine = split_sizes(model(model_name), accelerator(device))
            for tp in (1, 2, 4, 8, 16, 32):
                assert (tensor_problems(model(model_name), accelerator(device), tp) == []) == (tp in fine)


def test_kv_is_divided_as_far_as_there_are_heads() -> None:
    assert [kv_shards(model("Llama-3.1-70B"), tp) for tp in (1, 4, 8, 16)] == [1, 4, 8, 8]
    assert [kv_shards(model("Falcon-7B"), tp) for tp in (1, 71)] == [1, 1]
    assert kv_shards(model("DeepSeek-V3"), 8) == 1
