#!/usr/bin/env python3
"""Further checks of a runtime by the official Python SDK; they need the directives of `dsh-wire serve`.

    more.py --server PATH

PATH is started as `PATH --profile NAME`. Exit code 0 means every check passed.
"""
import argparse
import pathlib
import sys
import tempfile
import threading
import time

import pydantic
from deepseek_harness import DeepSeekHarness
from deepseek_harness.errors import JsonRpcError

parser = argparse.ArgumentParser()
parser.add_argument("--server", required=True)
args = parser.parse_args()
failures = []


def check(name, good, detail=""):
    print("%-4s %s %s" % ("ok" if good else "FAIL", name, detail))
    if not good:
        failures.append(name)


def refused(name, call, text):
    try:
        call()
    except JsonRpcError as error:
        check(name, error.code == -32603 and text in error.message, error.message[:90])
    else:
        check(name, False, "no error")


def dies(name, call):
    started = time.monotonic()
    try:
        call()
    except Exception as error:  # the SDK has a type a kind of end; any but a hang will do
        check(name, time.monotonic() - started < 20, type(error).__name__)
    else:
        check(name, False, "no error")


class Anything(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")


def request(harness, method, params):
    return harness.client.request(method, params, response_model=Anything)


def types(result):
    return [event["type"] for event in result.events]


with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as workspace:
    workspace = str(pathlib.Path(workspace).resolve())
    (pathlib.Path(workspace) / "sub").mkdir()
    options = dict(dsh_bin=args.server, dsh_home=home, cwd=workspace, profile="sdk", base_url="http://127.0.0.1:1",
                   api_key="k", shutdown_timeout_seconds=10.0)
    with DeepSeekHarness(**options) as harness:
        result = harness.run("@bash echo one && @bash echo two && @say done", session_id="a")
        check("three steps", types(result).count("step/start") == 3 and result.final_response == "done")
        check("two tool calls", types(result).count("tool/call") == types(result).count("tool/result") == 2)
        check("steps end", types(result).count("step/end") == 3)
        seqs = [event["seq"] for event in result.events]
        check("seq without a gap", seqs == list(range(seqs[0], seqs[0] + len(seqs))), "%s" % seqs[:3])
        times = [event["time"] for event in result.events]
        check("time never goes back", times == sorted(times))
        check("receipt first", types(result)[0] == "agent/inbox/spliced")
        check("turn ends last", types(result)[-1] == "turn/end")
        result = harness.run("@tools 3 true", session_id="a")
        check("parallel calls", types(result).count("tool/result") == 3)
        result = harness.run('@tool nonesuch {"a": 1}', session_id="a")
        check("unknown tool", any(event["type"] == "tool/result" and event["data"]["message"]["isError"]
                                  for event in result.events))
        result = harness.run("@long 100000", session_id="b")
        check("long answer", len(result.final_response) == 100000)
        result = harness.run("@flood 2000 500", session_id="b")
        check("flood", types(result).count("dsh-wire/flood") == 2000)
        result = harness.run("x" * 1_000_000, session_id="b")
        check("prompt of a megabyte", result.final_response == "echo of 1000000 characters")
        result = harness.run("@error 500 1", session_id="b")
        check("retry", result.final_response == "recovered" and "llm/retry" in types(result))
        for directive, code in (("@cut", "STREAM_CLOSED"), ("@garbage", "MALFORMED_RESPONSE"),
                                ("@error 401", "AUTH")):
            result = harness.run(directive, session_id="c")
            reason = result.events[-1]["data"]["reason"]
            check("failure " + directive, reason["kind"] == "error" and reason["error"]["code"] == code, str(reason))
        result = harness.run("@panic", session_id="c")
        check("panic", result.finish_reason == "error")
        def approve():
            request = harness.client.next_request()
            harness.client.respond(request.id, {"asked": request.method})
        approving = threading.Thread(target=approve)
        approving.start()
        result = harness.run("@ask approval/ask {}", session_id="c")
        approving.join()
        check("request is answered", "approval/ask" in result.final_response, result.final_response)
        result = harness.run("@maxtokens cut", session_id="c")
        check("text at max tokens", result.final_response == "cut" and result.finish_reason == "max-tokens")

        result = harness.run("@agent @say from the child", session_id="d")
        check("sub-agent started", any(n.method == "subagent.started" for n in result.notifications))
        check("parent answers first", result.final_response == "The tool has answered.")
        request(harness, "session/wait", {"sessionId": "d"})
        result = harness.run("after the child", session_id="d")
        check("parent goes on", result.final_response == "echo: after the child")
        for ids in (("../x", "a b"), ("\u4f60", "\u2028"), ("lone \ud83d", "'\"\\")):
            for session_id in ids:
                result = harness.run("hi", session_id=session_id)
                check("session id %s" % ascii(session_id), result.final_response == "echo: hi")

        session = harness.start_session("e")
        check("directory set", session.set_working_directory("sub") == workspace + "/sub")
        check("directory get", session.get_working_directory() == workspace + "/sub")
        result = session.run("@bash pwd")
        check("directory of tools", any(workspace + "/sub" in str(event["data"]) for event in result.events
                                        if event["type"] == "tool/result"))
        check("note of the change", any(event["data"].get("source", {}).get("kind") == "working-directory"
                                        for event in result.events if event["type"] == "user/message"))
        refused("directory that is none", lambda: session.set_working_directory("/no/such"), "does not exist")

        answers = {}
        threads = [threading.Thread(target=lambda n=n: answers.__setitem__(
            n, harness.run("@slow 0.2 %d" % n, session_id="t%d" % n).final_response)) for n in range(8)]
        started = time.monotonic()
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        check("eight sessions at once", answers == {n: str(n) for n in range(8)} and time.monotonic() - started < 8)
        refused("unknown method", lambda: request(harness, "nope", {}), "unknown DeepSeek Harness SDK")
        refused("wait for a ghost", lambda: request(harness, "session/wait", {"sessionId": "ghost"}), "unknown SDK")
        check("initialize again", "serverInfo" in request(harness, "initialize", {
            "cwd": workspace, "provider": "deepseek-official", "model": "m"}).model_dump())

    with DeepSeekHarness(**options) as harness:
        refused("stored but not resumed", lambda: harness.run("x", session_id="a"), "already exists")
        check("resume", harness.resume_session("b").run("again").final_response == "echo: again")
        request(harness, "session/prompt", {"sessionId": "z", "contentBlocks": [
            {"type": "text", "text": "@slow 60 never"}]})
        closing = time.monotonic()
    check("close in mid-turn is quick", time.monotonic() - closing < 5)
    for directive in ("@die 3", "@kill"):
        harness = DeepSeekHarness(**options)
        harness.start()
        dies("death " + directive, lambda: harness.run(directive, session_id="dying " + directive))
        harness.close()
    harness = DeepSeekHarness(**options)
    result = harness.resume_session("dying @kill").run("after death")
    check("resume after a kill", result.final_response == "echo: after death")
    harness.close()

print("%d failure(s)" % len(failures))
sys.exit(1 if failures else 0)
