"""The OpenAPI document: true of this server, and what schemathesis makes of it finds no error of ours."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

from serving import Client
from serving_process import Server

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")


def test_every_endpoint_is_described_with_its_limits(client: Client) -> None:
    document = client(max_k=42).get("/openapi.json").json()
    assert set(document["paths"]) == {
        "/search", "/search/image", "/explain", "/items", "/items/{id}", "/items/{id}/image", "/items/{id}/alike",
        "/about", "/health", "/metrics", "/session", "/reload",
    }  # fmt: skip
    parts = document["components"]["schemas"]
    assert parts["TextQuery"]["properties"]["k"]["maximum"] == 42
    for path in document["paths"].values():
        for operation in path.values():
            assert operation["description"]
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    assert response["content"]["application/json"]["schema"]["$ref"].endswith("/ErrorMessage")


def test_schemathesis_finds_no_error_of_ours(server: Server) -> None:
    """Requests made from the document, right ones and wrong ones: none gets a 5xx, and every answer is as described."""
    schema = schemathesis.openapi.from_url(f"{server.address}/openapi.json")
    seen = dict[str, set[int]]()

    def ask(case: Any) -> None:
        response = case.call()
        seen.setdefault(case.operation.label, set()).add(response.status_code)
        assert response.status_code < 500
        # no schema can say of bytes that they are a picture
        unfit = case.operation.label == "POST /search/image" and response.status_code == 415
        case.validate_response(
            response, excluded_checks=[schemathesis.checks.positive_data_acceptance] if unfit else []
        )

    modest = settings(max_examples=7, suppress_health_check=list(HealthCheck), database=None)
    for operation in schema.get_all_operations():
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            with contextlib.suppress(Unsatisfiable):  # nothing can be wrong with a request that has no parts
                modest(given(operation.ok().as_strategy(generation_mode=mode))(ask))()
    assert {200, 422} <= seen["POST /search"] and {200, 422} <= seen["GET /items"]
    assert 404 in seen["GET /items/{id}"] and 404 in seen["GET /items/{id}/image"]
    assert {415, 422} <= seen["POST /search/image"]
    assert {404, 422} <= seen["POST /explain"]
    assert server.ask("a red star").status_code == 200
