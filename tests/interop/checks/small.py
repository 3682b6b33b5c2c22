#!/usr/bin/env python3
"""The official Python SDK drives the examples: small.py --parrot PATH --counter PATH."""
import argparse
import sys
import tempfile

from deepseek_harness import DeepSeekHarness

parser = argparse.ArgumentParser()
parser.add_argument("--parrot", required=True)
parser.add_argument("--counter", required=True)
args = parser.parse_args()
failures = []


def check(name, good, detail=""):
    print("%-4s %s %s" % ("ok" if good else "FAIL", name, detail))
    if not good:
        failures.append(name)


with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as workspace:
    options = dict(dsh_home=home, cwd=workspace, profile="sdk", base_url="http://127.0.0.1:1", api_key="k",
                   shutdown_timeout_seconds=10.0)
    with DeepSeekHarness(dsh_bin=args.parrot, **options) as harness:
        for text in ("hello", "lone \ud83d", "\u2028 \U0001F600", "", "x" * 200_000):
            result = harness.run(text, session_id="p")
            check("parrot", result.final_response == "You said: " + text.replace("\ud83d", "\ufffd") and result.finish_reason == "completed")
        check("directory", harness.start_session("p").get_working_directory() != "")
    with open(workspace + "/file", "w") as file:
        file.write("one two three")
    with DeepSeekHarness(dsh_bin=args.counter, **options) as harness:
        for text, answer, reason in (("one two", "2 words, 2 so far", "completed"),
                                     ("file file", "3 words, 5 so far", "completed"), ("file none", "", "error")):
            result = harness.run(text, session_id="c")
            check("word counter", (result.final_response, result.finish_reason) == (answer, reason), repr(result.final_response))
        result = harness.run("a", session_id="other")
        check("each session counts for itself", result.final_response == "1 words, 1 so far")
print("%d failure(s)" % len(failures))
sys.exit(1 if failures else 0)
