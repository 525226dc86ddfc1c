"""TLS contexts from the files that a configuration names; every fault is a `ConfigError` with the file and the remedy.

Used when a process starts, and again when its files have changed: a context is made whole or not at all, so a bad file
never replaces a good one. Knows no socket and no key path. Passwords of keys are read when they are needed and kept
nowhere.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final, Literal, TypeAlias

from config.faults import ConfigError, Fault
from config.files import read_secret, read_text
from config.sidecar import Ssl

ClientAuth: TypeAlias = Literal["none", "optional", "required"]

_CERTIFICATE: Final = "-----BEGIN CERTIFICATE-----"
_PRIVATE_KEY: Final = "PRIVATE KEY-----"
_VERIFY: Final = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


def client_context(files: Ssl) -> ssl.SSLContext:
    """For connections that we open: the peer's certificate is always verified, its name unless that is turned off.

    Without `ca_file` the authorities of the system are trusted. TLS 1.2 and later.

    Raises:
        ConfigError: a file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = files.verify_hostname
    if files.ca_file is None:
        context.load_default_certs()
    else:
        _trust(context, files.ca_file)
    if files.cert_file is not None:
        _identify(context, files.cert_file, files)
    return context


def server_context(files: Ssl, client_auth: ClientAuth) -> ssl.SSLContext:
    """For connections that others open to us; `client_auth` says whether they must show a certificate.

    TLS 1.2 and later. `files` has a `cert_file`, and with `client_auth` a `ca_file`: the configuration demands it.

    Raises:
        ConfigError: a file cannot be used.
    """
    assert files.cert_file is not None, "the configuration demands it"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = _VERIFY[client_auth]
    if files.ca_file is not None:
        _trust(context, files.ca_file)
    _identify(context, files.cert_file, files)
    return context


def files_of(files: Ssl) -> list[Path]:
    """The files that a context is made from: whoever reloads looks whether they have changed."""
    named = (files.ca_file, files.cert_file, files.key_file, files.key_password_file)
    return [file for file in named if file is not None]


def _trust(context: ssl.SSLContext, ca_file: Path) -> None:
    text = _pem(ca_file, _CERTIFICATE, "certificate of an authority")
    try:
        context.load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError) as error:
        raise _fault(ca_file, f"has a certificate that cannot be read ({_reason(error)})") from None


def _identify(context: ssl.SSLContext, cert_file: Path, files: Ssl) -> None:
    key_file = files.key_file or cert_file
    _pem(cert_file, _CERTIFICATE, "certificate")
    _pem(key_file, _PRIVATE_KEY, "private key")
    password = None if files.key_password_file is None else read_secret(files.key_password_file)
    asked = False

    def give_password() -> str:
        # Without this function OpenSSL would ask at the terminal.
        nonlocal asked
        asked = True
        return password or ""

    try:
        context.load_cert_chain(cert_file, files.key_file, password=give_password)
    except (ssl.SSLError, OSError, ValueError) as error:
        fault = _key_fault(error, asked=asked, cert_file=cert_file, key_file=key_file, files=files)
    else:
        return
    # Raised outside the handler: a traceback would carry the frame that knows the password.
    raise fault


def _key_fault(error: Exception, *, asked: bool, cert_file: Path, key_file: Path, files: Ssl) -> ConfigError:
    if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
        return _fault(key_file, f"is not the private key of the first certificate in {cert_file}")
    if asked and files.key_password_file is None:
        return _fault(key_file, "is encrypted; name the file that holds its password in key_password_file")
    if asked:
        return _fault(key_file, f"cannot be opened with the password in {files.key_password_file}")
    return _fault(cert_file, f"or its private key in {key_file} cannot be read ({_reason(error)})")


def _pem(path: Path, mark: str, what: str) -> str:
    text = read_text(path)
    if mark not in text:
        raise _fault(path, f"holds no {what} in PEM (a block with {mark.removeprefix('-----BEGIN ').rstrip('-')})")
    return text


def _reason(error: Exception) -> str:
    return (isinstance(error, ssl.SSLError) and error.reason) or type(error).__name__


def _fault(path: Path, reason: str) -> ConfigError:
    return ConfigError([Fault(name=str(path), reason=reason)])
