"""The schemas in the repository are what the code says, and real messages obey them."""

import json

import pytest

from longtake import resources
from longtake.cli.main import run_command
from longtake.cli.schemas import schema_files
from longtake.contracts.events import EVENT_TYPES


@pytest.mark.parametrize("name", sorted(schema_files()))
def test_a_schema_in_the_repository_has_not_drifted(name):
    path = resources.directory("schemas") / name

    assert path.read_text() == schema_files()[name], "run `longtake schemas export`"


def test_no_schema_lies_there_that_the_code_does_not_make():
    assert {path.name for path in resources.directory("schemas").iterdir()} == set(schema_files())


def test_check_finds_a_drift_and_export_mends_it(tmp_path, capsys):
    assert run_command(["schemas", "export", "--out", str(tmp_path)]) == 0
    assert run_command(["schemas", "check", "--out", str(tmp_path)]) == 0
    (tmp_path / "summary.json").write_text("{}")
    (tmp_path / "event.json").unlink()
    capsys.readouterr()

    assert run_command(["schemas", "check", "--out", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["drifted"] == ["event.json", "summary.json"]
    assert run_command(["schemas", "export", "--out", str(tmp_path)]) == 0
    assert run_command(["schemas", "check", "--out", str(tmp_path)]) == 0


def test_every_event_type_has_its_place_in_the_event_schema():
    schema = json.loads(schema_files()["event.json"])

    named = {kind["properties"]["type"]["const"] for kind in schema["oneOf"]}
    assert named == {kind.TYPE for kind in EVENT_TYPES}
    assert set(schema["properties"]["type"]["enum"]) == named


def test_a_command_schema_names_what_may_be_sent():
    schema = json.loads(schema_files()["command.json"])
    command = schema["$defs"]["Command"]

    assert command["additionalProperties"] is False
    assert set(command["required"]) == {"kind", "project"}


def test_openapi_is_of_the_version_and_points_only_to_schemas_it_has():
    document = json.loads(schema_files()["openapi.json"])
    text = json.dumps(document)

    assert document["openapi"] == "3.1.0"
    named = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert named <= set(document["components"]["schemas"])
    assert "Problem" in named
