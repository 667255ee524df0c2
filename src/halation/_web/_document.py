"""Self-contained pages: one file, a content policy that allows no requests, shared colours and icon."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

import halation
from halation._web._markup import Child, Markup, tag

__all__ = ["SHARED", "csp_hash", "document", "shared"]

SHARED = ("palette.css", "theme.js", "icon.svg")


def shared(name: str) -> str:
    """The text of one of the files that all pages share."""
    return files("halation._web").joinpath(name).read_text(encoding="utf-8")


def csp_hash(text: str) -> str:
    """The hash of a style or script, by which a content security policy allows it and no other.

    >>> csp_hash("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def document(
    title: str, body: Child, *, styles: Sequence[str], head_scripts: Sequence[str] = (), scripts: Sequence[str] = ()
) -> str:
    """A complete HTML page that contains its styles and scripts and fetches nothing.

    body           the content, which comes before the scripts
    styles         style sheets, after the shared palette
    head_scripts   run before anything is drawn; `scripts` run at the end of the body
    """
    style = "\n".join([shared("palette.css"), *styles])
    icon = base64.b64encode(shared("icon.svg").encode()).decode("ascii")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, [*head_scripts, *scripts])),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"halation {halation.__version__}"),
        tag("title", title),
        tag("link", rel="icon", type="image/svg+xml", href=f"data:image/svg+xml;base64,{icon}"),
        tag("style", Markup(style)),
        [tag("script", Markup(script)) for script in head_scripts],
    )
    end = [tag("script", Markup(script)) for script in scripts]
    return f'<!doctype html>\n<html lang="en">{head}{tag("body", body, end)}</html>\n'


def _policy(style: str, scripts: Sequence[str]) -> str:
    parts = ["default-src 'none'", "img-src data:", f"style-src {csp_hash(style)}"]
    if scripts:
        parts.append(f"script-src {' '.join(map(csp_hash, scripts))}")
    return "; ".join([*parts, "base-uri 'none'", "form-action 'none'"])
