"""The witness is read whole, judged right, and a second job for one step is always named."""

from pathlib import Path

import msgspec

from videoads.providers.synthetic.ledger import WitnessFile
from videoads.providers.witness import WitnessLine, accepted_creates, judge, read_witness, total_cost


def line(
    token: str, *, accepted: bool = True, cost: int = 3, request: str = "create", open_jobs: int = 1
) -> WitnessLine:
    return msgspec.convert(
        {
            "time": "2026-05-04T12:00:00+00:00",
            "provider": "clips",
            "request": request,
            "token": token,
            "body_sha256": "0" * 64,
            "accepted": accepted,
            "cost": cost if accepted else 0,
            "job": f"job-{token}" if accepted else None,
            "open_jobs": open_jobs,
        },
        WitnessLine,
    )


def test_only_accepted_creates_count_and_cost() -> None:
    lines = [
        line("a"),
        line("a", accepted=False),
        line("a", request="poll", accepted=False),
        line("b", cost=2),
    ]

    assert accepted_creates(lines) == {"a": 1, "b": 1}
    assert total_cost(lines) == 5


def test_a_second_job_for_a_token_is_named() -> None:
    assert judge([line("a"), line("b")]).repeated == {}
    assert judge([line("a"), line("b"), line("a")]).repeated == {"a": 2}


def test_attempts_of_one_step_may_be_judged_together() -> None:
    lines = [line("step-1"), line("step-2"), line("other-1")]

    verdict = judge(lines, group_of=lambda token: token.rpartition("-")[0])

    assert verdict.repeated == {"step": 2}
    assert judge(lines).repeated == {}


def test_the_most_jobs_open_at_once_is_reported() -> None:
    verdict = judge([line("a", open_jobs=1), line("b", open_jobs=4), line("c", open_jobs=2)])

    assert verdict.open_jobs_max == {"clips": 4}


def test_no_file_is_no_lines(tmp_path: Path) -> None:
    assert read_witness(tmp_path / "witness.ndjson") == []


async def test_a_half_written_line_is_not_read_and_is_cut_off_by_the_next_writer(tmp_path: Path) -> None:
    path = tmp_path / "witness.ndjson"
    whole = msgspec.json.encode(line("a")) + b"\n"
    path.write_bytes(whole + msgspec.json.encode(line("b"))[:30])
    assert read_witness(path) == [line("a")]

    witness = WitnessFile(path)
    await witness.record(line("c"))
    await witness.close()

    assert read_witness(path) == [line("a"), line("c")]
    assert witness.tallies["clips"].accepted == 2
