"""The server of a page that watches searches: small, read-only, and for one person.

It answers GET and HEAD for four things: the page, what is new (a stream of server-sent events),
the story of an arm and the static report. Each is made of the journals that the server was given;
no path comes from a request. `gate` decides which requests are answered.

A request has to be there, whole, within seconds and in a few kilobytes. So many connections and no
more are served at a time, and whoever does not read what is sent is cut off.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import socket
import socketserver
import ssl
import threading
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from time import monotonic
from typing import Any, NamedTuple, cast

from lastarm.report.live.gate import Asked, Gate, Refused
from lastarm.report.live.watched import Since, Watched
from lastarm.report.page.html import chart_library_made_apart, live_page

EVERY = 0.2  # seconds between two looks at journals
BREATH = 0.2  # seconds between two messages to a browser
LONGEST = 900.0  # seconds of a stream; then the browser connects again, and goes on where it was
AGAIN = 1_000  # milliseconds until then
ALIVE = 10.0  # seconds without news, after which a stream says that it is still there
MOST_CONNECTIONS = 64
MOST_STREAMS = 24  # of these, so that pages can always be opened
MOST_HEAD = 8_192  # bytes of a request
PATIENCE = 5.0  # seconds for a request to come
SENDING = 20.0  # seconds for a browser to take what is sent
MOST_REPORTS = 1  # made at a time
LAST = 2.0  # seconds that are left for what is new when it ends
USUAL_PORTS = {"http": 80, "https": 443}

HEADERS = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Connection": "close",
}
NOTHING = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


class Address(NamedTuple):
    """Where to listen."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 is any that is free."""
    tls: ssl.SSLContext | None = None


def as_browsers_say(host: str) -> str:
    """A host as browsers name it: an address in its usual form, and a name in small letters.

    >>> [as_browsers_say(host) for host in ("127.1", "0:0::1", "MyHost")]
    ['127.0.0.1', '::1', 'myhost']
    """
    try:
        found = socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):  # it is a name
        return host.lower()
    return str(found[0][4][0])


