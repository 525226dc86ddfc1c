"""Health check of the image: exit code 0 if `TIDEGATE_HEALTH_URL` answers 200, else 1 with the reason.

The image has no curl. Must stay cheap, since it runs every few seconds: it imports nothing of Tidegate, and its
interpreter is started without site-packages.
"""

import http.client
import os
import sys
from urllib.parse import urlsplit

TIMEOUT_S = 2.0
ANSWER_BYTES_MAX = 2000


def fault(url: str) -> str | None:
    """What is wrong with the answer at `url`, None if nothing is."""
    place = urlsplit(url)
    try:
        connection = http.client.HTTPConnection(place.netloc, timeout=TIMEOUT_S)
        try:
            connection.request("GET", place.path or "/")
            answer = connection.getresponse()
            body = answer.read(ANSWER_BYTES_MAX).decode("utf-8", "replace")
        finally:
            connection.close()
    except (OSError, http.client.HTTPException) as error:
        return f"{url}: {error}"
    return None if answer.status == http.client.OK else f"{url}: {answer.status} {body}"


if __name__ == "__main__":
    sys.exit(fault(os.environ["TIDEGATE_HEALTH_URL"]))
