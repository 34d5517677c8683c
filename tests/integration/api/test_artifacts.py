"""Artifacts: whole or in part, with an ETag that is their digest."""

import hashlib

import pytest

from kit.shop import CLIP, assert_problem
from longtake.client import Client, DownloadDamaged

ETAG = f'"{hashlib.sha256(CLIP).hexdigest()}"'


async def _address(shop) -> str:
    run_id = await shop.finished("film")
    return (await shop.http.get(f"/v1/runs/{run_id}/artifacts")).json()["artifacts"][0]["href"]


async def test_an_artifact_is_served_whole_in_part_and_by_its_headers(shop):
    """Each kind of request of RFC 9110 with its answer."""
    address = await _address(shop)
    size = len(CLIP)
    cases = [
        ({}, 200, CLIP),
        ({"Range": "bytes=0-9"}, 206, CLIP[:10]),
        ({"Range": "bytes=100-"}, 206, CLIP[100:]),
        ({"Range": "bytes=-7"}, 206, CLIP[-7:]),
        ({"Range": f"bytes={size - 1}-{size + 500}"}, 206, CLIP[-1:]),
        ({"Range": f"bytes=-{size * 2}"}, 206, CLIP),
        ({"Range": "bytes=9-3"}, 200, CLIP),
        ({"Range": "lines=1-2"}, 200, CLIP),
        ({"Range": "bytes=0-1,4-5"}, 200, CLIP),
        ({"Range": "bytes=0-9", "If-Range": ETAG}, 206, CLIP[:10]),
        ({"Range": "bytes=0-9", "If-Range": '"old"'}, 200, CLIP),
        ({"If-None-Match": ETAG}, 304, b""),
        ({"If-None-Match": f'"x", W/{ETAG}'}, 304, b""),
        ({"If-None-Match": '"x"'}, 200, CLIP),
    ]
    for headers, status, content in cases:
        response = await shop.http.get(address, headers=headers)
        assert (response.status_code, response.content) == (status, content), headers
        assert response.headers["etag"] == ETAG
        if status != 304:
            assert response.headers["content-length"] == str(len(content))
            assert response.headers["content-type"] == "video/mp4"
        if status == 206:
            assert response.headers["content-range"].endswith(f"/{size}")

    head = await shop.http.head(address)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(size))
    assert head.headers["accept-ranges"] == "bytes"

    for beyond in (f"bytes={size}-", "bytes=-0"):
        refused = await shop.http.get(address, headers={"Range": beyond})
        assert_problem(refused, 416, "range-not-satisfiable")
        assert refused.headers["content-range"] == f"bytes */{size}"


async def test_a_download_goes_on_where_it_ended_and_is_checked(shop, tmp_path):
    await _address(shop)
    key = shop.http.headers["authorization"].removeprefix("Bearer ")
    async with Client(shop.url, key) as client:
        run = (await client.runs()).runs[0]
        (artifact,) = await client.artifacts(run.run_id)
        path = tmp_path / "ad.mp4"
        (tmp_path / "ad.mp4.part").write_bytes(CLIP[:1000])

        assert (await client.download(artifact, path)).read_bytes() == CLIP

        # A first half of other bytes is not believed.
        (tmp_path / "bad.part").write_bytes(b"x" * 1000)
        with pytest.raises(DownloadDamaged):
            await client.download(artifact, tmp_path / "bad")
        assert not (tmp_path / "bad").exists()


async def test_bytes_that_are_gone_are_said_to_be_gone(shop, tmp_path):
    address = await _address(shop)
    for path in (tmp_path / "objects").rglob("*"):
        if path.is_file():
            path.unlink()

    assert_problem(await shop.http.get(address), 500, "internal")
