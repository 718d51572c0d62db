"""Output of notebooks: pictures whose parts are those of the plans, tables that escape their contents, and traces."""

import base64
import html.parser
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as xml

import numpy as np
import pytest

import tranship as ts


class _Page(html.parser.HTMLParser):
    """Parses a piece of HTML and checks that its tags are closed in order, and that it has no script."""

    VOID = {"img", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text, self.images = [], [], "", []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        assert tag in {"img", "div", "table", "tr", "th", "td", "details", "summary", "pre"}
        assert not any(name.startswith("on") for name, _ in attributes)
        if tag == "img":
            data = dict(attributes)["src"].removeprefix("data:image/svg+xml;base64,")
            self.images.append(xml.fromstring(base64.b64decode(data)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def page_of(value):
    return _Page(value._repr_html_())


def title_of(svg):
    return svg.findtext("{http://www.w3.org/2000/svg}title")


def bars_of(svg):
    return [r for r in svg.iter("{http://www.w3.org/2000/svg}rect") if r.get("class") == "message"]


def halo_of(world, **options):
    d = ts.distribution((12, 12), grid=(2, 2), overlap=1, edge="toroidal")
    return ts.halo(ts.array(world, d, name="u"), **options)


def test_layouts_distributions_and_arrays_show_who_owns_what():
    spec = ts.layout("f64[12,12] @ 2x2 : block, cyclic(2)")
    assert title_of(page_of(spec).images[0]) == str(spec)
    assert title_of(page_of(spec.distribution).images[0]) == "[12,12] @ 2x2 : block, cyclic(2)"

    def body(world):
        a = ts.array(world, spec.distribution, name="<script>alert(1)</script>")
        return page_of(a).text, a

    text, a = ts.launch(4, body)[3]
    assert "<script>" in text and "rank 3" in text and "float64" in text
    assert "ended world" in page_of(a).text


def test_indexed_distributions_have_a_table_in_place_of_a_picture():
    d = ts.indexed(4, [([0, 1], [2]), ([2, 3], [])])
    for shown in (page_of(d), page_of(ts.ArraySpec("f64", d))):
        assert not shown.images and "rank 1" in shown.text


def test_a_plan_shows_its_messages(run):
    plans = run(4, lambda world: halo_of(world).plan)
    for rank, plan in enumerate(plans):
        shown = page_of(plan)
        assert title_of(shown.images[0]) == f"halo, rank {rank}" and plan.rank == rank
        peers = json.loads(plan.to_json())["peers"]
        assert len(bars_of(shown.images[0])) == 2 * len(peers) == 6
        assert shown.text.count("rank") == 3


def test_plans_of_all_ranks_are_a_matrix(run):
    plans = ts.Plans(run(4, lambda world: halo_of(world).plan))
    shown = page_of(plans)
    assert title_of(shown.images[0]) == "halo, 4 ranks"
    assert len(bars_of(shown.images[0])) == len(plans.messages) == 12
    assert sum(size for _, _, size in plans.messages) == sum(
        json.loads(plan.to_json())["sent"]["bytes"] for plan in plans
    )
    assert plans[1].rank == 1 and len(plans[1:]) == 3 and len(plans) == 4
    assert repr(plans) == "<plans of ranks 0, 1, 2, 3>"
    assert xml.fromstring(plans.svg()).get("role") == "img"


def test_some_plans_show_what_they_receive_from_the_others():
    rows, one = ts.layout("f64[8] @ 4 : block"), ts.layout("f64[8] @ 1 : whole")
    everything = ts.plan_redistribution(rows, one)
    assert everything.messages == [(1, 0, 16), (2, 0, 16), (3, 0, 16)]
    assert ts.Plans(everything[:1]).messages == everything.messages
    assert ts.plan_redistribution(rows, one, 2) == everything[2]
    assert len(ts.plan_halo([rows])) == 4


def test_plans_that_do_not_belong_together_are_refused():
    spec = ts.layout("f64[8] @ 2 : block+overlap(1,1)")
    plan = ts.plan_halo([spec], 0)
    with pytest.raises(ts.InvalidUse, match="no plan"):
        ts.Plans([])
    with pytest.raises(ts.InvalidUse, match="two of 2 are of rank 0"):
        ts.Plans([plan, plan])
    with pytest.raises(ts.InvalidUse, match="not of a ArraySpec"):
        ts.Plans([spec])
    with pytest.raises(ts.InvalidUse, match="not of a halo"):
        ts.Plans([plan, ts.plan_redistribution(spec, spec, 1)])


def test_many_ranks_and_many_peers_stay_small():
    many = ts.plan_redistribution(ts.layout("f64[40000] @ 200 : block"), ts.layout("f64[40000] @ 200 : cyclic"))
    assert len(many._repr_html_()) < 600_000 and len(many[3]._repr_html_()) < 60_000
    assert "and 176 more" in page_of(many).text
    assert len(many.messages) == 200 * 199


def test_plans_are_pickled_and_checked():
    plan = ts.plan_halo([ts.layout("f64[8] @ 2 : block+overlap(1,1)")], 1)
    assert pickle.loads(pickle.dumps(plan)) == plan
    text = pickle.dumps(plan, protocol=0).replace(b'"rank":1', b'"rank":"x"').replace(b'"rank": 1', b'"rank": "x"')
    with pytest.raises(ts.Error):
        pickle.loads(text)


def test_exchanges_show_what_they_move_and_how_also_after_their_world(run):
    def body(world):
        a = ts.array(world, ts.distribution((8, 8), (2, 1)), name="a")
        b = ts.array(world, ts.distribution((8, 8), (1, 2)), name="b")
        turn = ts.Redistribution(a, b)
        inside = turn._repr_html_()
        turn()
        return turn if run.__name__ == "threads" else None, inside

    for rank, (turn, inside) in enumerate(run(2, body)):
        shown = _Page(inside)
        assert title_of(shown.images[0]) == f"redistribution, rank {rank}"
        assert "schedule: " in shown.text and "128 B" in shown.text


def test_exchanges_that_are_returned_keep_what_they_were():
    for halo in ts.launch(4, halo_of):
        assert "from rank" in halo.explain() and halo.schedule in ("direct", "staged", "automatic")
        assert len(page_of(halo).images) == 1
        with pytest.raises(ts.InvalidUse):
            halo()


def test_devices_show_their_copies():
    devices = ts.Devices(fake=1)
    assert page_of(devices).text == "devices host, fake:0: 0 B copied between them"
    x = ts.Buffer(1000, devices=devices, name='<b onload="x">')
    with x.write() as a:
        a[:] = 1
    with x.read("fake:0"):
        pass
    shown = page_of(devices)
    assert "host → fake:0" in shown.text and "first_touch" in shown.text and "7.8 KiB" in shown.text
    assert '<b onload="x">' in shown.text


# Traces.


def check_trace(events):
    """The rules of the Trace Event Format, as far as complete and metadata events have any."""
    tracks = {}
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    processes = [e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name"]
    assert len(set(processes)) == len(processes)
    for event in events:
        assert event["ph"] in ("X", "M") and isinstance(event["name"], str)
        assert isinstance(event["pid"], int) and event["pid"] >= 0 and isinstance(event["tid"], int)
        assert isinstance(event["args"], dict)
        if event["ph"] == "X":
            assert event["ts"] > 0 and event["dur"] >= 0 and isinstance(event["cat"], str)
            tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    assert set(tracks) == named and {pid for pid, _ in named} <= set(processes)
    for slices in tracks.values():
        slices.sort()
        for (_, end), (begin, _) in zip(slices, slices[1:]):
            assert end <= begin + 1e-3, "slices of one track overlap"


def turn_and_copy(world):
    a = ts.array(world, ts.distribution((8, 8), (world.size, 1)), name="a")
    b = ts.array(world, ts.distribution((8, 8), (1, world.size)), name="b")
    turn = ts.Redistribution(a, b)
    for _ in range(3):
        turn()
    with turn:
        pass
    devices = ts.Devices(fake=1)
    x = ts.Buffer(100, devices=devices, name="x")
    with x.write() as view:
        view[:] = world.rank
    with x.read("fake:0"):
        pass


def test_a_trace_has_every_exchange_message_and_copy(run, tmp_path):
    path = tmp_path / "run.json"
    with ts.tracing(path) as trace:
        run(2, turn_and_copy)
    with open(path) as file:
        saved = json.load(file)
    assert saved["traceEvents"] == trace.events and saved["otherData"]["exchanges_left_out"] == 0
    check_trace(trace.events)
    seeds = 1 if len(trace.slices) < 100 else 3
    for rank in range(2):
        mine = [e for e in trace.slices if e["pid"] == rank]
        flights = [e for e in mine if "received_bytes" in e["args"]]
        assert len(flights) == 4 * seeds and {e["args"]["received_bytes"] for e in flights} == {128}
        assert all("test_pictures.py:" in e["args"]["made_at"] for e in flights)
        messages = [e["args"] for e in mine if "way" in e["args"]]
        assert len(messages) == 8 * seeds and {m["bytes"] for m in messages} == {128}
        assert {(m["source"], m["target"]) for m in messages} == {(0, 1), (1, 0)}
        (copy,) = {json.dumps({k: e["args"][k] for k in ("buffer", "bytes", "cause")}) for e in mine if "cause" in e["args"]}
        assert json.loads(copy) == {"buffer": "x", "bytes": 800, "cause": "first_touch"}
    assert isinstance(trace, ts.Trace) and repr(trace).startswith("<trace of 2 ranks, ")
    assert "rank 1" in page_of(trace).text


def test_nothing_is_recorded_outside_of_the_block():
    with ts.tracing() as trace:
        assert "being recorded" in page_of(trace).text and "being recorded" in repr(trace)
    ts.launch(2, turn_and_copy)
    assert trace.events == [] and "nothing" in page_of(trace).text
    with ts.tracing():
        with pytest.raises(ts.InvalidUse, match="already"):
            with ts.tracing():
                pass
        ts.launch(2, turn_and_copy)
    with ts.tracing() as trace:
        pass
    assert trace.events == []


def test_devices_of_all_ranks_and_earlier_copies():
    devices = ts.Devices(fake=1)

    def copy():
        x = ts.Buffer(10, devices=devices)
        with x.write() as view:
            view[:] = 0
        with x.read("fake:0"):
            pass

    copy()
    with ts.tracing() as trace:
        copy()
    check_trace(trace.events)
    assert [e["cat"] for e in trace.slices] == ["first_touch"]
    assert [e["args"]["name"] for e in trace.events if e["name"] == "process_name"] == ["devices of no rank"]


def test_a_trace_has_exchanges_and_nothing_of_other_transfers():
    def others(world):
        pipe = ts.Pipe(world, ts.distribution((4, 6), (2, 1)), ts.distribution((4, 6), (1, 2)))
        with pipe.sender as out:
            out.fill(1)
        with pipe.receiver:
            pass
        x = ts.symmetric(world, 4)
        x.put([1, 2, 3, 4], 1 - world.rank)
        world.barrier()
        x.all_reduce("sum")

    def exchanges(world):
        u = ts.array(world, ts.distribution((8, 8), (2, 1), overlap=1), name="u", devices=ts.Devices(fake=1))
        with u.write("stored", device="fake:0"):
            pass
        with u.read("stored"):
            pass
        ts.gather(u)

    with ts.tracing() as trace:
        ts.launch(2, others)
    assert not trace.slices
    with ts.tracing() as trace:
        ts.launch(2, exchanges)
    names = {e["name"] for e in trace.slices}
    # An exchange that is over before it is finished has no slice for that call.
    assert {"start", "u", "redistribution of u, array"} <= names, names


def test_a_trace_survives_failures(tmp_path):
    def body(world):
        halo = halo_of(world)
        halo()
        world.barrier()
        if world.rank == 1:
            raise KeyError("lost")
        halo()

    path = tmp_path / "run.json"
    with pytest.raises(KeyError):
        with ts.tracing(path):
            ts.launch(4, body)
    events = json.loads(path.read_text())["traceEvents"]
    check_trace(events)
    failed = [e for e in events if "failure" in e["args"]]
    assert {e["pid"] for e in failed} == {0, 2, 3}
    assert 1 in {e["args"]["source"] for e in events if "missing" in e["args"] and e["args"]["target"] == e["pid"]}


def test_the_trace_of_a_killed_process_is_missing_and_those_of_the_others_are_there():
    def body(world):
        turn_and_copy(world)
        world.barrier()
        if world.rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    with ts.tracing() as trace:
        ts.launch(3, turn_and_copy, ranks="processes")
        with pytest.raises(ts.PeerLost):
            ts.launch(3, body, ranks="processes")
    flights = [e["pid"] for e in trace.slices if "received_bytes" in e["args"]]
    assert [flights.count(rank) for rank in range(3)] == [8, 8, 4]


def test_processes_of_a_launcher_write_one_trace(command, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import tranship as ts\n"
        "def main(world):\n"
        "    d = ts.distribution((8, 8), grid=(world.size, 1), overlap=1, edge='toroidal')\n"
        "    ts.halo(ts.array(world, d, name='u'))()\n"
        "with ts.tracing('run.json') as trace:\n"
        "    ts.launch(main)\n"
    )
    (tmp_path / "run.json").write_text("something else")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    for _ in range(2):  # the trace of an earlier launch is not added to
        subprocess.run(
            [command, "launch", "-n", "4", sys.executable, str(program)], cwd=tmp_path, env=environment, check=True, timeout=120
        )
        events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
        check_trace(events)
        assert sorted(e["pid"] for e in events if e["name"] == "process_name") == [0, 1, 2, 3]
        assert len([e for e in events if "received_bytes" in e["args"]]) == 4
    assert sorted(os.listdir(tmp_path)) == ["program.py", "run.json"]


def test_a_trace_is_bounded():
    with ts.tracing() as trace:

        def body(world):
            halo = ts.halo(ts.array(world, ts.distribution(8, 1, overlap=1, edge="toroidal")))
            for _ in range(10_000):
                halo()

        ts.launch(1, body)
    assert len([e for e in trace.slices if "received_bytes" in e["args"]]) == 10_000
    check_trace(trace.events)


def test_names_that_are_no_text_are_escaped_in_traces():
    def body(world):
        d = ts.distribution(8, 2, overlap=1)
        ts.halo(ts.array(world, d, name='"\n\x00\u2603</script>'))()

    with ts.tracing() as trace:
        ts.launch(2, body)
    assert any('"\n' in e["name"] for e in trace.slices)
    assert not re.search(r"<script", trace._repr_html_()) and page_of(trace).tags
    assert np.isfinite([e["ts"] for e in trace.slices]).all()


def test_a_summary_blames_the_rank_that_came_late():
    """Ranks 0 and 2 call finish at once and wait until rank 1 starts, 100 ms later."""
    names = {0: "rank 0", 1: "rank 1", 2: "rank 2"}
    events = [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}} for pid, name in names.items()]

    def add(pid, name, begin, end, **args):
        args = {"exchange": "halo of u", "epoch": 1, **args}
        events.append({"ph": "X", "pid": pid, "tid": 1, "name": name, "cat": "exchange", "ts": begin, "dur": end - begin, "args": args})  # fmt: skip

    for rank, begin in ((0, 0.0), (1, 100_000.0), (2, 1000.0)):
        end = 101_000.0 + rank
        add(rank, "halo of u", begin, end, received_bytes=8, sent_bytes=8, kept_bytes=0, made_at="a.py:1")
        add(rank, "start", begin, begin + 10)
        add(rank, "finish", begin + 10, end)
        for peer in {0, 1, 2} - {rank}:
            add(rank, "8 B", begin, end, source=rank, target=peer, bytes=8, way="direct")
    trace = ts.Trace()
    trace._events = events
    waits = {(rank, peer): time for rank, peer, time in trace._waits()}
    assert waits == {(0, 1): 99_990.0, (2, 1): 98_990.0}
    rows = [[cell.strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in trace._repr_html_().split("<tr>")]
    told = {row[0]: row[4:7] for row in rows if row}
    assert told == {
        "rank 0": ["1.010 ms", "99.990 ms", "0.000 ms"],
        "rank 1": ["1.001 ms", "0.000 ms", "198.980 ms"],
        "rank 2": ["1.012 ms", "98.990 ms", "0.000 ms"],
    }


def test_a_rank_that_is_late_is_named_by_its_own_trace():
    """Rank 1 begins when rank 0 has been seen waiting."""

    def main(world):
        a = ts.array(world, ts.distribution((8,), grid=(2,), overlap=1, edge="toroidal"), name="u")
        halo = ts.halo(a)
        world.barrier()
        while world.rank == 1 and "waiting for exchange" not in world.activity_of(0):
            pass
        halo()

    with ts.tracing() as trace:
        ts.launch(2, main)
    waits = [(rank, peer) for rank, peer, _ in trace._waits()]
    assert waits == [(0, 1)]


def test_an_array_shows_the_overlap_of_its_own_rank():
    def main(world):
        cells = ts.distribution((8, 8, 8), grid=(2, 2, 2), overlap=1)
        page = ts.array(world, cells)._repr_html_()
        data = re.search(r"base64,([^\"]*)", page)
        return f">overlap of rank {world.rank}<" in base64.b64decode(data[1]).decode()

    assert ts.launch(8, main) == [True] * 8
