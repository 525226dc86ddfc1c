"""Tokens: a place in the metadata log of one cluster, as text that can be handed on.

A token is {version, cluster id, leader epoch, offset} (consistency.md section 3): base64url, without padding, of the
JSON array `[1, "cluster id", leader epoch, offset]`. No separator can occur in a part and break it. To everybody but
Tidegate it is opaque.
"""

import json
from base64 import urlsafe_b64encode
from typing import Final

from sidecar.core.ids import Offset

TOKEN_VERSION: Final = 1


def encode_token(cluster_id: str | None, leader_epoch: int, offset: Offset) -> str:
    """The text of a token.

    Args:
        cluster_id: None for a cluster that has told none.
        leader_epoch: of the head when the token was made; -1 where it is not known.
        offset: in `__cluster_metadata`, inclusive.
    """
    parts = json.dumps([TOKEN_VERSION, cluster_id, leader_epoch, offset], separators=(",", ":"))
    return urlsafe_b64encode(parts.encode()).rstrip(b"=").decode()
