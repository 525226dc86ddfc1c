"""TLS contexts: what they demand, and that every bad file is named with its remedy and without its content."""

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from config.faults import ConfigError
from config.sidecar import Ssl
from config.tls import client_context, files_of, server_context
from tests.support.certificates import Authority, Identity, encrypted

PASSWORD = "open sesame"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def own(authority: Authority) -> Identity:
    return authority.sign("own")


def test_peers_and_their_names_are_verified_unless_names_are_turned_off(authority: Authority) -> None:
    context = client_context(Ssl(ca_file=authority.ca_file))
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    context = client_context(Ssl(ca_file=authority.ca_file, verify_hostname=False))
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, False)


def test_without_an_authority_those_of_the_system_are_trusted(authority: Authority) -> None:
    own = client_context(Ssl(ca_file=authority.ca_file)).cert_store_stats()["x509_ca"]
    assert own == 1
    system = ssl.create_default_context().cert_store_stats()
    assert client_context(Ssl()).cert_store_stats() == system


@pytest.mark.parametrize(
    ("client_auth", "mode"),
    [("none", ssl.CERT_NONE), ("optional", ssl.CERT_OPTIONAL), ("required", ssl.CERT_REQUIRED)],
)
def test_clients_show_a_certificate_where_they_must(
    authority: Authority, own: Identity, client_auth: str, mode: ssl.VerifyMode
) -> None:
    files = Ssl(ca_file=authority.ca_file, cert_file=own.cert_file, key_file=own.key_file)
    context = server_context(files, client_auth)  # type: ignore[arg-type]
    assert context.verify_mode is mode
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_the_key_may_stand_in_the_file_of_the_certificate_or_be_locked(tmp_path: Path, own: Identity) -> None:
    server_context(Ssl(cert_file=own.both_file), "none")
    password_file = tmp_path / "password"
    password_file.write_text(f"{PASSWORD}\n")
    locked = encrypted(own.key_file, PASSWORD)
    files = Ssl(cert_file=own.cert_file, key_file=locked, key_password_file=password_file)
    server_context(files, "none")
    assert files_of(files) == [own.cert_file, locked, password_file]
    assert files_of(Ssl()) == []


def _missing(authority: Authority, own: Identity, folder: Path) -> tuple[Ssl, str]:
    return Ssl(
        cert_file=folder / "no", key_file=own.key_file
    ), f"{folder}/no: cannot be read: No such file or directory"


def _key_as_certificate(authority: Authority, own: Identity, folder: Path) -> tuple[Ssl, str]:
    reason = "holds no certificate in PEM (a block with CERTIFICATE)"
    return Ssl(cert_file=own.key_file, key_file=own.key_file), f"{own.key_file}: {reason}"


def _no_key(authority: Authority, own: Identity, folder: Path) -> tuple[Ssl, str]:
    return Ssl(cert_file=own.cert_file), f"{own.cert_file}: holds no private key in PEM (a block with PRIVATE KEY)"


def _key_of_another(authority: Authority, own: Identity, folder: Path) -> tuple[Ssl, str]:
    key_file = authority.sign("other").key_file
    reason = f"is not the private key of the first certificate in {own.cert_file}"
    return Ssl(cert_file=own.cert_file, key_file=key_file), f"{key_file}: {reason}"


def _locked(authority: Authority, own: Identity, folder: Path) -> tuple[Ssl, str]:
    key_file = encrypted(own.key_file, PASSWORD)
    reason = "is encrypted; name the file that holds its password in key_password_file"
    return Ssl(cert_file=own.cert_file, key_file=key_file), f"{key_file}: {reason}"


def _wrong_password(authority: Authority, own: Identity, folder: Path) -> tuple[Ssl, str]:
    key_file, password_file = encrypted(own.key_file, PASSWORD), folder / "password"
    password_file.write_text(f"not {PASSWORD}")
    files = Ssl(cert_file=own.cert_file, key_file=key_file, key_password_file=password_file)
    return files, f"{key_file}: cannot be opened with the password in {password_file}"


def _broken_key(authority: Authority, own: Identity, folder: Path) -> tuple[Ssl, str]:
    key_file = folder / "broken"
    key_file.write_text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    reason = f"or its private key in {key_file} cannot be read"
    return Ssl(cert_file=own.cert_file, key_file=key_file), f"{own.cert_file}: {reason}"


def _broken_authority(authority: Authority, own: Identity, folder: Path) -> tuple[Ssl, str]:
    ca_file = folder / "broken"
    ca_file.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    files = Ssl(ca_file=ca_file, cert_file=own.cert_file, key_file=own.key_file)
    return files, f"{ca_file}: has a certificate that cannot be read"


def _empty_authority(authority: Authority, own: Identity, folder: Path) -> tuple[Ssl, str]:
    ca_file = folder / "empty"
    ca_file.write_text("")
    files = Ssl(ca_file=ca_file, cert_file=own.cert_file, key_file=own.key_file)
    return files, f"{ca_file}: holds no certificate of an authority in PEM (a block with CERTIFICATE)"


@pytest.mark.row("5.1")
@pytest.mark.row("5.8")
@pytest.mark.parametrize(
    "case",
    [
        _missing,
        _key_as_certificate,
        _no_key,
        _key_of_another,
        _locked,
        _wrong_password,
        _broken_key,
        _broken_authority,
        _empty_authority,
    ],
    ids=lambda case: case.__name__.strip("_"),
)
@pytest.mark.parametrize("side", ["client", "server"])
def test_a_bad_file_is_named_with_its_remedy(
    authority: Authority,
    own: Identity,
    tmp_path: Path,
    case: Callable[[Authority, Identity, Path], tuple[Ssl, str]],
    side: str,
) -> None:
    files, expected = case(authority, own, tmp_path)
    with pytest.raises(ConfigError) as caught:
        client_context(files) if side == "client" else server_context(files, "none")
    message = str(caught.value)
    assert message.startswith(expected)
    assert PASSWORD not in message
    assert PASSWORD not in repr(caught.value.__cause__) + repr(caught.value.__context__)
