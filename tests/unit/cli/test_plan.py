"""`longtake plan`: quotes, differences of plans, and runs that a deployment would block - by code and by words."""

import json
from pathlib import Path

import pytest

from kit.deploying import deploy, deploy_source
from kit.promises import promise
from longtake.cli.main import EXIT_NO_ANSWER, run_command

HISTORIES = Path(__file__).parents[2] / "histories"
VERSIONS = """
from longtake import App, Plan

app = App("two", price_list="2026-11")


@app.workflow("ad", version=1, policy={"model": "v2", "seconds": 5})
def one(input, policy):
    return Plan().step("clip", activity="work@1", price=3, input={"model": policy["model"]})


@app.workflow("ad", version=3, policy={"model": "v2", "seconds": 5})
def three(input, policy):
    return Plan().step("clip", activity="work@1", price=4, input={"model": policy["model"]}).step("cut", activity="work@1")


@app.workflow("plain", version=1)
def plain(input, policy):
    return Plan().step("clip", activity="work@1")


@app.activity("work@1")
async def work(call):
    return None
"""


@pytest.fixture
def line(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder; returns code, output, errors."""
    monkeypatch.chdir(tmp_path)
    for name in ("LONGTAKE_POSTGRES_URL", "LONGTAKE_DATA_DIR", "LONGTAKE_APP"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "in.json").write_text("{}")
    deploy_source(tmp_path, "two_versions", VERSIONS)

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run_command(list(arguments))
        told = capsys.readouterr()
        assert "Traceback" not in told.out + told.err
        return code, told.out, told.err

    return run


AD3 = ("ad@3", "--input", "in.json", "--app", "two_versions:app")


def test_the_price_is_told_before_anything_is_started(line):
    code, out, _ = line("plan", "show", *AD3, "--price")
    assert code == 0
    assert "clip" in out and "4 credits, never more than 4 (price list 2026-11)" in out
    assert "cut" not in out.splitlines()[1], "free steps are not in a quote"

    quote = json.loads(line("plan", "show", *AD3, "--price", "--json")[1])
    assert (quote["quoted_credits"], quote["cap_credits"]) == (4, 4)
    assert quote["steps"] == [{"step": "clip", "credits": 4}]


def test_a_diff_names_every_difference_and_the_price(line):
    code, out, _ = line("plan", "diff", *AD3, "--against", "ad@1")

    assert code == 1
    assert "/plan/steps/0/price" in out and "/plan/steps/1" in out
    assert "ad@3 is not as ad@1 in 2 places; the price rises from 3 to 4 credits" in out


def test_without_against_it_is_the_version_before(line):
    code, out, _ = line("plan", "diff", *AD3, "--json")
    said = json.loads(out)

    assert code == 1
    assert (said["same"], said["before"]["name"], said["after"]["name"]) == (False, "ad@1", "ad@3")
    assert said["changes"] == [
        {"pointer": "/plan/steps/0/price", "before": 3, "after": 4},
        {
            "pointer": "/plan/steps/1",
            "after": {"key": "cut", "activity": "work@1", "paid": False, "cancellable": False},
        },
    ]
    assert said["before"]["fingerprint"] != said["after"]["fingerprint"]


@promise("H20")
def test_a_plan_that_was_kept_in_a_file_is_the_same_until_something_changes(line, tmp_path):
    """What a pipeline does: keep the plan beside the code, and fail the build when it is another."""
    (tmp_path / "kept.json").write_text(line("plan", "show", *AD3, "--json")[1])
    compare = ("plan", "diff", *AD3, "--against", "kept.json")

    code, out, _ = line(*compare)
    assert (code, out.strip()) == (0, "ad@3 plans what kept.json does; the price stays at 4 credits")
    assert json.loads(line(*compare, "--json")[1])["same"] is True

    code, out, _ = line(*compare, "--policy", "model=v3", "--json")
    assert code == 1
    assert [change["pointer"] for change in json.loads(out)["changes"]] == [
        "/plan/steps/0/input/model",
        "/policy/model",
    ]

    deploy_source(tmp_path, "two_versions", VERSIONS.replace("2026-11", "2027-01"))
    code, out, _ = line(*compare, "--json")
    assert code == 1
    assert json.loads(out)["changes"] == [
        {"pointer": "/price_basis", "before": "2026-11", "after": "2027-01"}
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("diff", "ad@3", "--input", "missing.json", "--app", "two_versions:app"),
            "missing.json: No such file",
        ),
        (("diff", "nope@1", "--input", "in.json", "--app", "two_versions:app"), "use one of: ad@1, ad@3"),
        (("diff", "ad@3", "--input", "in.json", "--app", "nowhere:app"), "nowhere cannot be imported"),
        (("diff", "plain@1", "--input", "in.json", "--app", "two_versions:app"), "no earlier version here"),
        (("diff", *AD3, "--against", "missing.json"), "--against missing.json: No such file"),
        (("diff", *AD3, "--against", "in.json"), "--against in.json is no plan"),
        (("diff", *AD3, "--against", "ad@9"), "use one of: ad@1, ad@3"),
        (("diff", *AD3, "--policy", "model"), "it must look like seconds=5 or model=v2"),
        (("diff", *AD3, "--policy", "nope=1"), "use some of: model, seconds"),
        (("diff", *AD3, "--policy", "model=1", "--policy", "model=2"), "is given twice"),
        (("diff", *AD3, "--policy", "seconds=0.5"), "no canonical form"),
        (("diff",), "requires an argument"),
        (("check", "--app", "two_versions:app"), "there is no store"),
        (("check", "--app", "two_versions:app", "--database", "mysql://x"), "LONGTAKE_POSTGRES_URL"),
        (
            ("check", "--app", "two_versions:app", "--database", "postgresql://x@127.0.0.1:9/none"),
            "the database cannot be reached",
        ),
        (("check", "--app", "two_versions:app", "--histories", "."), "line 1 of bad.jsonl"),
        (("check", "--app", "two_versions:app", "--histories", "empty"), "empty holds no captured run"),
        (
            ("check", "--app", "two_versions:app", "--histories", ".", "--database", "postgresql://x/y"),
            "give one of them",
        ),
    ],
)
def test_what_cannot_be_answered_is_one_message_and_a_code_of_its_own(line, tmp_path, arguments, said):
    """0 and 1 are answers; a pipeline must not take a broken question for one of them."""
    (tmp_path / "bad.jsonl").write_text("{\n")

    code, out, err = line("plan", *arguments)

    assert code == EXIT_NO_ANSWER == 2
    assert said in " ".join((out + err).replace("│", " ").split())


# --- check over captured runs -----------------------------------------------------------------------------------------


@promise("H17", "H15")
def test_the_code_of_then_still_builds_the_plans_of_then(line):
    """Also a promise about this program: the same builders lead to the same fingerprints as at the first light."""
    code, out, _ = line(
        "plan", "check", "--histories", str(HISTORIES), "--app", "kit.studio_app:app", "--json"
    )
    said = json.loads(out)

    assert said["blocking"] == []
    assert code == 0
    assert said["active"] == said["same"] > 4, "every captured run that had not ended"
    code, out, _ = line("plan", "check", "--histories", str(HISTORIES), "--app", "kit.studio_app:app")
    assert "0 would block" in out and "captured runs had ended" in out


def test_a_dearer_step_blocks_the_runs_of_its_workflow_and_no_other(line):
    arguments = ("plan", "check", "--histories", str(HISTORIES), "--app", "kit.studio_app:dearer")
    code, out, _ = line(*arguments, "--json")
    said = json.loads(out)

    assert code == 1
    assert {run["workflow"] for run in said["blocking"]} == {"take"}
    assert said["same"] >= 2
    for run in said["blocking"]:
        assert run["changes"] == [{"pointer": "/plan/steps/0/price", "before": 6, "after": 7}]
        assert run["price_effect"] == "the price rises from 6 to 7 credits"
    code, out, _ = line(*arguments)
    assert "would block: the price rises from 6 to 7 credits" in out


def test_a_step_less_is_told_with_everything_that_goes_with_it(line):
    code, out, _ = line(
        "plan", "check", "--histories", str(HISTORIES), "--app", "kit.studio_app:mute", "--json"
    )
    (run,) = json.loads(out)["blocking"]

    assert code == 1
    assert run["price_effect"] == "the price falls from 14 to 12 credits"
    assert "/plan/steps/3" in [change["pointer"] for change in run["changes"]]


def test_a_builder_that_raises_blocks_its_runs_and_is_named(line):
    """Else one old input would end the check, and no run would be judged."""
    code, out, _ = line("plan", "check", "--histories", str(HISTORIES), "--app", "kit.studio_app:failing")

    assert code == 1
    assert "the plan cannot be built" in out
    assert "its builder breaks: KeyError: 'prompt_text'" in out


def test_workflows_that_the_code_does_not_have_are_left_alone(line):
    code, out, _ = line("plan", "check", "--histories", str(HISTORIES), "--app", "two_versions:app")

    assert code == 0
    assert "are of workflows that this code does not have" in out


def test_a_changed_model_edge_and_order_are_each_named(line, tmp_path):
    deploy(tmp_path, "kept_shop")
    shop = ("plan", "show", "shop@1", "--input", "in.json", "--app", "kept_shop:app", "--json")
    (tmp_path / "shop.json").write_text(line(*shop)[1])
    pointers = {}
    for name, change in {
        "model": {"model": "v3"},
        "edge": {"waits": ["film"]},
        "order": {"first": "voice", "second": "film"},
    }.items():
        deploy(tmp_path, f"shop_{name}", **change)
        code, out, _ = line(
            "plan", "diff", "shop@1", "--input", "in.json", "--against", "shop.json", "--app", f"shop_{name}:app",
            "--json",
        )  # fmt: skip
        assert code == 1
        pointers[name] = [change["pointer"] for change in json.loads(out)["changes"]]

    assert pointers == {
        "model": ["/plan/steps/0/input/model"],
        "edge": ["/plan/steps/2/depends_on/1"],
        "order": ["/plan/steps"],
    }
