"""Search over HTTP and in a browser: `create_app` makes an application for your own server, `serve` runs one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halation._errors import MissingExtra
from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.serve._app import create_app
    from halation.serve._run import serve
    from halation.serve._settings import ServeSettings

__all__ = ["ServeSettings", "create_app", "serve"]

_get, __dir__ = lazy(
    __name__,
    {
        "ServeSettings": "halation.serve._settings",
        "create_app": "halation.serve._app",
        "serve": "halation.serve._run",
    },
)
_EXTRA = ("fastapi", "h11", "prometheus_client", "pydantic", "python_multipart", "starlette", "uvicorn")


def __getattr__(name: str) -> Any:
    try:
        return _get(name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in _EXTRA:
            raise MissingExtra("serving", "serve") from None
        raise
