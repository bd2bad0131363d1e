"""Hosts that a web server may listen on, in whatever spelling: `0`, `[::]` and `0.0.0.0` all mean every address."""

import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address


def is_everywhere(host: str) -> bool:
    """Whether a server that listens on this host is reached at every address of its machine."""
    return any(address.is_unspecified for address in _addresses(host))


def from_here(host: str) -> str:
    """Return the host at which this machine itself reaches a server that listens on `host`, without brackets."""
    everywhere = [address for address in _addresses(host) if address.is_unspecified]
    if not everywhere:
        return host.strip("[]")
    return "::1" if everywhere[0].version == 6 else "127.0.0.1"


def _addresses(host: str) -> Iterator[IPv4Address | IPv6Address]:
    """Yield the addresses that this host stands for, as the system reads it; none if it does not know the host."""
    host = host.strip("[]") or "0.0.0.0"  # noqa: S104 - which a socket takes an empty host for
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError):  # an unknown name, or no name at all: nothing can listen there
        return
    for *_, where in found:
        address = ip_address(where[0])
        yield (isinstance(address, IPv6Address) and address.ipv4_mapped) or address
