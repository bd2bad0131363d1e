"""Where webhooks may be sent: to public addresses alone, looked at again for each try, and to none but those."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from yarl import URL

from conversations.notifications.webhooks.addresses import BadAddress, checked, is_public, parsed
from conversations.notifications.webhooks.posting import post
from conversations.notifications.webhooks.signing import new_secret
from tests.conversations.notifications.webhooks.receiver import Receiver, receiving

PRIVATE = """
    0.0.0.0 10.0.0.1 100.64.0.1 127.0.0.1 127.9.9.9 169.254.169.254 172.16.0.1 192.168.1.1 198.18.0.1 224.0.0.1
    239.1.1.1 240.0.0.1 255.255.255.255 192.0.2.1
    :: ::1 ::127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 fe80::1 fc00::1 fd00:ec2::254 fec0::1 ff02::1 ff0e::1
    2001:db8::1 2002:7f00:1:: 2002:a00:1:: 2002:101:101::1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1
"""
PUBLIC = "1.1.1.1 93.184.216.34 2606:4700::1111 ::ffff:1.1.1.1 64:ff9b::101:101"


def test_only_addresses_that_everybody_can_reach_are_public() -> None:
    assert [text for text in PRIVATE.split() if is_public(ip_address(text))] == []
    assert [text for text in PUBLIC.split() if not is_public(ip_address(text))] == []


@pytest.mark.parametrize(
    "host", ["localhost", "127.1", "2130706433", "0x7f.1", "0", "[::1]", "[::ffff:127.0.0.1]", "[fe80::1%25lo]"]
)
def test_no_spelling_of_a_private_address_is_taken(host: str) -> None:
    with pytest.raises(BadAddress, match=r"not lead to a public address|has no address|not a valid URL"):
        checked(parsed(f"https://{host}/"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ftp://1.1.1.1/", "Enter a URL"),
        ("https:///hook", "Enter a URL"),
        ("//1.1.1.1/", "Enter a URL"),
        ("https://1.1.1.1:99999/", "not a valid URL"),
        ("https://[::1/", "not a valid URL"),
        ("https://me:secret@1.1.1.1/", "name and the password"),
        ("https://@1.1.1.1/#part", "after #"),
        (f"https://1.1.1.1/{'x' * 500}", "Enter a URL"),
    ],
)
def test_what_is_no_address_of_a_webhook_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadAddress, match=why):
        parsed(text)


def test_plain_http_is_only_for_the_networks_of_the_setting(settings: Any) -> None:
    with pytest.raises(BadAddress, match="Only https"):
        checked(URL("http://1.1.1.1/"))
    settings.AGENTSITE_WEBHOOK_NETWORKS = [ip_network("10.1.0.0/16"), ip_network("fd00::/8")]
    assert checked(URL("http://10.1.2.3/")) == ["10.1.2.3"]
    assert checked(URL("http://[::ffff:10.1.2.3]/")) == ["::ffff:10.1.2.3"]
    for refused in ("http://10.2.0.1/", "https://10.2.0.1/", "http://1.1.1.1/"):
        with pytest.raises(BadAddress):
            checked(URL(refused))


def test_a_name_with_one_private_address_among_others_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (text, 443)) for text in ("1.1.1.1", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: both)
    with pytest.raises(BadAddress, match=r"does not lead to a public"):
        checked(URL("https://example.org/"))


def test_a_name_is_looked_up_once_for_each_try(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it cannot lead elsewhere after it was checked: the connection goes to the very address."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def rebinds(host: str, port: int, *args: Any, **more: Any) -> Any:
        if host != "rebind.example":
            return real(host, port, *args, **more)
        asked.append(host)
        return real("127.0.0.1" if len(asked) == 1 else "10.0.0.1", port, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", rebinds)
    url = receiver.url.replace("127.0.0.1", "rebind.example")
    assert post(url, new_secret(), "msg_1", "{}").status == 204
    assert len(asked) == 1
    assert receiver.got[0].headers["Host"].startswith("rebind.example:")
    assert "does not lead to a public" in post(url, new_secret(), "msg_2", "{}").error
    assert len(receiver.got) == 1


def test_a_receiver_must_prove_its_name(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the site connects to an address, it asks for the name in the URL and refuses a certificate of its own."""
    names: list[str] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(tmp_path, "secure.example"))
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _host, *args, **more: real("127.0.0.1", *args, **more))
    settings.AGENTSITE_WEBHOOK_NETWORKS = [ip_network("127.0.0.0/8")]
    with receiving(tls=context) as receiver:
        url = receiver.url.replace("127.0.0.1", "secure.example")
        outcome = post(url, new_secret(), "msg_1", "{}")
        assert (outcome.status, receiver.got, names) == (None, [], ["secure.example"])
        assert outcome.error == "There was no answer: its certificate cannot be trusted."


def certificate(folder: Path, name: str) -> Path:
    """Write a key and a certificate for this name that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    file = folder / "receiver.pem"
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    file.write_bytes(private + made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return file
