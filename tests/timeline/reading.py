"""What a page has to show, read from the recording by other means than the command's."""
import base64
import json

TURN_KINDS = {"turn/start": "turn", "step/start": "step", "tool/call": "tool"}


def read(path):
    """The lines of a recording as (number, microseconds, direction, bytes, whether it ended in a newline)."""
    # The beginnings of lines that came in pieces, by direction.
    begun = {}
    for number, text in enumerate(path.read_text("utf-8").split("\n"), 1):
        if text:
            entry = json.loads(text)
            piece = entry["frame"].encode() if "frame" in entry else base64.b64decode(entry["frame_b64"])
            way, micros = entry["dir"], round(entry["t"] * 1e6)
            _, _, before = begun.pop(way, (number, micros, b""))
            line = before + piece
            if not entry.get("eol", True):
                begun[way] = number, micros, line
            elif strip(line):
                yield number, micros, way, line, True
    for way, (number, micros, line) in begun.items():
        if strip(line):
            yield number, micros, way, line, False


def strip(line):
    """What JavaScript trims."""
    return line.decode("utf-8", "replace").strip("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B))))


def no_constant(name):
    raise ValueError(name)


def frame(line):
    """The frame on a line, or None."""
    import sys
    sys.setrecursionlimit(1_000_000)
    try:
        frame = json.loads(strip(line), parse_int=float, parse_constant=no_constant)
    except (ValueError, RecursionError):
        return None
    if not isinstance(frame, dict):
        return None
    is_id = isinstance(frame.get("id"), (str, int, float)) and not isinstance(frame.get("id"), bool)
    return frame if is_id or isinstance(frame.get("method"), str) else None


def spans(path):
    """Counts of the spans by kind, name and how they ended; the sessions; the counts of lines and dropped lines."""
    found, lanes, lines, dropped = [], {}, 0, 0
    waiting, open_ = {}, {}

    def begin(kind, name, key):
        span = {"kind": kind, "name": name, "end": "open"}
        found.append(span)
        if kind == "request":
            waiting.setdefault(key, []).append(span)
        else:
            open_[key] = span

    def end(key, failed):
        if span := open_.pop(key, None):
            span["end"] = "failed" if failed else "well"

    for _, _, way, line, whole in read(path):
        lines += 1
        message = frame(line) if whole else None
        if message is None:
            dropped += way != "err"
            continue
        params = message.get("params") if isinstance(message.get("params"), dict) else {}
        has_id = isinstance(message.get("id"), (str, int, float)) and not isinstance(message.get("id"), bool)
        method = message.get("method") if isinstance(message.get("method"), str) else None
        if has_id and method is None:
            other = {"c2s": "s2c", "s2c": "c2s"}[way]
            if queue := waiting.get((other, message["id"])):
                queue.pop(0)["end"] = "failed" if isinstance(message.get("error"), (dict, list)) else "well"
            continue
        for name in ("parentSessionId", "childSessionId") if method.startswith("subagent.") and not has_id else ("sessionId",):
            if isinstance(params.get(name), str):
                lanes.setdefault(params[name])
        if has_id:
            begin("request", method, (way, message["id"]))
            continue
        if method == "subagent.started":
            lanes[params["childSessionId"]] = params["parentSessionId"]
        event = params.get("event") or {}
        session, data, kind = params.get("sessionId"), event.get("data") or {}, event.get("type")
        turn = data.get("turn")
        if kind == "turn/start":
            begin("turn", f"turn {turn:.0f}", (session, "turn", turn))
        elif kind == "step/start":
            begin("step", f"step {data['step']:.0f}", (session, "step", turn, data["step"]))
        elif kind == "tool/call":
            begin("tool", data["name"], (session, "tool", turn, data["callId"]))
        elif kind == "step/end":
            end((session, "step", turn, data["step"]), False)
        elif kind == "tool/result":
            call = data["message"].get("toolCallId") or data["message"]["source"]["callId"]
            end((session, "tool", turn, call), bool(data["message"].get("isError")) or bool(data.get("error")))
        elif kind == "turn/end":
            end((session, "turn", turn), data["reason"]["kind"] == "error")
            for key in [key for key in open_ if key[0] == session and key[2] == turn]:
                del open_[key]
    return found, lanes, lines, dropped
