"""The parts of the synthetic providers that need no process: rules, orders, jobs on disk, making media."""

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from videoads.providers.synthetic.__main__ import main
from videoads.providers.synthetic.asgi import Malformed
from videoads.providers.synthetic.faults import Fault, Rule, RuleBook
from videoads.providers.synthetic.jobs import Job, JobStore
from videoads.providers.synthetic.making import Made, MakingFailed, Recipes, Workshop
from videoads.providers.synthetic.orders import Shelf, maker_request, price, read_order

SHOT = {"prompt": "dawn", "frames": 72, "fps": 30, "width": 720, "height": 1280, "seed": 1}


def strikes(book: RuleBook, *creates: tuple[str, str, str]) -> list[bool]:
    return [bool(book.strike(style=s, token=t, content=c)) for s, t, c in creates]  # type: ignore[arg-type]  # styles as text


@pytest.mark.parametrize(
    ("conditions", "struck"),
    [
        ({}, [True, True, True, True]),
        ({"style": "clips"}, [True, True, True, False]),
        ({"token": "b"}, [False, True, False, False]),
        ({"style": "clips", "nth": (2,)}, [False, True, False, False]),
        ({"nth": (1, 4)}, [True, False, False, True]),
        ({"times": 2}, [True, True, False, False]),
        ({"once_per_content": True}, [True, True, False, True]),
        ({"once_per_content": True, "style": "clips"}, [True, True, False, False]),
    ],
)
def test_a_rule_strikes_exactly_the_creates_it_describes(
    conditions: dict[str, Any], struck: list[bool], tmp_path: Path
) -> None:
    book = RuleBook(tmp_path / "temper.json")
    book.add(Rule(fault=Fault(kind="fail"), **conditions))
    creates = [("clips", "a", "one"), ("clips", "b", "two"), ("clips", "c", "one"), ("voice", "d", "three")]

    assert strikes(book, *creates) == struck


def test_rules_counters_amnesia_and_releases_are_on_disk(tmp_path: Path) -> None:
    book = RuleBook(tmp_path / "temper.json")
    book.add(Rule(fault=Fault(kind="fail"), nth=(2,)))
    book.set_amnesiac(frozenset(["voice"]))
    book.release(["a"])
    assert strikes(book, ("clips", "x", "one")) == [False]

    again = RuleBook(tmp_path / "temper.json")

    assert strikes(again, ("clips", "y", "two")) == [True]
    assert again.is_amnesiac("voice") and not again.is_amnesiac("clips")
    assert again.is_released("a") and not again.is_released("b")


