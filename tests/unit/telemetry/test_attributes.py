"""The table of names is the contract with dashboards."""

import pytest

from longtake.telemetry import attributes, count


def test_every_span_name_is_in_the_documented_table() -> None:
    names = {value for name, value in vars(attributes).items() if name.startswith("SPAN_")}

    assert names
    assert [name for name in sorted(names) if f"`{name}`" not in (attributes.__doc__ or "")] == []


def test_the_table_documents_no_span_that_does_not_exist() -> None:
    rows = [line for line in (attributes.__doc__ or "").splitlines() if line.startswith("| `")]
    names = {value for name, value in vars(attributes).items() if name.startswith("SPAN_")}

    # The one row that is a pattern: HTTP spans are called by their method and route.
    assert {row.split("`")[1] for row in rows} - {"METHOD route"} == names


def test_a_counter_that_is_not_in_the_table_cannot_be_used() -> None:
    count("longtake.events", 3, {})

    with pytest.raises(KeyError):
        count("longtake.invented")
