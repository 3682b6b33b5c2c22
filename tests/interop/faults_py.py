#!/usr/bin/env python3
"""One row of the table of faults on the official Python SDK.

    faults_py.py RUNTIME ROWS NUMBER

Prints one line: `ok`, or what came instead. tests/interop/faults runs it, and
ends it where it hangs.
"""
import json
import os
import sys
import time

from deepseek_harness.client import HarnessClient
from deepseek_harness.errors import JsonRpcError, TransportClosedError

runtime, rows, number = sys.argv[1:]
with open(rows, encoding="utf-8") as file:
    row = json.load(file)[int(number)]


def say(verdict):
    print(verdict, flush=True)
    os._exit(0)


def request(method, params, seconds):
    """What came of it: a kind, and the result."""
    try:
        return "result", client._request_raw(method, params, timeout_seconds=seconds)
    except JsonRpcError:
        return "rpc", None
    except TimeoutError:
        return "timeout", None
    except (TransportClosedError, BrokenPipeError):
        return "closed", None
    except Exception as error:  # noqa: BLE001 (whatever it is, it is shown)
        return "%s" % error.__class__.__name__, None


names = {"result": "a result", "rpc": "an RPC error", "timeout": "timed out", "closed": "connection lost"}
client = HarnessClient(_launch_args=(runtime, *("--" + flag for flag in row["flags"])))
client.start()
time.sleep(row.get("after_ms", 0) / 1000)
bound = row["within_ms"] / 1000
timeout = row.get("timeout_ms")
start = time.monotonic()
kind, result = request(row["call"], {"text": "x" * (1 << 20) if row["call"] == "big" else ""},
                       None if timeout is None else timeout / 1000)
took = time.monotonic() - start
expected = row["expect"]
if expected == "result" and kind == "result" and result != row["value"]:
    say("another result: %.60s" % json.dumps(result))
if kind != expected and not (expected == "settles" and kind in ("result", "rpc")):
    say(names.get(kind, kind))
if took > bound:
    say("late: %.1f s" % took)
after = {"lives": "result", "closed": "closed"}.get(row["after"])
if after:
    kind, _ = request("echo", {}, bound)
    if kind != after:
        say("then: " + ("hangs" if kind == "timeout" else names.get(kind, kind)))
say("ok")
