"""Each client knows every word of its provider's dialect, and outcomes travel as JSON without loss."""

from pathlib import Path

import msgspec
import pytest

from kit.promises import promise
from videoads.providers import clips, held, render
from videoads.providers.clips import ClipsClient
from videoads.providers.contract import (
    Accepted,
    Adapter,
    CancelOutcome,
    ErrorClass,
    Fetched,
    FetchOutcome,
    Found,
    PollOutcome,
    Receipt,
    ReconcileOutcome,
    SubmitOutcome,
    Throttled,
)
from videoads.providers.music import MusicClient
from videoads.providers.render import RenderClient
from videoads.providers.synthetic.dialects import RENDER_ERRORS, SOUND_ERRORS, TASK_ERRORS
from videoads.providers.synthetic.faults import ErrorName
from videoads.providers.voice import VoiceClient


@promise("H78")
@pytest.mark.parametrize(
    ("dialect", "ours"),
    [(TASK_ERRORS, clips.ERRORS), (SOUND_ERRORS, held.ERRORS), (RENDER_ERRORS, render.ERRORS)],
)
def test_every_code_of_a_provider_has_its_class_and_the_rest_is_unknown(
    dialect: dict[ErrorName, tuple[int, int | str]], ours: dict[int | str, ErrorClass]
) -> None:
    assert set(dialect) == set(ErrorClass)
    for name, (_, code) in dialect.items():
        assert ours.get(code, ErrorClass.UNKNOWN) == name


def test_every_client_is_an_adapter() -> None:
    base = "http://127.0.0.1:9"
    adapters: list[Adapter] = [
        ClipsClient(base),
        VoiceClient(base),
        MusicClient(base),
        RenderClient(base, secrets=["whsec_" + "A" * 32]),
    ]

    assert len(adapters) == 4


@pytest.mark.parametrize(
    "outcomes", [SubmitOutcome, PollOutcome, ReconcileOutcome, CancelOutcome, FetchOutcome]
)
def test_each_union_is_told_apart_by_its_tag(outcomes: object) -> None:
    """msgspec builds a decoder for a union only when each member can be told from the others."""
    msgspec.json.Decoder(outcomes)


def test_an_outcome_comes_back_from_json_as_it_went() -> None:
    receipt = Receipt(request_id="r", status="queued", payload={"n": [1, None, "ä"]})
    accepted = Accepted(ref="x", cost_estimate=3, poll_after_seconds=0.3, receipt=receipt)

    raw = msgspec.json.encode(accepted)

    assert msgspec.json.decode(raw, type=SubmitOutcome) == accepted
    assert msgspec.json.decode(raw)["outcome"] == "accepted"


def test_outcomes_can_not_be_changed() -> None:
    found = Found(ref="x", jobs=1, evidence="")
    with pytest.raises(AttributeError):
        found.ref = "y"  # type: ignore[misc]  # the assignment is what must fail
    assert not hasattr(Throttled, "ref")
    assert Fetched(path=Path("a"), size_bytes=1, sha256="", media_type="").path == Path("a")
