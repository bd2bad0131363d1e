"""Addresses: where the site may send a webhook, looked at again for each try.

Somebody who may enter an address could otherwise have the site reach what only the site can: the machine itself, its
network, the metadata of a cloud. A name may lead elsewhere at each look, so the connection is made to exactly the
addresses that were checked (conversations.notifications.webhooks.posting).
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from django.conf import settings
from yarl import URL

PLAIN, SECURE = "http", "https"
URL_MOST = 500
_UNICAST, _NAT64 = IPv6Network("2000::/3"), IPv6Network("64:ff9b::/96")
Address = IPv4Address | IPv6Address


class BadAddress(Exception):
    """An address to which no webhook is sent. The message says why."""


def parsed(text: str) -> URL:
    """Return an address that could be one of a webhook, wherever its host is. Raises BadAddress."""
    try:
        url = URL(text.strip())
        port = url.port
    except ValueError:
        raise BadAddress("This is not a valid URL.") from None
    if url.scheme not in (PLAIN, SECURE) or not url.raw_host or not port or len(str(url)) > URL_MOST:
        raise BadAddress("Enter a URL like https://example.org/hook.")
    if url.raw_user is not None or url.raw_password is not None:
        raise BadAddress("Leave out the name and the password before the host: what is sent is signed.")
    if url.raw_fragment:
        raise BadAddress("Leave out the part after #: it would not be sent.")
    return url


def checked(url: URL) -> list[str]:
    """Return the addresses of its host now, all of which a webhook may be sent to. Raises BadAddress."""
    host, port = url.raw_host or "", url.port or 0
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise BadAddress(f"The name {host} has no address.") from None
    texts = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for text in texts:
        address = _plain(ip_address(text))
        if any(address in network for network in settings.AGENTSITE_WEBHOOK_NETWORKS):
            continue
        if not is_public(address):
            raise BadAddress(f"{host} does not lead to a public address.")
        if url.scheme != SECURE:
            raise BadAddress("Only https is allowed for public addresses.")
    return texts


def is_public(address: Address) -> bool:
    """Whether everybody can reach this address; of one that stands for an IPv4 address, whether that is public."""
    address = _plain(address)
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast
    if address in _NAT64:
        return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
    tunnel = address.sixtofour or address.teredo  # global to some versions of Python, and out of use
    return address in _UNICAST and address.is_global and not tunnel


def _plain(address: Address) -> Address:
    """Return the IPv4 address that is written as one of IPv6, or the address itself."""
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
