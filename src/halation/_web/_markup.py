"""HTML with automatic escaping: text is escaped, `Markup` is already HTML."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any

__all__ = ["Child", "Markup", "data_block", "tag"]


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


Child = str | Markup | None | Iterable[Any]
_VOID = {"img", "input", "meta", "link", "br", "hr"}


def tag(name: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Markup:
    """An HTML element. Children are text, markup, or lists of them; attributes that are None or False are left out.

    `class_` is class and `data_x` data-x; values are escaped like text.

    >>> tag("p", "a < b", tag("em", "&"), class_="small", hidden=True, id=None)
    '<p class="small" hidden>a &lt; b<em>&amp;</em></p>'
    """
    shown = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None and value is not False
    )
    opened = f"<{name}{shown}>"
    return Markup(opened if name in _VOID else f"{opened}{''.join(_flat(children))}</{name}>")


def _attribute(key: str, value: str | int | float | bool) -> str:
    name = key.rstrip("_").replace("_", "-")
    name = "viewBox" if name == "viewbox" else name  # SVG attributes are case-sensitive
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'


def _flat(children: Iterable[Any]) -> Iterable[str]:
    for child in children:
        if isinstance(child, Markup):
            yield child
        elif isinstance(child, str):
            yield html.escape(child, quote=False)
        elif child is not None:
            yield from _flat(child)


def data_block(name: str, value: Any) -> Markup:
    """A value for the page's scripts as JSON; `<`, `>` and `&` are escaped, so that no text can end the block.

    >>> data_block("x", "</script>")
    '<script type="application/json" id="x">"\\\\u003c/script\\\\u003e"</script>'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(f'<script type="application/json" id="{html.escape(name)}">{text}</script>')