class Server(socketserver.ThreadingTCPServer):
    """Serves a page for journals until it is closed.

    :param journals: those that are watched.
    :param address: where to listen.

    Use it as a context: threads of its own look at the journals and answer requests within.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = os.name == "posix"  # there it takes no port that somebody listens on
    request_queue_size = 128

    def __init__(self, journals: Sequence[Watched], address: Address) -> None:
        self.journals = journals
        self.library = chart_library_made_apart()
        page = live_page(self.library)
        self.html, self.rules = page.html.encode(), f"{page.rules}; frame-ancestors 'none'"
        host = as_browsers_say(address.host)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, address.port), Answer)
        port = self.server_address[1]
        shown = f"[{host}]" if ":" in host else host
        names = [shown, "localhost"] if host in ("127.0.0.1", "::1") else [shown]
        hosts = [f"{name}:{port}" for name in names]
        scheme = "https" if address.tls else "http"
        if port == USUAL_PORTS[scheme]:  # which browsers leave out
            hosts += names
        secret = secrets.token_urlsafe(24)
        self.url = f"{scheme}://{shown}:{port}/{secret}/"
        self.gate = Gate(secret, hosts, scheme)
        self.tls = address.tls
        self.news = threading.Condition()
        self._wakes = 0  # how often there was something for streams
        self.ended = threading.Event()
        self.streams = threading.BoundedSemaphore(MOST_STREAMS)
        self.reports = threading.BoundedSemaphore(MOST_REPORTS)
        self._connections = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._watchers = 0
        self._looking = threading.Lock()  # one thread at a time reads a journal
        self._own_threads = [
            threading.Thread(target=work, daemon=True, name=f"lastarm watch: {work.__name__}")
            for work in (self.look, self.tell, self.answer)
        ]

    def __enter__(self) -> Server:
        for thread in self._own_threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self.shutdown()
        self.server_close()

    def end(self) -> None:
        """Send what is new for the last time, and tell browsers that no more will come."""
        until = monotonic() + LAST
        for journal in self.journals:
            while self._look_at(journal) and journal.has_more and monotonic() < until:
                pass
        self.ended.set()
        self.wake()
        limit = monotonic() + 1.0
        while self._watchers and monotonic() < limit:
            threading.Event().wait(0.02)

    # Threads ------------------------------------------------------------------------------------

    def look(self) -> None:
        """Look at the journals, and wake those who wait for news."""
        while not self.ended.is_set():
            more = False
            for journal in self.journals:
                if self._look_at(journal):
                    more |= journal.has_more
                    self.wake()
            if not more:
                self.ended.wait(EVERY)

    def _look_at(self, journal: Watched) -> bool:
        with self._looking:
            return journal.look()

    def tell(self) -> None:
        """Make contents, as long as there are browsers that show them."""
        while not self.ended.is_set():
            told = self._watchers > 0 and [journal.tell() for journal in self.journals]
            if told and any(told):
                self.wake()
            self.ended.wait(EVERY)

    def answer(self) -> None:
        """Answer requests, each in a thread of its own."""
        self.serve_forever(poll_interval=0.1)

    def wake(self) -> None:
        """Let streams see whether there is something for them."""
        with self.news:
            self._wakes += 1
            self.news.notify_all()

    # Connections --------------------------------------------------------------------------------

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection, if there are not too many already."""
        if not self._connections.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # the system has no thread left
            self._connections.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve it, and whatever comes of it, make room for another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer it, by way of TLS if there is a certificate."""
        if not self.tls:
            super().finish_request(request, client_address)
            return
        request.settimeout(PATIENCE)
        with self.tls.wrap_socket(request, server_side=True) as encrypted:
            super().finish_request(encrypted, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client went away, or never spoke HTTP."""

    def stream(self, search: int, since: Since | None) -> Generator[bytes, None, None]:
        """What is new of a search, and in short of all others, as server-sent events."""
        known: list[Since | None] = [None] * len(self.journals)
        known[search] = since
        until = monotonic() + LONGEST
        with self.news:
            self._watchers += 1
        try:
            yield f"retry: {AGAIN}\n\n".encode()
            while monotonic() < until:
                seen, ended = self._wakes, self.ended.is_set()
                said = self._message(search, known)
                if said:
                    yield said
                if ended:
                    yield b"event: end\ndata: {}\n\n"
                    return
                with self.news:  # what came while the message was sent is not waited for
                    woken = self.news.wait_for(partial(self._is_woken, seen), ALIVE)
                if not woken:
                    yield b": still here\n\n"
                self.ended.wait(BREATH)
        finally:
            with self.news:
                self._watchers -= 1

    def _is_woken(self, seen: int) -> bool:
        return self._wakes != seen

    def _message(self, search: int, known: list[Since | None]) -> bytes:
        """A message with all that changed; empty if nothing did. What is `known` then changes."""
        others = {}
        for number, journal in enumerate(self.journals):
            if number != search:
                known[number], new = journal.news(known[number], only="summary")
                others.update({str(number): text for _, text in new})
        before = known[search]
        known[search], parts = self.journals[search].news(before)
        if not parts and not others:
            return b""
        anew = before is None or before.reading != cast(Since, known[search]).reading
        inner = ",".join(f"{json.dumps(name)}:{text}" for name, text in parts)
        outer = ",".join(f'"{number}":{text}' for number, text in others.items())
        body = f'{{"anew":{json.dumps(anew)},"parts":{{{inner}}},"others":{{{outer}}}}}'
        return f"id: {known[search]}\ndata: {body}\n\n".encode()


