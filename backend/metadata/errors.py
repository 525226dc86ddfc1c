"""What can go wrong inside the metadata plane: `ReplayError` blames the log, `ApiError` is an answer to a client."""

from typing import final

from codec.error_codes import ErrorCode


@final
class ReplayError(Exception):
    """A committed record does not fit the image: the log is damaged or was written by something else than Kafka."""


@final
class ApiError(Exception):
    """A request, or one resource in it, is refused.

    Attributes:
        code: Kafka's error code.
        message: What Kafka says with it, or None where it says nothing.
    """

    def __init__(self, code: ErrorCode, message: str | None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
