"""What a client may meet."""

from longtake.contracts.problems import Problem
from longtake.errors import LongtakeError


class ProblemReceived(LongtakeError):
    """The server refused, and said why."""

    def __init__(self, problem: Problem) -> None:
        places = "".join(f"\n  {e.pointer}: {e.message}. {e.remedy}" for e in problem.errors)
        super().__init__(f"{problem.title} ({problem.status}): {problem.detail}{places}")
        self.problem = problem


class ServerUnreachable(LongtakeError):
    """No server answers at that address."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"no longtake answers at {url} ({reason}). Start one with `longtake up`, or name another: --url, LONGTAKE_URL."
        )
        self.url = url
        self.reason = reason