class Answer(BaseHTTPRequestHandler):
    """The answer to one request; then the connection is closed."""

    server: Server
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        """Take the request in, whole, before anything looks at it."""
        deadline = monotonic() + PATIENCE
        self.request.settimeout(PATIENCE)
        super().setup()
        head = b""
        while b"\r\n\r\n" not in head and len(head) <= MOST_HEAD:
            self.request.settimeout(max(0.01, deadline - monotonic()))
            came = self.request.recv(2048)
            if not came or monotonic() > deadline:
                raise TimeoutError
            head += came
        self.too_long = b"\r\n\r\n" not in head[:MOST_HEAD]
        self.request.settimeout(SENDING)
        self.rfile.close()
        self.rfile = io.BufferedReader(io.BytesIO(head[:MOST_HEAD]))

    def finish(self) -> None:
        """Close what was opened."""
        with suppress(OSError, ValueError):
            super().finish()

    def handle(self) -> None:
        """Answer it, or say that it is refused."""
        self.close_connection = True
        self.raw_requestline = self.rfile.readline(MOST_HEAD)
        if self.too_long:
            self.command = ""
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return
        if not self.parse_request():
            return
        try:
            if self.request_version not in ("HTTP/1.0", "HTTP/1.1"):
                raise Refused(HTTPStatus.BAD_REQUEST)
            target = self.requestline.split()[1]  # `path` is not quite what came
            asked = self.server.gate.asked(self.command, target, self.headers)
            self._answer(asked)
        except Refused as refused:
            self._refuse(refused.status)

    def _answer(self, asked: Asked) -> None:
        journals = self.server.journals
        match asked.what:
            case "":
                self._send(self.server.html, "text/html; charset=utf-8", self.server.rules)
            case "news":
                self._stream(asked.number("search", len(journals)), asked)
            case "story":
                journal = journals[asked.number("search", len(journals))]
                story = json.dumps(journal.story(asked.number("arm", 10**12)))
                self._send(story.encode(), "application/json")
            case "report":
                self._report(journals[asked.number("search", len(journals))])
            case _:
                raise Refused(HTTPStatus.NOT_FOUND)

    def _report(self, journal: Watched) -> None:
        if not self.server.reports.acquire(blocking=False):
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE)
        try:
            page = b"" if self.command == "HEAD" else journal.report(self.server.library).encode()
        finally:
            self.server.reports.release()
        self._send(page, "text/html; charset=utf-8", saved_as="report.html")

    def _stream(self, search: int, asked: Asked) -> None:
        known = self.headers.get("Last-Event-ID", asked.words.get("since", ""))
        reading, _, update = known.partition(".")
        since = Since(reading, int(update)) if update.isdecimal() and len(update) < 12 else None
        if not self.server.streams.acquire(blocking=False):
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE)
        try:
            self._begin(HTTPStatus.OK, "text/event-stream; charset=utf-8")
            if self.command == "HEAD":
                return
            with closing(self.server.stream(search, since)) as messages:
                for message in messages:
                    self.wfile.write(message)
        finally:
            self.server.streams.release()

    def _begin(self, status: HTTPStatus, kind: str, rules: str = NOTHING, **more: str) -> None:
        self.request_version = "HTTP/1.1"  # there is no other form of an answer
        self.send_response_only(status)
        told = {"Content-Type": kind, "Content-Security-Policy": rules, **HEADERS}
        for name, value in {**told, **more}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def _send(self, body: bytes, kind: str, rules: str = NOTHING, saved_as: str = "") -> None:
        more = {"Content_Length": str(len(body))} if self.command != "HEAD" else {}
        if saved_as:
            more["Content_Disposition"] = f'attachment; filename="{saved_as}"'
        self._begin(HTTPStatus.OK, kind, rules, **more)
        if self.command != "HEAD":
            self.wfile.write(body)

    def _refuse(self, status: HTTPStatus) -> None:
        body = f"{status.phrase}\n".encode()
        more = {"Allow": "GET, HEAD"} if status == HTTPStatus.METHOD_NOT_ALLOWED else {}
        self._begin(status, "text/plain; charset=utf-8", Content_Length=str(len(body)), **more)
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(
        self, code: int, message: str | None = None, explain: str | None = None
    ) -> None:
        """Of what is not HTTP, as of all that is refused: nothing but the status."""
        self._refuse(HTTPStatus(code))

    def handle_expect_100(self) -> bool:
        """Promise nothing: no body is ever taken."""
        return True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of requests: people want to read other things."""
