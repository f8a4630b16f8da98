"""The server of the page that watches searches: what it answers, and what it refuses."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from email.message import Message
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest

from lastarm import RecordedCurves, SuccessiveHalving, search
from lastarm.cli import main
from lastarm.events import Loss, Opened, Pull, Started, Work
from lastarm.journal import Journal
from lastarm.report.live import server as serving
from lastarm.report.live.server import Address, Server
from lastarm.report.live.watched import Since, Watched, named
from tests.eventually import eventually
from tests.forged import REFUSED, TOLD, forge
from tests.report_searches import HOSTILE, hostile_events, write_journal

TABLE = [[1 / (1 + arm % 5) + (arm * step) % 7 / 9 for step in range(8)] for arm in range(8)]
OPENED = Opened(0, {"name": "successive-halving", "arms": 8, "budget": 60}, {}, {})


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("search") / "search.jsonl"
    rows = [{"row": row} for row in range(8)]
    policy = SuccessiveHalving(8, 60)
    search(RecordedCurves(TABLE), rows, policy=policy, journal=path, checkpoints=False)
    return path


@pytest.fixture(scope="module")
def server(journal: Path) -> Iterator[Server]:
    with serve(journal) as server:
        yield server


@contextmanager
def serve(*journals: Path, **how: Any) -> Iterator[Server]:
    with Server(list(named([str(path) for path in journals])), Address(**how)) as server:
        yield server


def host_of(server: Server) -> str:
    return urlsplit(server.url).netloc


def ask(
    server: Server,
    verb: str = "GET",
    target: str | None = None,
    headers: Sequence[tuple[str, str]] = (),
    hosts: Sequence[str] | None = None,
) -> tuple[int, dict[str, str], bytes]:
    """The status, the headers and the body of an answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.server_address[1], 20)) as there:
        path = urlsplit(server.url).path if target is None else target
        there.putrequest(verb, path, skip_host=True, skip_accept_encoding=True)
        for host in [host_of(server)] if hosts is None else hosts:
            there.putheader("Host", host)
        for name, value in headers:
            there.putheader(name, value)
        there.endheaders()
        answer = there.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()


def raw(server: Server, request: bytes, seconds: float = 10.0) -> bytes:
    """All that comes back for these bytes."""
    with socket.create_connection(("127.0.0.1", server.server_address[1]), 10) as there:
        there.settimeout(seconds)
        came = b""
        with suppress(OSError):
            there.sendall(request)
            while more := there.recv(65536):
                came += more
        return came


def is_well(server: Server) -> None:
    status, _, body = ask(server)
    assert (status, b"<title>" in body) == (200, True)


def news_of(server: Server, search: int = 0, since: str = "") -> tuple[str, dict[str, Any]]:
    """The id and the data of the first message of a stream."""
    path = f"{urlsplit(server.url).path}news?search={search}"
    with socket.create_connection(("127.0.0.1", server.server_address[1]), 20) as there:
        resumed = f"Last-Event-ID: {since}\r\n" if since else ""
        there.sendall(f"GET {path} HTTP/1.1\r\nHost: {host_of(server)}\r\n{resumed}\r\n".encode())
        lines = there.makefile("rb")
        known = ""
        for line in lines:
            if line.startswith(b"id: "):
                known = line[4:].decode().strip()
            elif line.startswith(b"data: "):
                return known, json.loads(line[6:])
    raise AssertionError("no message came")


# What it answers --------------------------------------------------------------------------------


def test_its_headers_let_a_browser_do_nothing_but_show_the_page(server: Server) -> None:
    path = urlsplit(server.url).path
    for what in ("", "story?search=0&arm=0", "report?search=0"):
        for verb in ("GET", "HEAD"):
            status, headers, body = ask(server, verb, path + what)
            assert status == 200
            assert (len(body) > 0) == (verb == "GET")
            rules = headers["Content-Security-Policy"]
            assert rules.startswith("default-src 'none'")
            for rule in ("frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"):
                assert rule in rules
            assert "unsafe-inline" not in rules.partition("script-src")[2].partition(";")[0]
            assert "unsafe-eval" not in rules
            assert headers["X-Frame-Options"] == "DENY"
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "no-referrer"
            assert headers["Cache-Control"] == "no-store"
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert not any(name.startswith("Access-Control") for name in headers)
            assert "Server" not in headers


