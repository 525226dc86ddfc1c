"""Tokens as text."""

import json
from base64 import urlsafe_b64decode

import pytest

from sidecar.core.tokens import encode_token


@pytest.mark.parametrize("cluster_id", [None, "", "9hzex4xQTY-WdJx4C11VJw", 'a.b,"c"]:\n', "Zürich"])
def test_no_cluster_id_can_break_a_token(cluster_id: str | None) -> None:
    token = encode_token(cluster_id, -1, 2**62)
    assert json.loads(urlsafe_b64decode(token + "=" * (-len(token) % 4))) == [1, cluster_id, -1, 2**62]


def test_a_token_can_stand_in_a_url_and_on_a_command_line() -> None:
    assert encode_token("?>?>?>~~~", 3, 41).replace("-", "").replace("_", "").isalnum()
