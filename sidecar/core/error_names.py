"""Kafka's name of an error code that came from a broker, which may be newer than our table."""

from codec.error_codes import ErrorCode


def error_name(error_code: int) -> str:
    """`CLUSTER_AUTHORIZATION_FAILED` for 31; `error 999` where Kafka 4.4 knows no name."""
    try:
        return ErrorCode(error_code).name
    except ValueError:
        return f"error {error_code}"
