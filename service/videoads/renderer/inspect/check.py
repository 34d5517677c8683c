"""What an inspection says: one `Check` for each promise of the delivery contract, all of them in an `Inspection`.

How each promise is measured is left to the modules beside this one.
"""

import msgspec


class Check(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One measured promise: what was found, what would be right, where it failed and what to do about it."""

    name: str
    passed: bool
    measured: str
    expected: str
    frame: int | None = None
    second: float | None = None
    pointer: str | None = None
    remedy: str | None = None

    def line(self) -> str:
        """Say the check in one line that a person can act on."""
        if self.passed:
            return f"{self.name}: {self.measured}"
        where = ""
        if self.frame is not None:
            where += f" at frame {self.frame}"
        if self.second is not None:
            where += f" ({self.second:.2f} s)"
        if self.pointer is not None:
            where += f" [{self.pointer}]"
        remedy = f". {self.remedy}" if self.remedy else ""
        return f"{self.name} failed{where}: {self.measured}; expected {self.expected}{remedy}"


class Inspection(msgspec.Struct, frozen=True):
    """Every check of one film, in the order they were made."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether the film keeps the whole contract."""
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that did not hold."""
        return tuple(check for check in self.checks if not check.passed)

    def check(self, name: str) -> Check:
        """The check of that name."""
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(f"no check is named {name!r}; there are {[check.name for check in self.checks]}")


def passed(name: str, measured: str, expected: str) -> Check:
    """A check that held."""
    return Check(name=name, passed=True, measured=measured, expected=expected)


def failed(
    name: str,
    measured: str,
    expected: str,
    *,
    remedy: str,
    frame: int | None = None,
    fps: int | None = None,
    pointer: str | None = None,
) -> Check:
    """A check that did not hold; the second is worked out from the frame."""
    second = round(frame / fps, 3) if frame is not None and fps else None
    return Check(
        name=name,
        passed=False,
        measured=measured,
        expected=expected,
        frame=frame,
        second=second,
        pointer=pointer,
        remedy=remedy,
    )
