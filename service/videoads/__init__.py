"""The reference application: a brief becomes a finished, verified video ad.

`videoads:app` is the longtake application. It is made when it is first asked for, so that renderer and synthetic
providers, which are programs of their own, can be started without longtake.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "app":
        from videoads.application import app

        return app
    raise AttributeError(f"module 'videoads' has no attribute {name!r}")
