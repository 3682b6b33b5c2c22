"""The official Python SDK on the same blast: `python receive.py RUNTIME ARGS…`. For every number on stdin it asks for a
blast of as many notifications, takes them all, and prints a line. Started by peers.rs."""
import sys
import threading

from deepseek_harness.client import HarnessClient

client = HarnessClient(_launch_args=tuple(sys.argv[1:]))
client.start()
events = client.subscribe_notifications()
for line in sys.stdin:
    call = threading.Thread(target=client._request_raw, args=("blast", {}), kwargs={"timeout_seconds": None})
    call.start()
    for _ in range(int(line)):
        events.next()
    call.join()
    print("done", flush=True)
client.close()
