"""The picture of a plan."""

from kit.plans import film
from kit.promises import promise
from longtake.workflow.mermaid import mermaid
from longtake.workflow.plan import Plan, Step, group


@promise("H14")
def test_a_plan_is_drawn_with_its_groups_edges_and_statuses() -> None:
    drawn = mermaid(film(2), {"scene:1": "succeeded", "scene:2": "running", "voice": "pending"})

    assert drawn.splitlines() == [
        "flowchart LR",
        '  subgraph g0["scenes"]',
        '    s0["Generating scene 1 of 2"]:::succeeded',
        '    s1["Generating scene 2 of 2"]:::running',
        "  end",
        '  s2["Recording the voice"]',
        '  s3["Rendering"]',
        '  s4["Checking"]',
        "  g0 --> s3",
        "  s2 --> s3",
        "  s3 --> s4",
        "  classDef running fill:#dbeafe,stroke:#1d4ed8",
        "  classDef succeeded fill:#d7f5dd,stroke:#1a7f37",
    ]


def test_a_large_fan_out_is_one_node_with_a_count() -> None:
    drawn = mermaid(film(30), {"scene:1": "succeeded"})

    assert '  g0[["scenes<br/>1 of 30 done"]]' in drawn.splitlines()
    assert "  g0 --> s31" in drawn.splitlines()
    assert "scene 7" not in drawn


def test_a_title_cannot_break_out_of_its_box() -> None:
    drawn = mermaid(Plan().step("a", activity="a@1", label='"]; click a "x" <b>&\n'), {})

    assert '  s0["#quot;]; click a #quot;x#quot; #lt;b#gt;#amp; "]' in drawn.splitlines()


def test_waiting_for_an_empty_group_draws_no_edge() -> None:
    plan = (
        Plan()
        .fan_out("none", [], lambda _, i: Step("x"))
        .step("a", activity="a@1", depends_on=[group("none")])
    )

    assert "-->" not in mermaid(plan, {})
