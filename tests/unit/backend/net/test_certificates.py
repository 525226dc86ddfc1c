"""Subjects of certificates as Java writes them: made with the openssl command, read back."""

import ssl
import subprocess
from pathlib import Path

import pytest

from backend.net.certificates import BadCertificate, subject_of


def certificate(folder: Path, subject: str) -> bytes:
    pem = folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-utf8"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(pem), "-days", "2", "-subj", subject]
    subprocess.run([*command, "-multivalue-rdn"], check=True, capture_output=True, timeout=30)
    return ssl.PEM_cert_to_DER_cert(pem.read_text())


@pytest.mark.parametrize(
    ("subject", "written"),
    [
        ("/CN=ann", "CN=ann"),
        ("/C=DE/ST=Berlin/L=Mitte/O=Acme/OU=ops/CN=ann", "CN=ann,OU=ops,O=Acme,L=Mitte,ST=Berlin,C=DE"),
        ("/DC=org/DC=acme/UID=a1/street=Main/CN=ann", "CN=ann,STREET=Main,UID=a1,DC=acme,DC=org"),
        (r"/O=Acme\, Inc. <\+>/CN=a\"b\\c\;d", r"CN=a\"b\\c\;d,O=Acme\, Inc. \<\+\>"),
        ("/CN=#1 ", r"CN=\#1\ "),
        ("/CN=Zoë", "CN=Zoë"),
        ("/O=a+OU=b/CN=c", "CN=c,O=a+OU=b"),
        ("/CN=ann/emailAddress=a@b.c", "1.2.840.113549.1.9.1=#16056140622e63,CN=ann"),
    ],
)
def test_a_subject_in_the_words_of_rfc_2253(tmp_path: Path, subject: str, written: str) -> None:
    assert subject_of(certificate(tmp_path, subject)) == written


def test_what_is_no_certificate_is_refused(tmp_path: Path) -> None:
    whole = certificate(tmp_path, "/CN=ann")
    for cut in range(0, len(whole), 7):
        with pytest.raises(BadCertificate):
            subject_of(whole[:cut])
    with pytest.raises(BadCertificate):
        subject_of(b"\x30\x02\x30\x00")