def test_it_listens_on_this_machine_only(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.server_address[1] > 1023


def test_a_stream_says_what_is_new_and_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    with serve(path) as server:
        known, message = news_of(server)
        assert message["parts"]["now"]["state"] == "waiting"
        with Journal(path, OPENED) as writing:
            writing.append(Started(0, 2, {"lr": 0.5}, "process 1", 1795122903.0))
            writing.flush()
            eventually(lambda: "arm 0" in news_of(server)[1]["parts"])
            known, message = news_of(server)
            assert message["parts"]["settings 0"] == {"lr": 0.5}
            assert message["parts"]["now"]["at_work"] == [
                {"arm": 0, "upto": 2, "from": 0, "worker": "process 1", "since": 1795122903.0}
            ]
            writing.append(Loss(Pull(0, 2), 0.25, Work(2, worker="process 1")))
            writing.append(Pull(1, 2, {"lr": 0.125}))
            writing.flush()
            later: dict[str, Any] = {}

            def has_come() -> bool:
                later.update(news_of(server, since=known)[1])
                return "arm 1" in later["parts"] and "arm 0" in later["parts"]

            eventually(has_come)
            assert not later["anew"]
            assert later["parts"]["arm 0"]["losses"] == [0.25]
            assert "settings 0" not in later["parts"], "it is known"
            assert later["parts"]["now"]["at_work"][0]["worker"] == ""
            assert later["parts"]["best"] == [[4, 0.25]] or later["parts"]["best"] == [[2, 0.25]]


def test_what_is_new_while_a_message_is_sent_is_not_missed(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    nothing = patch.object(Watched, "tell", lambda self: False)  # which would wake it, too
    with nothing, patch.object(serving, "ALIVE", 0.05), serve(path) as server:
        stream = server.stream(0, None)
        assert next(stream).startswith(b"retry")
        assert next(stream).startswith(b"id: ")  # and this is still being sent, when
        known, _ = server.journals[0].news(None)
        with Journal(path, OPENED) as writing:
            writing.flush()
        eventually(lambda: server.journals[0].news(known)[1])
        assert next(stream).startswith(b"id: ")
        stream.close()


def test_who_went_away_at_once_is_not_counted_as_a_watcher(journal: Path) -> None:
    with serve(journal) as server:
        stream = server.stream(0, None)
        next(stream)
        stream.close()
        assert server._watchers == 0


def test_one_thread_at_a_time_reads_a_journal_also_at_the_end(journal: Path) -> None:
    at_a_time, most = 0, 0

    def look() -> bool:
        nonlocal at_a_time, most
        at_a_time += 1
        most = max(most, at_a_time)
        time.sleep(0.2)
        at_a_time -= 1
        return False

    with serve(journal) as server, patch.object(server.journals[0], "look", look):
        eventually(lambda: at_a_time)
        server.end()
    assert most == 1


def test_a_search_that_was_killed_long_ago_is_not_running(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    with Journal(path, OPENED) as writing:
        writing.append(Pull(0, 2))
    then = time.time() - 3600
    os.utime(path, (then, then))
    watched = Watched(path, "search.jsonl")
    watched.look()
    assert json.loads(dict(watched.news(None)[1])["now"])["state"] == "stopped"
    with Journal(path, OPENED) as writing:
        writing.append(Pull(1, 2))
    watched.look()
    assert json.loads(dict(watched.news(None)[1])["now"])["state"] == "running"


def test_what_was_known_of_another_file_is_of_no_use(tmp_path: Path, journal: Path) -> None:
    path = tmp_path / "search.jsonl"
    path.write_bytes(journal.read_bytes())
    with serve(path) as server:
        eventually(lambda: "order" in news_of(server)[1]["parts"])
        known, _ = news_of(server)
        path.unlink()
        with Journal(path, OPENED) as writing:
            writing.append(Pull(5, 2))
            writing.flush()
            eventually(lambda: news_of(server, since=known)[1]["anew"])
            _, message = news_of(server, since=known)
    assert {name for name in message["parts"] if name.startswith("arm ")} == {"arm 5"}


def test_all_searches_are_summed_up_for_whoever_looks_at_one(
    tmp_path: Path, journal: Path
) -> None:
    other = tmp_path / "search.jsonl"
    other.write_bytes(journal.read_bytes())
    with serve(journal, other, tmp_path / "later.jsonl") as server:
        eventually(lambda: len(news_of(server)[1]["others"]) == 2)
        _, message = news_of(server)
        assert message["others"]["1"]["name"] != message["parts"]["summary"]["name"]
        assert message["others"]["1"]["best"] == message["parts"]["summary"]["best"]
        assert message["others"]["2"]["state"] == "waiting"
        assert news_of(server, 2)[1]["parts"]["now"]["trouble"] == "it does not exist yet"


def test_the_contents_are_those_of_the_report(journal: Path) -> None:
    watched = Watched(journal, "search.jsonl")
    while watched.look():
        pass
    assert watched.tell()
    assert not watched.tell(), "nothing is new"
    since, parts = watched.news(None)
    told = {name: json.loads(text) for name, text in parts}
    assert told["headline"].startswith("Arm ")
    assert told["state"] == "complete"
    assert sorted(told["order"]) == list(range(8))
    for arm in range(8):
        assert told[f"arm {arm}"]["losses"]
        assert watched.story(arm)
    assert watched.news(since) == (since, [])
    assert watched.news(Since("another", since.update))[1] == parts
    assert b'id="told"' in watched.report().encode()


def test_before_the_first_loss_the_page_does_not_say_that_losses_are_bad(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    with Journal(path, OPENED) as writing:
        writing.append(Pull(0, 2))
    watched = Watched(path, "search.jsonl")
    watched.look()
    watched.tell()
    assert json.loads(dict(watched.news(None)[1])["headline"]) == "No loss has come yet"


def test_a_story_is_told_when_it_is_asked_for(server: Server) -> None:
    path = urlsplit(server.url).path
    eventually(lambda: "order" in news_of(server)[1]["parts"])
    told = json.loads(ask(server, target=f"{path}story?search=0&arm=3")[2])
    assert told
    assert all(isinstance(sentence, str) for sentence in told)
    assert json.loads(ask(server, target=f"{path}story?search=0&arm=99")[2]) == []


# What it refuses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "",
        "127.0.0.1",
        "127.0.0.1:1",
        "LOCALHOST:{port}",
        "localhost.:{port}",
        "127.0.0.1.:{port}",
        "127.1:{port}",
        "2130706433:{port}",
        "0.0.0.0:{port}",
        "[::1]:{port}",
        "[::ffff:127.0.0.1]:{port}",
        "user@127.0.0.1:{port}",
        "127.0.0.1:{port}@evil.example",
        "127.0.0.1:{port}, evil.example",
        "127.0.0.1.evil.example:{port}",  # a name that was made to lead here
        "127.0.0.1:0{port}",
    ],
)
def test_it_answers_under_its_own_name_only(server: Server, host: str) -> None:
    given = host.format(port=server.server_address[1])
    for what in ("", "news?search=0", "story?search=0&arm=0", "report?search=0", "no"):
        status, _, body = ask(server, target=urlsplit(server.url).path + what, hosts=[given])
        assert (status, body) == (403, b"Forbidden\n")


def test_no_host_and_two_hosts_are_refused(server: Server) -> None:
    assert ask(server, hosts=[])[0] == 403
    assert ask(server, hosts=[host_of(server)] * 2)[0] == 403
    assert ask(server, hosts=[host_of(server), "evil.example"])[0] == 403


@pytest.mark.parametrize(
    ("given", "said"),
    [("127.1", "127.0.0.1"), ("LocalHost", "localhost"), ("0:0:0:0:0:0:0:1", "[::1]")],
)
def test_it_answers_under_the_name_that_browsers_make_of_its_own(
    journal: Path, given: str, said: str
) -> None:
    if said == "[::1]" and not socket.has_ipv6:
        pytest.skip("there is no IPv6 here")
    with serve(journal, host=given) as server:
        assert urlsplit(server.url).netloc == f"{said}:{server.server_address[1]}"
        headers = Message()
        headers["Host"] = host_of(server)
        assert server.gate.asked("GET", urlsplit(server.url).path, headers).what == ""


def test_browsers_leave_the_usual_port_out(journal: Path) -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (
        patch.dict(serving.USUAL_PORTS, {"http": port}),
        serve(journal, port=port) as server,
    ):
        assert ask(server, hosts=["127.0.0.1"])[0] == 200
        own = [("Origin", "http://127.0.0.1")]
        assert ask(server, hosts=["127.0.0.1"], headers=own)[0] == 200
        assert ask(server, hosts=["evil.example"])[0] == 403


@pytest.mark.skipif(os.name != "posix", reason="elsewhere this lets others take the port")
def test_a_port_can_be_used_again_at_once_but_not_twice(journal: Path) -> None:
    with serve(journal) as server:
        port = server.server_address[1]
        is_well(server)
        with pytest.raises(OSError, match="in use"), serve(journal, port=port):
            pass
    with serve(journal, port=port) as server:
        is_well(server)


def test_without_a_thread_for_it_a_connection_leaves_room_for_others(journal: Path) -> None:
    with serve(journal) as server:
        with patch.object(threading.Thread, "start", side_effect=RuntimeError):
            for _ in range(serving.MOST_CONNECTIONS + 1):
                raw(server, b"GET / HTTP/1.1\r\n\r\n")
        is_well(server)


@pytest.mark.parametrize(
    "verb",
    ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "GETS"],
)
def test_no_other_verb_than_get_and_head_is_answered(
    server: Server, journal: Path, verb: str
) -> None:
    before = sha256(journal.read_bytes()).digest()
    for what in ("", "news?search=0", "story?search=0&arm=0", "report?search=0"):
        status, headers, body = ask(server, verb, urlsplit(server.url).path + what)
        assert (status, headers["Allow"]) == (405, "GET, HEAD")
        assert body == b"Method Not Allowed\n"
    assert sha256(journal.read_bytes()).digest() == before


@pytest.mark.parametrize(
    ("name", "value", "refused"),
    [
        ("Origin", "http://evil.example", 403),
        ("Origin", "null", 403),
        ("Origin", "https://127.0.0.1:{port}", 403),
        ("Origin", "http://127.0.0.1", 403),
        ("Origin", "http://localhost:{port}", 403),
        ("Sec-Fetch-Site", "cross-site", 403),
        ("Sec-Fetch-Site", "same-site", 403),
        ("Sec-Fetch-Site", "None", 403),
        ("Upgrade", "websocket", 400),
        ("Upgrade", "h2c", 400),
        ("Transfer-Encoding", "chunked", 400),
        ("Content-Length", "5", 400),
        ("Content-Length", "-1", 400),
    ],
)
def test_a_request_of_another_page_is_refused(
    server: Server, name: str, value: str, refused: int
) -> None:
    headers = [(name, value.format(port=server.server_address[1]))]
    for what in ("", "news?search=0", "report?search=0"):
        assert ask(server, target=urlsplit(server.url).path + what, headers=headers)[0] == refused


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/favicon.ico",
        "/{wrong}/",
        "/{secret}",
        "{path}../",
        "{path}..%2f",
        "{path}%2e%2e/%2e%2e/etc/passwd",
        "{path}%252e%252e%252fetc%252fpasswd",
        "{path}..\\..\\",
        "//{secret}/",
        "/.{path}",
        "{path}search.jsonl",
        "{path}report?search=1",
        "{path}report?search=-1",
        "{path}report?search=0&search=0",
        "{path}report?search=/etc/passwd",
        "{path}report?search=٣",
        "{path}report",
        "{path}news?search=0#x",
        "{path}%00",
        "{path};x",
        "{path}?x",
        "/%{secret}/",
        "http://127.0.0.1{path}",
        "*",
    ],
)
def test_nothing_but_its_own_pages_has_an_address(server: Server, target: str) -> None:
    path = urlsplit(server.url).path
    secret = path.strip("/")
    filled = target.format(path=path, secret=secret, wrong=secret[::-1])
    request = f"GET {filled} HTTP/1.1\r\nHost: {host_of(server)}\r\n\r\n".encode()
    came = raw(server, request)
    assert came.split(b" ")[1] in (b"404", b"400")
    assert b"root:" not in came
    assert b'"event"' not in came
    is_well(server)


