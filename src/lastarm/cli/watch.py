"""`lastarm watch`: a page that follows searches while they run."""

from __future__ import annotations

import os
import ssl
import sys
import warnings
import webbrowser
from ipaddress import IPv4Address, IPv6Address, ip_address
from threading import Event

from lastarm.errors import InvalidArgument, Unencrypted
from lastarm.report.live.server import Address, Server, as_browsers_say
from lastarm.report.live.watched import named

MOST_JOURNALS = 64


def watch(
    journals: tuple[str, ...],
    browse: bool,
    port: int,
    host: str,
    certificate: str | None,
    key: str | None,
    unencrypted: bool,
    until_closed: bool,
) -> None:
    """Serve the page until Ctrl-C."""
    if len(journals) > MOST_JOURNALS:
        rule = f"one page follows at most {MOST_JOURNALS}"
        raise InvalidArgument.of("journals", len(journals), rule, "Name fewer of them")
    address = Address(host, port, _tls(host, certificate, key, unencrypted=unencrypted))
    try:
        server = Server(list(named(list(dict.fromkeys(journals)))), address)
    except OSError as error:
        where = f"{host}:{port}" if port else host
        why = f"the system refused: {error.strerror or error}"
        raise InvalidArgument.of("--host", where, why, "Use another one") from error
    with server:
        if until_closed:
            if hasattr(os, "nice"):
                os.nice(5)  # the search comes first
            print(server.url, flush=True)
            while os.read(sys.stdin.fileno(), 1024):
                pass
            return
        print(f"Watch at {server.url}\nCtrl-C ends the page, and no search.", flush=True)
        if browse:
            webbrowser.open(server.url)
        Event().wait()


def _tls(
    host: str, certificate: str | None, key: str | None, *, unencrypted: bool
) -> ssl.SSLContext | None:
    """How what is sent is encrypted; nothing that other machines can reach is not, unasked."""
    if _is_everywhere(host):
        rule = "a page is served under one name only, so that no other can be made to lead to it"
        raise InvalidArgument.of("--host", host, rule, "Use the name or address of this machine")
    if key and not certificate:
        raise InvalidArgument.of("--key", key, "it is of a certificate", "Add --certificate")
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(certificate, key)
        except OSError as error:  # also what ssl raises
            rule = f"it cannot be used: {error.strerror or error}"
            way_out = "Use a file in PEM with the certificate and its key"
            raise InvalidArgument.of("--certificate", certificate, rule, way_out) from error
        return context
    if not _is_here(host):
        if not unencrypted:
            rule = "other machines can reach it, and what is sent there has to be encrypted"
            way_out = "Add --certificate and --key, or --unencrypted if you trust the network"
            raise InvalidArgument.of("--host", host, rule, way_out)
        warnings.warn(Unencrypted(host), stacklevel=2)
    return None


def _is_everywhere(host: str) -> bool:
    """Whether it stands for all addresses of this machine."""
    if host in ("", "*"):
        return True
    address = _address(host)
    return address is not None and address.is_unspecified


def _is_here(host: str) -> bool:
    """Whether only this machine can reach it."""
    if host.lower() == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """The address that is meant, however it is written; None for a name."""
    try:
        found = ip_address(as_browsers_say(host))
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
