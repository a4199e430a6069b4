"""The parts of a server one by one: journal, state, subscribers, permissions, and the queue that is full."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.serving import ServerProcess

import weft
from weft.errors import InputError, UsageError, WeftError
from weft.languages.content.lower import compile_filter
from weft.runtime.data.matches import MatchBatch, PlainMatch, to_batch
from weft.runtime.lanes.sharing import Sharing
from weft.runtime.options import Arrival, Options
from weft.serve import batch_order
from weft.serve.engine import Busy, Request
from weft.serve.folders import StateFolder
from weft.serve.hub import Gap, Hub, Subscriber
from weft.serve.journal import Journal, Record, read_journal
from weft.serve.match_log import MatchLog
from weft.serve.permissions import ALL, check_exposure, read_tokens
from weft.serve.program import NDJSON, Publication
from weft.serve.service import ServerSettings, Service

PAIRS = "SELECT * FROM S WHERE (A AS a ; B AS b) WITHIN 10 SECONDS"
RECORDS = [Record({"op": "advance", "time": at}, bytes([at]) * at) for at in range(5)]


def written(path: Path) -> Path:
    journal = Journal(path)
    for record in RECORDS:
        journal.append(record)
    journal.close()
    return path


def test_a_journal_gives_back_what_it_was_told(tmp_path: Path) -> None:
    assert list(read_journal(written(tmp_path / "j"))) == RECORDS


def test_a_last_record_that_is_cut_short_is_left_out_wherever_it_is_cut(tmp_path: Path) -> None:
    whole = written(tmp_path / "j").read_bytes()
    last = whole.rindex(b"wj01")
    for cut in range(last, len(whole)):
        path = tmp_path / "cut"
        path.write_bytes(whole[:cut])
        assert list(read_journal(path)) == RECORDS[:-1]
        assert path.read_bytes() == whole[:last]
        journal = Journal(path)  # and it goes on from there
        journal.append(RECORDS[-1])
        journal.close()
        assert list(read_journal(path)) == RECORDS


def test_a_record_that_is_damaged_before_others_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "j")
    damaged = bytearray(path.read_bytes())
    damaged[30] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(InputError, match="is damaged at byte"):
        list(read_journal(path))


def test_a_state_folder_is_used_by_one_server(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    with pytest.raises(UsageError, match="another server uses"):
        StateFolder(tmp_path / "state")
    folder.close()
    StateFolder(tmp_path / "state").close()


Found = tuple[list[MatchBatch], list[str]]


def matches(count: int, first: int = 0, query: str = "Q") -> Found:
    rows = [
        PlainMatch(n, n, n, n, (n,), {}, {"n": n}, f"{query}{n}".encode().hex().rjust(32, "0"))
        for n in range(first, first + count)
    ]
    return [to_batch(query, rows)], [query]


def key(name: str) -> str:
    return name.encode().hex().rjust(32, "0")


def name_of(id: str) -> str:
    return bytes.fromhex(id).decode().strip("\0")


def lines_of(hub: Hub) -> list[dict[str, Any]]:
    return [json.loads(entry.line) for entry in hub._log.entries()]


def told(subscriber: Subscriber) -> list[Any]:
    return [item.missed if isinstance(item, Gap) else name_of(item.id) for item in subscriber.take()]


def test_a_slow_subscriber_is_told_how_many_it_missed_and_others_are_not_delayed() -> None:
    hub = Hub(100, 320, lambda touched: None)
    slow, quick = hub.join("Q"), hub.join("Q")
    for at in range(4):
        hub.take(*matches(1, at), is_event=False)
        assert told(quick) == [f"Q{at}"]
    assert told(slow) == ["Q0", "Q1", 2]
    hub.take(*matches(1, 4), is_event=False)
    assert told(slow) == ["Q4"]
    assert (slow.missed, quick.missed) == (2, 0)


def test_subscribers_resume_from_a_log_that_is_bounded() -> None:
    hub = Hub(3, 1 << 20, lambda touched: None)
    hub.take(*matches(5), is_event=False)
    assert told(hub.join("Q", after=key("Q3"))) == ["Q4"]
    assert told(hub.join("Q", after=key("Q1"))) == [None, "Q2", "Q3", "Q4"]  # it is not known how many were forgotten
    assert told(hub.join("Q", after="")) == ["Q2", "Q3", "Q4"]
    assert told(hub.join("Q", compile_filter("n > 3"), "")) == ["Q4"]
    assert told(hub.join("Q")) == []
    hub.take(*matches(0, 5), is_event=False)
    again = Hub(3, 1 << 20, lambda touched: None)
    again.load(hub.table)
    assert told(again.join("Q", after=key("Q2"))) == ["Q3", "Q4"]


def test_a_log_of_many_small_pieces_is_the_same_as_one_of_large_ones() -> None:
    small, large = MatchLog(1000), MatchLog(1000)
    for at in range(0, 3000, 3):
        small.append(*matches(3, at))
        assert small.last_id == key(f"Q{at + 2}")
        if at % 300 == 0:
            assert small.number_of(key(f"Q{at}")) == at
            assert small.number_of(key("Q0")) == (0 if at < 1000 else None)
    for at in range(0, 3000, 600):
        large.append(*matches(600, at))
    assert small.table == large.table
    assert small.entries() == large.entries()
    assert [name_of(entry.id) for entry in small.entries(2998)] == ["Q2998", "Q2999"]
    assert [log.number_of(key("Q1999")) for log in (small, large)] == [None, None]
    assert [log.number_of(key("Q2000")) for log in (small, large)] == [2000, 2000]
    assert len(small._pieces) < 300
    assert len(small._numbers) <= 1600


def test_events_of_the_input_are_not_among_all_matches() -> None:
    hub = Hub(10, 1 << 20, lambda touched: None)
    hub.watch("Temp")
    all_matches, temps = hub.join("*"), hub.join("Temp")
    hub.take(*matches(1, query="Temp"), is_event=True)
    hub.take(*matches(1), is_event=False)
    assert (told(all_matches), told(temps)) == (["Q0"], ["Temp0"])
    assert told(hub.join("*", after="")) == ["Q0"]
    hub.take(*matches(30, 1, query="Temp"), is_event=True)  # they displace no matches
    assert told(hub.join("Q", after="")) == ["Q0"]
    assert told(hub.join("Temp", after=key("Temp29"))) == ["Temp30"]


def test_a_subscriber_can_resume_after_what_came_before_its_first_match() -> None:
    hub = Hub(3, 1 << 20, lambda touched: None)
    beginning = hub.join("Q").first_id
    hub.take(*matches(2), is_event=False)
    assert told(hub.join("Q", after=beginning)) == ["Q0", "Q1"]
    assert hub.join("Q").first_id == key("Q1")
    hub.take(*matches(2, 2), is_event=False)
    again = Hub(3, 1 << 20, lambda touched: None)
    again.load(hub.table, hub.firsts)
    for one in (hub, again):
        assert told(one.join("Q", after=beginning)) == [None, "Q1", "Q2", "Q3"]


def test_time_that_emits_matches_is_in_the_journal_before_they_are_delivered(tmp_path: Path) -> None:
    service = Service(ServerSettings(state=tmp_path / "state"), weft.compile(PAIRS, "ceql"))
    folder = service.engine.folder
    assert folder is not None
    seen: list[list[Record]] = []
    apply = service.engine.program.apply

    def applied(record: Record) -> Any:
        seen.append(list(read_journal(folder.journal.path)))
        return apply(record)

    with patch.object(service.engine.program, "apply", applied):
        service.engine.submit(Request({"op": "advance", "time": 5})).result(60)
    assert [record.about for record in seen[0]] == [{"op": "advance", "time": 5}]
    service.close()


def test_tokens_are_read_with_their_permissions(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# tokens\nfirst-token\nsecond-token publish, subscribe\n\n")
    tokens = read_tokens(file)
    assert tokens.granted("first-token") == ALL
    assert tokens.granted("second-token") == {"publish", "subscribe"}
    assert tokens.granted("other-token") is None
    assert tokens.granted(None) is None
    file.write_text("first-token publsh\n")
    with pytest.raises(InputError, match=r"tokens:1: there is no permission 'publsh'; did you mean 'publish'"):
        read_tokens(file)
    file.write_text("short\n")
    with pytest.raises(InputError, match="at least 8 characters"):
        read_tokens(file)
    check_exposure("0.0.0.0", tokens)


def publication(at: int) -> Request:
    body = json.dumps({"type": "A" if at % 2 == 0 else "B", "ts": at}).encode()
    return Request({"op": "events", "form": NDJSON}, body, Publication(1, "me", at))


def test_a_full_queue_refuses_and_what_it_took_is_matched() -> None:
    service = Service(ServerSettings(queue_bytes=60), weft.compile(PAIRS, "ceql"))
    running = service.engine.program.running
    with running._lock:  # the engine waits here
        first = [service.engine.submit(publication(at)) for at in range(2)]
        with pytest.raises(Busy) as refused:
            service.engine.submit(publication(2))
    assert refused.value.seconds >= 1
    assert [one.result(60)["accepted"] for one in first] == [1, 1]
    assert service.engine.submit(publication(3)).result(60)["accepted"] == 1
    assert service.hub.counts["q"] == 2
    service.close()


def test_a_publication_that_is_sent_again_while_it_waits_counts_once_and_is_answered_alike() -> None:
    service = Service(ServerSettings(), weft.compile(PAIRS, "ceql"))
    with service.engine.program.running._lock:  # the engine waits here
        sent = [service.engine.submit(publication(at)) for at in (0, 1, 1, 2)]
    answers = [one.result(60) for one in sent]
    assert [answer["accepted"] for answer in answers] == [1, 1, 1, 1]
    assert [answer.get("duplicate", False) for answer in answers] == [False, False, True, False]
    assert service.engine.program.running.events == 3
    service.close()


def test_publications_that_wait_are_matched_together_and_answered_apart() -> None:
    service = Service(ServerSettings(), weft.compile(PAIRS, "ceql"))
    running = service.engine.program.running
    bodies = [b'{"type": "A", "ts": 1}\n{"ts": 1}', b"nonsense", b'{"type": "B", "ts": 2}\n']
    with running._lock:
        about = {"op": "events", "form": NDJSON}
        first = service.engine.submit(publication(0))
        waiting = [
            service.engine.submit(Request(about, body, Publication(body.strip().count(b"\n") + 1))) for body in bodies
        ]
    assert first.result(60)["accepted"] == 1
    answers = [one.result(60) for one in waiting]
    assert [answer["accepted"] for answer in answers] == [1, 0, 1]
    assert [[one["row"] for one in answer["rejected"]] for answer in answers] == [[1], [0], []]
    service.close()


def test_a_batch_waits_for_the_one_before_that_is_on_its_way() -> None:
    service = Service(ServerSettings(), weft.compile(PAIRS, "ceql"))

    async def sent(number: int, after: int | None) -> dict[str, Any]:
        body = json.dumps({"type": "AB"[number % 2], "ts": number}).encode()
        return await service.publish(body, NDJSON, None, Publication(1, "me", number), after)

    async def out_of_order() -> list[dict[str, Any]]:
        second = asyncio.create_task(sent(11, 10))
        third = asyncio.create_task(sent(12, 11))
        await asyncio.sleep(0)
        assert service.engine.program.running.events == 0
        return [await sent(10, None), await second, await third, await sent(11, 10), await sent(13, None)]

    answers = asyncio.run(out_of_order())
    assert [answer["accepted"] for answer in answers] == [1, 1, 1, 1, 1]
    assert [answer.get("duplicate", False) for answer in answers] == [False, False, False, True, False]
    assert service.engine.program.running.events == 4
    with patch.object(batch_order, "LONGEST", 0.01), pytest.raises(Busy, match="batch 98 of this source has not come"):
        asyncio.run(sent(99, 98))
    service.close()


def test_state_goes_on_with_queries_partial_matches_publishers_and_the_log(tmp_path: Path) -> None:
    settings = ServerSettings(Options(sharing=Sharing(lanes=2)), state=tmp_path / "state")
    service = Service(settings, weft.compile(PAIRS, "ceql"))
    text = "SELECT * FROM S WHERE (B AS a ; A AS b) WITHIN 10 SECONDS"
    deployed = service.engine.submit(Request({"op": "deploy", "text": text, "language": "ceql", "name": "back"}))
    assert deployed.result(60)["names"] == ["back"]
    for at in range(4):
        service.engine.submit(publication(at)).result(60)
    before = lines_of(service.hub)
    assert len(before) == 4
    service.engine.folder._lock.close()  # type: ignore[union-attr] # as after a kill: nothing is said to it
    again = Service(settings, weft.compile(PAIRS, "ceql"))
    assert again.replayed == 5
    assert lines_of(again.hub) == before
    assert again.engine.submit(publication(3)).result(60)["duplicate"]
    again.engine.submit(publication(4)).result(60)
    assert [match["query"] for match in lines_of(again.hub)[4:]] == ["back", "back"]
    again.close()
    third = Service(settings, weft.compile(PAIRS.replace("10", "20"), "ceql"))
    assert third.replayed == 0
    assert "q: begins anew" in str(third.change)
    third.close()


def test_queries_of_the_command_line_have_their_texts(tmp_path: Path) -> None:
    other = "QUERY back AS SELECT * FROM S WHERE (B AS a ; A AS b) WITHIN 10 SECONDS"
    settings = ServerSettings(state=tmp_path / "state")
    for pairs in (PAIRS, PAIRS.replace("10", "20")):
        service = Service(settings, weft.compile(pairs, "ceql"), weft.compile(other, "ceql"))
        texts = service.engine.program.texts
        assert texts == {"q": {"text": pairs, "language": "ceql"}, "back": {"text": other, "language": "ceql"}}
        service.close()


def test_the_state_of_another_version_is_refused_in_a_sentence(tmp_path: Path) -> None:
    settings = ServerSettings(state=tmp_path / "state")
    service = Service(settings, weft.compile(PAIRS, "ceql"))
    service.engine.submit(publication(0)).result(60)
    service.close()
    (place,) = (tmp_path / "state").glob("snapshot-*")
    about = json.loads((place / "server.json").read_text())
    (place / "server.json").write_text(json.dumps({**about, "version": 2}))
    (place / "program.weft").write_bytes(b"as another version wrote it")
    with pytest.raises(
        WeftError, match=r"the state in .*state cannot be used: it was saved by another version of weft"
    ):
        Service(settings)
    (place / "server.json").write_text(json.dumps(about))
    with pytest.raises(WeftError, match=r"program\.weft"):
        Service(settings)


def test_a_full_disk_ends_the_server_in_a_sentence_and_nothing_that_was_answered_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, settings = weft.compile(PAIRS, "ceql"), ServerSettings(state=tmp_path / "state")
    service = Service(settings, program)
    service.engine.submit(publication(0)).result(60)

    def full(_self: object, _record: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "append", full)
        with pytest.raises(WeftError, match="no room left on the disk of its state"):
            service.engine.submit(publication(1)).result(60)
    service.close()
    again = Service(settings, program)
    assert again.engine.program.running.events == 1
    again.engine.submit(publication(1)).result(60)
    assert again.hub.counts["q"] == 1
    again.close()


def test_how_far_events_may_be_ahead_is_a_setting_that_a_restart_may_change(tmp_path: Path) -> None:
    def pushed(service: Service, second: int) -> int:
        service.engine.submit(publication(1000 * second)).result(60)
        return service.engine.program.running.counters.get("set aside", 0)

    program = weft.compile(PAIRS, "ceql")
    for state in (None, tmp_path / "state"):
        service = Service(ServerSettings(Options(arrival=Arrival(max_jump=5)), state=state), program)
        assert [pushed(service, at) for at in (0, 1, 60)] == [0, 0, 1]
        service.close()
    again = Service(ServerSettings(Options(arrival=Arrival(max_jump=None)), state=tmp_path / "state"), program)
    assert again.engine.program.running.max_jump is None
    assert pushed(again, 61) == 0
    again.close()
    third = Service(ServerSettings(Options(arrival=Arrival(max_jump=None)), state=tmp_path / "state"), program)
    assert third.engine.program.running.max_jump is None
    third.close()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make a certificate with")
def test_certificates_make_it_https(tmp_path: Path) -> None:
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout key.pem -out cert.pem -subj /CN=localhost"
    alternative = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command.split(), *alternative], cwd=tmp_path, check=True, capture_output=True)
    with (
        ServerProcess("--certificate", "cert.pem", "--certificate-key", "key.pem", cwd=tmp_path) as server,
        weft.connect(server.url, verify=str(tmp_path / "cert.pem")) as client,
    ):
        assert server.url.startswith("https://")
        assert client.stats()["events"] == 0
        with pytest.raises(weft.ServiceError, match="certificate"):
            weft.connect(server.url, patience=0).stats()