def test_no_refusal_tells_the_secret(server: Server) -> None:
    secret = urlsplit(server.url).path.strip("/").encode()
    for request in (
        b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % host_of(server).encode(),
        b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : x\r\n folded: y\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 500 + b"\r\n",
        b"GET / HTTP/1.1\r\nExpect: 100-continue\r\nHost: evil\r\n\r\n",
        b"\r\n\r\n",
    ):
        came = raw(server, request)
        assert secret not in came
        assert not came or came.split(b" ")[1][:1] in (b"4", b"5"), came
        assert b"100 Continue" not in came
    is_well(server)


def test_a_request_that_is_too_long_is_refused(server: Server) -> None:
    for request in (
        b"GET /" + 100_000 * b"x",
        b"GET / HTTP/1.1\r\n" + b"x: " + 100_000 * b"y",
        b"GET / HTTP/1.1\r\n" + 10_000 * b"x: y\r\n",
    ):
        came = raw(server, request)
        assert came == b"" or came.startswith(b"HTTP/1.1 431")
    is_well(server)


def test_a_request_that_does_not_come_is_not_waited_for(journal: Path) -> None:
    with patch.object(serving, "PATIENCE", 0.5), serve(journal) as server:
        with ExitStack() as stack:
            slow = []
            for _ in range(200):  # more than are served at a time
                address = ("127.0.0.1", server.server_address[1])
                slow.append(stack.enter_context(socket.create_connection(address, 10)))
                slow[-1].sendall(b"GET / HT")
            for there in slow:  # a byte now and then does not help
                with suppress(OSError):
                    there.sendall(b"T")
            for there in slow:
                there.settimeout(20)
                with suppress(ConnectionError):
                    assert there.recv(100) == b""
        is_well(server)


