"""How the sidecar gets to the brokers: what is read again for every login, and when."""

from pathlib import Path

import pytest

from config.faults import ConfigError
from config.sidecar import ClusterSecurity
from sidecar.net.access import Access, tls_arguments
from sidecar.net.sasl import Credentials
from tests.support.certificates import Authority

pytestmark = pytest.mark.row("5.4")


def bearer(token_file: Path) -> ClusterSecurity:
    sasl = {"mechanism": "OAUTHBEARER", "token_file": str(token_file)}
    return ClusterSecurity.model_validate({"protocol": "SASL_PLAINTEXT", "sasl": sasl})


def test_without_sasl_and_tls_there_is_nothing_to_say() -> None:
    access = Access(ClusterSecurity())
    assert access.login is None
    assert access.tls("broker") is None
    assert tls_arguments(None, 1000) == {}


def test_a_token_is_read_again_for_every_login(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    access = Access(bearer(file))
    assert access.login is access
    login = access
    assert login.now() == Credentials(mechanism="OAUTHBEARER", token="first")
    file.write_text("second\n")
    assert login.now().token == "second"
    file.unlink()
    assert login.now().token == "second"
    assert login.now().token == "second"
    words = f"{file}: cannot be read: No such file or directory; the login goes on with what the file held before"
    assert [record.getMessage() for record in caplog.records] == [words]
    file.write_text("third")
    assert login.now().token == "third"


def test_a_file_that_is_missing_at_the_start_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        Access(bearer(tmp_path / "none"))


@pytest.mark.row("5.1")
def test_the_name_that_is_dialled_goes_with_the_context_which_a_bad_file_does_not_replace(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    security = ClusterSecurity.model_validate({"protocol": "SSL", "ssl": {"ca_file": str(authority.ca_file)}})
    access = Access(security)
    tls = access.tls("broker-1")
    assert tls is not None
    assert tls.server_hostname == "broker-1"
    arguments = tls_arguments(tls, 1000)
    assert (arguments["ssl"], arguments["server_hostname"]) == (tls.context, "broker-1")
    content = authority.ca_file.read_text()
    authority.ca_file.write_text("")
    with pytest.raises(ConfigError, match="holds no certificate"):
        access.take(Access.prepare(security))
    assert access.tls("broker-1") == tls
    authority.ca_file.write_text(content)
    access.take(Access.prepare(security))
    assert access.tls("broker-1") != tls
