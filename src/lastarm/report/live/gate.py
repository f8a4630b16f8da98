"""Who may ask the server for what: every request is checked here before anything is looked up.

A page that watches a search is on a machine where other programs, other users and the pages of
strangers in the same browser may try to reach it. So an address has a secret, and only a request
that a browser makes for this page, or a person for its address, is answered. What is refused is
told nothing: not whether the secret was right, and not what there is.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection
from email.message import Message
from http import HTTPStatus
from typing import NamedTuple

VERBS = ("GET", "HEAD")
SITES = ("none", "same-origin")  # typed or clicked by a person outside of any page, or this page
TARGET = re.compile(
    r"/(?P<secret>[\w-]{20,80})/(?P<what>[a-z]{0,10})(?:\?(?P<query>[\w.=&]{0,80}))?"
)
WORD = re.compile(r"(?P<name>[a-z]{1,10})=(?P<value>[\w.]{1,40})")


class Refused(Exception):
    """A request that is not answered, with the status that says so."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class Asked(NamedTuple):
    """What a request that may be answered asks for."""

    what: str
    words: dict[str, str]

    def number(self, name: str, below: int) -> int:
        """A whole number among its words."""
        value = self.words.get(name, "")
        if not re.fullmatch(r"\d{1,12}", value, re.ASCII) or int(value) >= below:
            raise Refused(HTTPStatus.NOT_FOUND)
        return int(value)


class Gate:
    """The rules of one server.

    :param secret: a part of the address that only those know who were told it.
    :param hosts: by which names, with their ports, the server is asked; no other name is answered,
        also if it leads to this machine.
    :param scheme: "http" or "https".

    >>> gate = Gate("s" * 32, hosts=["127.0.0.1:8000"], scheme="http")
    >>> headers = Message()
    >>> headers["Host"] = "127.0.0.1:8000"
    >>> gate.asked("GET", f"/{'s' * 32}/news?search=0", headers)
    Asked(what='news', words={'search': '0'})
    >>> gate.asked("DELETE", f"/{'s' * 32}/news?search=0", headers)
    Traceback (most recent call last):
    lastarm.report.live.gate.Refused: Method Not Allowed
    """

    def __init__(self, secret: str, hosts: Collection[str], scheme: str) -> None:
        self._secret = secret.encode()
        self._hosts = frozenset(hosts)
        self._scheme = scheme

    def asked(self, verb: str, target: str, headers: Message) -> Asked:
        """What is asked for, by a request that may be answered.

        :param verb: such as "GET".
        :param target: the path and the query, as they came.
        :param headers: all of them.
        """
        hosts = headers.get_all("Host", [])
        if (
            len(hosts) != 1 or hosts[0] not in self._hosts
        ):  # another name that was made to lead here
            raise Refused(HTTPStatus.FORBIDDEN)
        origins = headers.get_all("Origin", [])
        if any(origin != f"{self._scheme}://{hosts[0]}" for origin in origins):
            raise Refused(HTTPStatus.FORBIDDEN)
        if any(site not in SITES for site in headers.get_all("Sec-Fetch-Site", [])):
            raise Refused(HTTPStatus.FORBIDDEN)
        if verb not in VERBS:
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED)
        if "Upgrade" in headers or "Transfer-Encoding" in headers:
            raise Refused(HTTPStatus.BAD_REQUEST)
        if headers.get("Content-Length", "0") != "0":
            raise Refused(HTTPStatus.BAD_REQUEST)
        # As they are: nothing is decoded, so nothing can be hidden by encoding it.
        found = TARGET.fullmatch(target)
        secret = found["secret"].encode() if found else b""
        if not hmac.compare_digest(secret, self._secret) or not found:
            raise Refused(HTTPStatus.NOT_FOUND)
        return Asked(found["what"], _words(found["query"] or ""))


def _words(query: str) -> dict[str, str]:
    words: dict[str, str] = {}
    for word in filter(None, query.split("&")):
        found = WORD.fullmatch(word)
        if not found or found["name"] in words:
            raise Refused(HTTPStatus.NOT_FOUND)
        words[found["name"]] = found["value"]
    return words
