"""compose.yaml, Dockerfile and the collector agree with each other and with the program."""

import dataclasses
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from longtake.embedded.nats import PAYLOAD_BYTES_MAX
from longtake.embedded.postgres import MAJOR_VERSION
from longtake.errors import ConfigurationError
from longtake.settings import ROLES, Settings, load_settings

ROOT = Path(__file__).parents[2]


def _load(name: str) -> dict[str, Any]:
    loaded = yaml.safe_load((ROOT / name).read_text())
    assert isinstance(loaded, dict)
    return loaded


COMPOSE = _load("compose.yaml")
COLLECTOR = _load("otel/collector.yaml")
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def _ours() -> dict[str, dict[str, Any]]:
    return {
        name: service for name, service in COMPOSE["services"].items() if service.get("image") == "longtake"
    }


def test_the_servers_are_of_the_versions_that_are_tested() -> None:
    assert f"postgres:{MAJOR_VERSION}" == COMPOSE["services"]["postgres"]["image"]
    assert COMPOSE["services"]["nats"]["image"].startswith("nats:2.15")


def test_every_role_is_served_once_and_after_the_migrations() -> None:
    served: list[str] = []
    for service in _ours().values():
        command = service["command"]
        if "--role" in command:
            served += command[command.index("--role") + 1].split(",")
            assert "service_completed_successfully" == service["depends_on"]["migrate"]["condition"]

    assert sorted(ROLES) == sorted(served)


def _plain(value: str) -> str:
    """A value as compose would set it when the user sets nothing: `${NAME:-default}` is its default."""
    return re.sub(r"\$\{[A-Z_]+:-([^}]*)\}", r"\1", value)


def _settings(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> Settings:
    monkeypatch.chdir(folder)
    for name, value in environment.items():
        monkeypatch.setenv(name, _plain(value))
    return load_settings()


def test_the_program_takes_the_settings_of_every_service(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each variable is a setting that exists, and its value is accepted."""
    known = {f"LONGTAKE_{field.name.upper()}" for field in dataclasses.fields(Settings)}
    for name, service in _ours().items():
        assert set() == set(service["environment"]) - known, name
        settings = _settings(service["environment"], monkeypatch, tmp_path)
        assert settings.postgres_url.startswith("postgresql://longtake:longtake@postgres:5432")


def test_a_value_the_program_refuses_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="LONGTAKE_TRACES"):
        _settings({**_ours()["api"]["environment"], "LONGTAKE_TRACES": "everywhere"}, monkeypatch, tmp_path)


def test_the_api_takes_the_host_name_that_providers_are_told() -> None:
    environment = _ours()["api"]["environment"]

    assert urlsplit(environment["LONGTAKE_PUBLIC_URL"]).hostname in environment[
        "LONGTAKE_ALLOWED_HOSTS"
    ].split(",")


def test_addresses_name_services_that_exist_and_their_ports() -> None:
    for service in _ours().values():
        for value in service["environment"].values():
            for host, port in re.findall(r"[@/]([a-z]+):(\d+)", value):
                assert host in COMPOSE["services"], value
                assert {"postgres": "5432", "nats": "4222", "collector": "4318", "api": "8600"}[host] == port


def test_the_collector_listens_where_services_send() -> None:
    endpoint = COLLECTOR["receivers"]["otlp"]["protocols"]["http"]["endpoint"]
    sent = _ours()["api"]["environment"]["LONGTAKE_OTLP_ENDPOINT"]

    assert endpoint.rpartition(":")[2] == sent.rpartition(":")[2]


def test_the_collectors_pipelines_use_only_what_is_defined() -> None:
    for pipeline in COLLECTOR["service"]["pipelines"].values():
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) <= set(COLLECTOR[kind])
    assert set(COLLECTOR["service"]["extensions"]) <= set(COLLECTOR["extensions"])


def test_the_api_is_published_on_loopback_and_on_the_port_it_listens_to() -> None:
    api = COMPOSE["services"]["api"]
    (published,) = api["ports"]
    host, outside, inside = published.split(":")

    assert "127.0.0.1" == host
    assert api["environment"]["LONGTAKE_PORT"] == outside == inside
    assert f"EXPOSE {inside}" in DOCKERFILE


def test_nats_takes_payloads_as_large_as_the_embedded_one_and_needs_a_token() -> None:
    content = COMPOSE["configs"]["nats"]["content"]

    assert f"max_payload: {PAYLOAD_BYTES_MAX}" in content
    assert "authorization { token: $$LONGTAKE_NATS_TOKEN }" in content
    assert "store_dir" in content


def test_volumes_and_configs_are_declared() -> None:
    for service in COMPOSE["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in COMPOSE["volumes"] or (ROOT / source).is_file(), volume
        for config in service.get("configs", []):
            assert config["source"] in COMPOSE["configs"]


def test_the_image_is_built_from_hashes_and_runs_as_nobody_special() -> None:
    assert "--require-hashes --only-binary :all:" in DOCKERFILE
    last_stage = DOCKERFILE.rpartition("\nFROM ")[2]
    assert "\nUSER longtake" in last_stage
    assert "pip install" not in last_stage


def test_all_that_the_dockerfile_copies_is_let_through_and_exists() -> None:
    allowed = {
        line[1:].rstrip("/") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    copied = {
        source.rstrip("/")
        for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
        for source in line.split()[:-1]
    }

    assert copied == allowed
    assert set() == {source for source in copied if not (ROOT / source).exists()}
