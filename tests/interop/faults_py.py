#!/usr/bin/env python3
"""One row of the table of faults on the official Python SDK.

    faults_py.py RUNTIME ROWS NUMBER

Prints one line: `ok`, or what came instead. tests/interop/faults runs it, and
ends it where it hangs.
"""
import json
import os
import sys
import threading
import time

from deepseek_harness.api import DeepSeekHarness
from deepseek_harness.errors import JsonRpcError, TransportClosedError

runtime, rows, number = sys.argv[1:]
with open(rows, encoding="utf-8") as file:
    row = json.load(file)[int(number)]
NAMES = {"result": "a result", "rpc": "an RPC error", "timeout": "timed out", "closed": "connection lost"}


def say(verdict):
    print(verdict, flush=True)
    os._exit(0)


def attempt(what):
    """What came of it: a kind, the result, and the seconds it took."""
    start = time.monotonic()
    try:
        kind, result = "result", what()
    except JsonRpcError:
        kind, result = "rpc", None
    except TimeoutError:
        kind, result = "timeout", None
    except (TransportClosedError, BrokenPipeError):
        kind, result = "closed", None
    except Exception as error:  # noqa: BLE001 (whatever it is, it is shown)
        kind, result = error.__class__.__name__, None
    return kind, result, time.monotonic() - start


def limited(what, seconds):
    """The same in a thread that is left behind where it hangs."""
    ends = []
    thread = threading.Thread(target=lambda: ends.append(attempt(what)), daemon=True)
    thread.start()
    thread.join(seconds)
    if not ends:
        return "hangs", None, seconds
    return ends[0]


harness = DeepSeekHarness(_launch_args=(runtime,))
client = harness.client
bound = row["within_ms"] / 1000
timeout = row.get("timeout_ms")
if row["call"] == "run":
    kind, result, took = limited(lambda: harness.run("hello", session_id="s").final_response, 2 * bound)
else:
    client.start()
    time.sleep(row.get("after_ms", 0) / 1000)
    params = {"text": "x" * row.get("size", 0)}
    seconds = None if timeout is None else timeout / 1000
    kind, result, took = limited(lambda: client._request_raw(row["call"], params, timeout_seconds=seconds), 2 * bound)
expected = row["expect"]
if kind == "hangs":
    say("hangs > %.1f s" % took)
if expected == "result" and kind == "result" and result != row["value"]:
    say("another result: %.60s" % json.dumps(result))
if kind != expected and not (expected == "settles" and kind in ("result", "rpc")):
    say("%s in %.1f s" % (NAMES.get(kind, kind), took))
if took > bound:
    say("late: %.1f s" % took)
if row["after"] == "ends":
    kind, _, took = limited(harness.close, 2 * bound)
    if kind != "result" or took > bound:
        say("then, closed: %s, %.1f s" % ("returns" if kind == "result" else NAMES.get(kind, kind), took))
after = {"lives": "result", "closed": "closed"}.get(row["after"])
if after:
    kind, _, took = limited(lambda: client._request_raw("echo", {}), bound)
    if kind != after:
        say("then: " + ("hangs > %.1f s" % took if kind == "hangs" else NAMES.get(kind, kind)))
say("ok")
