"""The content-security policy in a real browser: what it forbids is tried, and the browser says that it stopped it.

Nothing here depends on a network: "elsewhere" answers, and each attempt is seen to succeed where the policy is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from serving_process import Server

pytest.importorskip("playwright.sync_api", reason="browser tests need playwright")
from playwright.sync_api import Browser, Page, Route

ELSEWHERE = "http://elsewhere.example/a"
BROKEN = "window.broken = 1"
SMUGGLED = {  # markup that found its way into the page, and the part of the policy that stops it
    f"<script>{BROKEN}</script>": "script-src-elem",
    f'<script src="{ELSEWHERE}.js"></script>': "script-src-elem",
    f'<img src="static/icon.svg" onload="{BROKEN}">': "script-src-attr",
    f'<img src="{ELSEWHERE}.svg">': "img-src",
    f'<link rel="stylesheet" href="{ELSEWHERE}.css">': "style-src-elem",
    "<style>body { --broken: 1 }</style>": "style-src-elem",
    '<b style="color: red">b</b>': "style-src-attr",
    f'<iframe src="{ELSEWHERE}.svg"></iframe>': "frame-src",
}
TRUSTED = "require-trusted-types-for"
TRIED = {  # what a script of the page might do wrong
    f"fetch('{ELSEWHERE}.svg').then(() => {{ {BROKEN} }}, () => {{}})": "connect-src",
    f"const own = document.createElement('script'); own.append('{BROKEN}'); document.body.append(own)": TRUSTED,
    f"document.body.setAttribute('onclick', '{BROKEN}'); document.body.click()": TRUSTED,
    "document.body.innerHTML = '<i id=broken></i>'; window.broken = 1": TRUSTED,
}
LISTEN = """
    window.stopped = [];
    document.addEventListener("securitypolicyviolation", event => window.stopped.push(event.effectiveDirective));
"""
HARM = """() => {
    const bold = document.querySelector("main b");
    const red = bold && getComputedStyle(bold).color === "rgb(255, 0, 0)";
    return red || window.broken === 1 || getComputedStyle(document.body).getPropertyValue("--broken") === "1";
}"""
CONTENT = {
    "js": ("text/javascript", BROKEN),
    "css": ("text/css", "body { --broken: 1 }"),
    "svg": ("image/svg+xml", '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'),
}
Visit = Callable[..., tuple[Page, list[str]]]


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Visit]:
    """`visit(smuggled, bypass_csp=…)`: the page with this markup in it, and what it asks of elsewhere."""
    contexts = []

    def show(smuggled: str = "", **options: Any) -> tuple[Page, list[str]]:
        context, requested = browser.new_context(**options), list[str]()
        contexts.append(context)
        context.set_default_timeout(20_000)
        context.add_init_script(LISTEN)

        def answer(route: Route) -> None:
            requested.append(route.request.url)
            kind, body = CONTENT[route.request.url.rsplit(".", 1)[1]]
            allowed = {"access-control-allow-origin": "*"}
            route.fulfill(status=200, content_type=kind, body=body, headers=allowed)

        def smuggle(route: Route) -> None:
            given = route.fetch()
            assert "content-security-policy" in given.headers
            route.fulfill(response=given, body=given.text().replace("</h1>", f"</h1>{smuggled}"))

        context.route("http://elsewhere.example/**", answer)
        context.route(f"{server.address}/", smuggle)
        page = context.new_page()
        page.goto(f"{server.address}/")
        return page, requested

    yield show
    for context in contexts:
        context.close()


def harm(page: Page, requested: list[str]) -> bool:
    return bool(requested) or bool(page.evaluate(HARM))


def check(visit: Visit, smuggled: str, attempt: str, part: str) -> None:
    page, requested = visit(smuggled)
    page.evaluate(f"() => {{ try {{ {attempt} }} catch {{ /* refused at once */ }} }}")
    page.wait_for_function("part => window.stopped.includes(part)", arg=part)
    assert not harm(page, requested)
    page, requested = visit(smuggled, bypass_csp=True)
    page.evaluate(f"() => {{ {attempt} }}")
    for _ in range(100):
        if harm(page, requested):
            break
        page.wait_for_timeout(50)
    assert harm(page, requested) and page.evaluate("window.stopped") == []  # without the policy it works


@pytest.mark.parametrize("smuggled", SMUGGLED)
def test_markup_that_is_smuggled_into_the_page_does_nothing(visit: Visit, smuggled: str) -> None:
    check(visit, smuggled, "", SMUGGLED[smuggled])


@pytest.mark.parametrize("attempt", TRIED)
def test_scripts_of_the_page_cannot_make_words_into_code_or_reach_elsewhere(visit: Visit, attempt: str) -> None:
    check(visit, "", attempt, TRIED[attempt])


def test_the_page_itself_does_nothing_that_is_forbidden(visit: Visit) -> None:
    page, requested = visit()
    page.locator(".tile").first.wait_for()
    page.fill("#query", "star")
    page.locator(".card[data-id]").first.click()
    page.get_by_role("button", name="Why this picture?").click()
    page.locator(".chip-word").first.wait_for()
    assert page.evaluate("window.stopped") == [] and requested == []
