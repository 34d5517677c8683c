"""Where data that is not Python lies: inside the installed package, or in the checkout it was started from.

Nobody else computes such paths. A wheel carries the folders under `longtake/_data`; an editable installation
has none there and uses the folders at the root of the repository.
"""

from pathlib import Path
from typing import Literal

from longtake.errors import ConfigurationError

Kind = Literal["migrations", "schemas"]

_PACKAGE = Path(__file__).resolve().parent


def directory(kind: Kind, package: Path = _PACKAGE) -> Path:
    """The folder of one kind of data, or an error naming both places where it was looked for."""
    packaged = package / "_data" / kind
    if packaged.is_dir():
        return packaged
    checkout = package.parent.parent / kind
    if checkout.is_dir():
        return checkout
    raise ConfigurationError(
        f"the {kind} of longtake are missing: neither {packaged} nor {checkout} exists. "
        "The installation is incomplete: install longtake again, or run it from a whole checkout."
    )