def test_a_thousand_connections_leave_it_alive(journal: Path) -> None:
    with patch.object(serving, "PATIENCE", 1.0), serve(journal) as server:
        with ExitStack() as stack:
            for _ in range(1_000):
                there = socket.socket()
                stack.enter_context(there)
                there.settimeout(5)
                with suppress(OSError):  # the system may have no more room for those that wait
                    there.connect(("127.0.0.1", server.server_address[1]))
        eventually(lambda: is_up(server))


def is_up(server: Server) -> bool:
    try:
        return ask(server)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def test_there_are_so_many_streams_at_a_time_and_no_more(journal: Path) -> None:
    with patch.object(serving, "MOST_STREAMS", 3), serve(journal) as server, ExitStack() as stack:
        path = f"{urlsplit(server.url).path}news?search=0"
        request = f"GET {path} HTTP/1.1\r\nHost: {host_of(server)}\r\n\r\n".encode()
        for _ in range(3):
            address = ("127.0.0.1", server.server_address[1])
            there = stack.enter_context(socket.create_connection(address, 10))
            there.sendall(request)
            assert there.recv(100).startswith(b"HTTP/1.1 200")
        assert raw(server, request).startswith(b"HTTP/1.1 503")
        is_well(server)
        stack.close()
        eventually(lambda: b" 200 " in raw(server, request, 1.5)[:20])


