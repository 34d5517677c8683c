"""Data is found in the installed package first, then in the checkout, else both places are named."""

from pathlib import Path

import pytest

from longtake import resources
from longtake.errors import ConfigurationError


def test_the_packaged_folder_wins_over_the_checkout(tmp_path: Path) -> None:
    package = tmp_path / "service" / "longtake"
    packaged, checkout = package / "_data" / "schemas", tmp_path / "schemas"
    checkout.mkdir()
    package.mkdir(parents=True)

    assert checkout == resources.directory("schemas", package)

    packaged.mkdir(parents=True)
    assert packaged == resources.directory("schemas", package)


def test_missing_data_names_both_places_and_the_remedy(tmp_path: Path) -> None:
    package = tmp_path / "service" / "longtake"

    with pytest.raises(ConfigurationError, match="install longtake again") as refusal:
        resources.directory("migrations", package)
    assert str(package / "_data" / "migrations") in str(refusal.value)
    assert str(tmp_path / "migrations") in str(refusal.value)
