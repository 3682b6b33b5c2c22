#!/usr/bin/env python3
"""One conversation with the official Python SDK; prints what it made of it, one JSON line a run.

    tapped.py --server PATH --home DIR --cwd DIR --model-url URL

Nothing that is printed depends on chance, except what the runtime chose. Sessions have the ids that the SDK makes up.
"""
import argparse
import json

from deepseek_harness import DeepSeekHarness
from deepseek_harness.errors import JsonRpcError

parser = argparse.ArgumentParser()
for name in ("server", "home", "cwd", "model-url"):
    parser.add_argument("--" + name, required=True)
args = parser.parse_args()

with DeepSeekHarness(dsh_bin=args.server, dsh_home=args.home, cwd=args.cwd, profile="sdk-minimal",
                     base_url=args.model_url, api_key="k", env={"DSH_TELEMETRY_MODE": "DISABLED"},
                     shutdown_timeout_seconds=10.0) as harness:
    session = harness.start_session()
    for prompt in ("hello", "@bash echo hi", "@think I ponder | Done.", "@maxtokens", "@error 400", "@unicode",
                   "lone \ud83d surrogate"):
        result = session.run(prompt)
        print(json.dumps([prompt, result.final_response, result.finish_reason,
                          [n.method for n in result.notifications], [event["type"] for event in result.events]]))
    print(json.dumps(harness.run("on another session").final_response))
    print(json.dumps(session.get_working_directory()))
    try:
        harness.resume_session("never")
    except JsonRpcError as error:
        print(json.dumps([error.code, error.message]))