@pytest.mark.parametrize("name", [*TOLD, *REFUSED])
def test_no_journal_brings_it_down(tmp_path: Path, name: str) -> None:
    lines = TOLD[name] if name in TOLD else REFUSED[name][0]
    watched = Watched(forge(tmp_path / "forged.jsonl", lines), "forged.jsonl")
    while watched.look():
        pass
    watched.tell()
    _, parts = watched.news(None)
    for _, text in parts:
        assert "NaN" not in text
        json.loads(text)


def test_texts_of_a_journal_are_data_and_never_a_part_of_a_stream_or_page(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "hostile.jsonl", hostile_events(HOSTILE))
    with serve(path) as server:
        eventually(lambda: "order" in news_of(server)[1]["parts"])
        came = raw(
            server,
            f"GET {urlsplit(server.url).path}news?search=0 HTTP/1.1\r\n"
            f"Host: {host_of(server)}\r\n\r\n".encode(),
            2,
        )
        _, _, body = came.partition(b"\r\n\r\n")
        for line in body.splitlines():
            assert line.split(b":")[0] in (b"id", b"data", b"event", b"retry", b""), line
        page = ask(server)[2]
        assert b"window.hit" not in page


def test_what_is_not_a_journal_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "precious")
    watched = Watched(link, "link.jsonl")
    watched.look()
    assert "precious" not in str(watched.news(None)[1])
    assert json.loads(watched.news(None)[1][0][1])["trouble"] == "it is not a journal"