@pytest.mark.parametrize(
    ("style", "document", "complaint"),
    [
        ("clips", {}, "/shot"),
        ("clips", {"shot": []}, "/shot"),
        ("clips", {"shot": {**SHOT, "frames": 0}}, "/shot/frames"),
        ("clips", {"shot": {**SHOT, "frames": True}}, "/shot/frames"),
        ("clips", {"shot": {**SHOT, "width": "720"}}, "/shot/width"),
        ("clips", {"shot": {**SHOT, "prompt": " "}}, "/shot/prompt"),
        ("stills", {"shot": SHOT, "external_task_id": "a/b"}, "/external_task_id"),
        ("stills", {"shot": SHOT, "external_task_id": 7}, "/external_task_id"),
        ("clips", {"shot": SHOT, "product_picture_sha256": "../../etc/passwd"}, "/product_picture_sha256"),
        ("voice", {"speech": "hello"}, "/speech"),
        ("music", {}, "/plan"),
        ("render", {"composition": {}, "media": []}, "/media"),
        ("render", {"composition": {}, "media": {"a": "b"}}, "/media/a"),
        ("render", {"composition": {}, "webhook": {"url": "file:///x"}}, "/webhook/url"),
        ("render", {"composition": {}, "webhook": {"url": "http://x", "secret": "x"}}, "/webhook/secret"),
        (
            "render",
            {"composition": {}, "webhook": {"url": "http://x", "secret": "whsec_AAAA", "custom_data": 1}},
            "/webhook/custom_data",
        ),
    ],
)
def test_a_wrong_order_is_refused_with_its_place(
    style: Any, document: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(Malformed) as refusal:
        read_order(style, document, b"", Shelf(tmp_path))
    assert str(refusal.value).startswith(complaint + ":")


def test_the_content_digest_leaves_out_the_token_and_the_webhook(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    webhook = {"url": "http://x/1", "secret": "whsec_AAAA"}

    one = read_order("render", {"composition": {"a": 1}, "out_name": "t1", "webhook": webhook}, b"1", shelf)
    two = read_order("render", {"composition": {"a": 1}, "out_name": "t2"}, b"2", shelf)
    other = read_order("render", {"composition": {"a": 2}, "out_name": "t1"}, b"3", shelf)

    assert one.content_digest == two.content_digest != other.content_digest


def test_prices_go_by_frames_characters_or_the_piece() -> None:
    assert [price("clips", {"frames": frames}) for frames in (1, 72, 73, 144)] == [3, 3, 6, 6]
    assert [price("voice", {"lines": ["x" * n]}) for n in (1, 96, 97)] == [1, 1, 2]
    assert (price("stills", {}), price("music", {}), price("render", {})) == (1, 2, 3)


def job(request: dict[str, Any], **fields: Any) -> Job:
    return Job(
        **{
            "id": "cl_1",
            "style": "clips",
            "token": "t",
            "request": request,
            "content_digest": "c",
            "body_sha256": "b",
            "accepted_at": 1.0,
            "cost": 3,
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("width", "height", "expected"), [(720, 1280, (90, 160)), (1280, 720, (160, 90)), (60, 80, (60, 80))]
)
def test_tiny_media_are_never_larger_than_tiny(
    width: int, height: int, expected: tuple[int, int], tmp_path: Path
) -> None:
    order = {"shot": {**SHOT, "width": width, "height": height}}

    tiny = maker_request(job(order), Shelf(tmp_path), tiny=True)

    assert (tiny["width"], tiny["height"], tiny["frames"]) == (*expected, 24)
    assert maker_request(job(order), Shelf(tmp_path), tiny=False) == order["shot"]


def test_an_upload_must_be_what_its_name_says(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    digest = hashlib.sha256(b"picture").hexdigest()

    with pytest.raises(Malformed, match="the address says"):
        shelf.put(digest, b"another picture")
    assert not shelf.has(digest)
    shelf.put(digest, b"picture")

    assert shelf.has(digest) and not shelf.has("../" + digest)
    order = {"shot": SHOT, "product_picture_sha256": digest}
    assert Path(maker_request(job(order), shelf, tiny=False)["product_picture"]).read_bytes() == b"picture"


async def test_jobs_come_back_from_disk_and_two_may_carry_one_token(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    await store.put(job({}, id="cl_2", accepted_at=2.0))
    await store.put(job({}, id="cl_1", accepted_at=1.0))
    await store.put(job({}, id="cl_2", accepted_at=2.0, state="failed"))

    again = JobStore(tmp_path)

    assert [found.id for found in again.with_token("clips", "t")] == ["cl_1", "cl_2"]
    assert (again.open_count("clips"), again.open_count("voice")) == (1, 0)
    assert again.get("voice", "cl_1") is None
    assert not await again.wait_until(lambda: False, timeout_seconds=0)


def recipes(program: str) -> Recipes:
    return {"clip": (sys.executable, "-c", program, "{request}", "{out}")}


COUNTING = (
    "import sys, json, pathlib; request, out = map(pathlib.Path, sys.argv[1:]);"
    "runs = out.parent / 'runs'; runs.write_text((runs.read_text() if runs.exists() else '') + 'x');"
    "out.write_bytes(request.read_bytes()); print('progress'); print(json.dumps({'path': str(out), 'n': 1}))"
)


async def test_equal_requests_share_one_process_and_the_report_names_no_path(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path, recipes=recipes(COUNTING), makers_max=2)

    made = [await workshop.make("clip", {"a": 1}) for _ in range(3)]
    other = await workshop.make("clip", {"a": 2})

    assert made[0] == made[1] == made[2] != other
    assert (tmp_path / "runs").read_text() == "xx"
    assert isinstance(other, Made) and other.report == {"n": 1}
    assert json.loads((tmp_path / other.name).read_bytes()) == {"a": 2}


@pytest.mark.parametrize(
    ("program", "refused", "words"),
    [
        ("import sys; print('/frames: too many', file=sys.stderr); sys.exit(2)", True, "/frames: too many"),
        ("raise RuntimeError('broken')", False, "RuntimeError: broken"),
        ("import sys; sys.exit(3)", False, "without a word"),
        ("pass", False, "left no file"),
    ],
)
async def test_a_maker_that_fails_says_whose_fault_it_was(
    program: str, refused: bool, words: str, tmp_path: Path
) -> None:
    workshop = Workshop(tmp_path, recipes=recipes(program), makers_max=1)

    with pytest.raises(MakingFailed, match=words) as failure:
        await workshop.make("clip", {})

    assert failure.value.refused is refused
    assert list(tmp_path.glob("*.made.json")) == []


async def test_a_maker_that_is_not_there_is_not_the_requests_fault(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path, recipes={"clip": (str(tmp_path / "absent"),)}, makers_max=1)

    with pytest.raises(MakingFailed, match="can not be started") as failure:
        await workshop.make("clip", {})

    assert not failure.value.refused


STANDING = """
import json, os, sys
from pathlib import Path

def main(arguments):
    request, out = map(Path, arguments)
    order = json.loads(request.read_bytes())
    if order.get("die"):
        os._exit(9)
    if order.get("crash"):
        raise RuntimeError("broken")
    if order.get("refuse"):
        print("/prompt: can not be drawn", file=sys.stderr)
        return 2
    os.write(1, b"noise of a library")
    out.write_bytes(b"media")
    print(json.dumps({"pid": os.getpid()}))
    return 0
"""


async def test_a_standing_maker_makes_one_medium_after_another_and_is_replaced_when_it_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "code" / "standing_maker"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(STANDING)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package.parent), *sys.path]))
    recipe = (sys.executable, "-m", "standing_maker", "{request}", "{out}")
    workshop = Workshop(tmp_path / "media", recipes={"clip": recipe}, makers_max=1)

    first = await workshop.make("clip", {"n": 1})
    for order, refused, words in (
        ({"refuse": 1}, True, "can not be drawn"),
        ({"crash": 1}, False, "RuntimeError: broken"),
    ):
        with pytest.raises(MakingFailed, match=words) as failure:
            await workshop.make("clip", order)
        assert failure.value.refused is refused
    second = await workshop.make("clip", {"n": 2})
    with pytest.raises(MakingFailed, match="the maker died") as death:
        await workshop.make("clip", {"die": 1})
    third = await workshop.make("clip", {"n": 3})
    await workshop.close()

    assert not death.value.refused
    assert first.report["pid"] == second.report["pid"] != third.report["pid"]
    with pytest.raises(ProcessLookupError):
        os.kill(third.report["pid"], 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--speed", "0"], "--speed must lie between"),
        (["--recipes", "{data}/absent.json"], "absent.json"),
        (["--port", "1"], "can not run"),
    ],
)
def test_a_start_that_can_not_be_is_one_readable_line(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "--port" in arguments:
        import socket

        blocker = socket.socket()
        blocker.bind(("127.0.0.1", 0))
        blocker.listen()
        arguments = ["--port", str(blocker.getsockname()[1])]
    else:
        blocker = None
    filled = [argument.format(data=tmp_path) for argument in arguments]

    status = main(["--data", str(tmp_path / "data"), *filled])

    if blocker is not None:
        blocker.close()
    said = capsys.readouterr().err
    assert status == 1 and words in said and said.count("\n") == 1
