"""Certificates made when a test needs them, with the openssl command: an authority, and what it signs.

    authority = Authority(tmp_path)
    broker = authority.sign("broker", names=["localhost"], ips=["127.0.0.1"])
    Ssl(cert_file=broker.cert_file, key_file=broker.key_file)

Keys are on P-256, so that making one costs milliseconds. Files are PEM; keys are PKCS #8, which Kafka reads too.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "127.0.0.1"
_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A certificate with its key.

    Attributes:
        cert_file: PEM chain; key_file: PEM key; both_file: the key and the chain in one file, as Kafka takes them.
    """

    cert_file: Path
    key_file: Path
    both_file: Path


class Authority:
    """Signs certificates; they end up below ``folder``.

    Attributes:
        ca_file: what those who trust it need.
    """

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self.ca_file = folder / f"{name}.pem"
        self._folder = folder
        self._key_file = folder / f"{name}.key"
        self._serial = 1
        _key(self._key_file)
        _openssl("req", "-x509", "-key", self._key_file, "-out", self.ca_file, "-days", "2", "-subj", f"/CN={name}")

    def sign(self, name: str, *, ips: Sequence[str] = (LOOPBACK,), names: Sequence[str] = ()) -> Identity:
        """A certificate with the subject ``CN=name`` for these addresses and host names, for servers and clients."""
        self._serial += 1
        stem = f"{name}-{self._serial}"
        cert, key, both, asked = (self._folder / f"{stem}.{end}" for end in ("pem", "key", "both", "csr"))
        _key(key)
        _openssl("req", "-new", "-key", key, "-out", asked, "-subj", f"/CN={name}")
        alternatives = [*(f"IP:{ip}" for ip in ips), *(f"DNS:{host}" for host in names)]
        extensions = self._folder / f"{stem}.ext"
        extensions.write_text(f"subjectAltName={','.join(alternatives)}\n" if alternatives else "")
        by = ("-CA", self.ca_file, "-CAkey", self._key_file, "-set_serial", str(self._serial))
        _openssl("x509", "-req", "-in", asked, "-out", cert, "-days", "2", *by, "-extfile", extensions)
        both.write_text(key.read_text() + cert.read_text())
        return Identity(cert_file=cert, key_file=key, both_file=both)


def encrypted(key_file: Path, password: str) -> Path:
    """A copy of the key that needs this password."""
    file = key_file.with_suffix(".locked")
    _openssl("pkcs8", "-topk8", "-in", key_file, "-out", file, "-passout", f"pass:{password}")
    return file


def _key(file: Path) -> None:
    _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", file)


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=_TIMEOUT_S)