# The command ------------------------------------------------------------------------------------


def test_for_other_machines_it_takes_tls_or_a_flag(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, said in {
        ("--host", "192.0.2.7"): "has to be encrypted",
        ("--host", "0.0.0.0"): "under one name only",
        ("--host", "0.0.0.0", "--unencrypted"): "under one name only",
        ("--host", "0", "--unencrypted"): "under one name only",
        ("--host", "0:0::0", "--unencrypted"): "under one name only",
        ("--host", "::ffff:0.0.0.0", "--unencrypted"): "under one name only",
        ("--key", "key.pem"): "--certificate",
        ("--certificate", "missing.pem"): "cannot be used",
        ("--host", "192.0.2.7", "--unencrypted"): "refused",  # it is not this machine's
    }.items():
        with pytest.raises(SystemExit) as ended:
            main(["watch", str(journal), *words])
        assert ended.value.code == 2
        assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make a key")
def test_with_a_certificate_it_speaks_tls_and_nothing_else(tmp_path: Path, journal: Path) -> None:
    command = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 -batch"
    subprocess.run(
        ["openssl", *command.split(), "-subj", "/CN=localhost"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with serve(journal, tls=tls) as server:
        assert server.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        trusting.check_hostname = False
        there = http.client.HTTPSConnection(
            "127.0.0.1", server.server_address[1], timeout=20, context=trusting
        )
        there.request("GET", urlsplit(server.url).path)
        assert there.getresponse().status == 200
        assert b"200" not in raw(server, b"GET / HTTP/1.1\r\n\r\n")
        there.close()
        again = http.client.HTTPSConnection(
            "127.0.0.1", server.server_address[1], timeout=20, context=trusting
        )
        again.request("HEAD", urlsplit(server.url).path)
        assert again.getresponse().status == 200


def test_the_command_prints_the_address_and_ends_when_it_is_told_to(journal: Path) -> None:
    command = [sys.executable, "-m", "lastarm", "watch", str(journal), "--until-closed"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        url = process.stdout.readline().decode().strip()
        there = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
        there.request("GET", urlsplit(url).path)
        assert there.getresponse().status == 200
        process.stdin.close()
        assert process.wait(20) == 0


def test_what_is_new_comes_within_a_moment(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    with serve(path) as server, Journal(path, OPENED) as writing:
        eventually(lambda: news_of(server)[1]["parts"]["now"]["lines"] == 1)
        known, _ = news_of(server)
        writing.append(Pull(3, 2))
        writing.flush()
        time.sleep(0.01)
        _, message = news_of(server, since=known)  # it waits until there is something
        assert message["parts"]["now"]["at_work"][0]["arm"] == 3


@pytest.mark.parametrize(("stopped_by", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_command_ends_by_signals_without_a_word_too_many(
    journal: Path, stopped_by: signal.Signals, code: int
) -> None:
    command = [sys.executable, "-m", "lastarm", "watch", str(journal)]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **both) as process:  # type: ignore[call-overload]
        assert process.stdout.readline().startswith(b"Watch at ")
        process.send_signal(stopped_by)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == code
    assert said.count(b"\n") == 1
    assert b"Traceback" not in said
