// The recording as the command wrote it: columns of numbers, texts, and the names that they share.

const LINE_KINDS = ["request", "response", "error", "notification", "dropped", "stderr", "lost", "damaged"];
const SPAN_KINDS = ["request", "turn", "step", "tool"];
const WAYS = ["client → runtime", "runtime → client", "stderr of the runtime"];
const ENDS = ["", "failed", "not ended"];
const ERROR = 2, NOTIFICATION = 3, DROPPED = 4, LOST = 6;
const FAILED = 1, OPEN = 2;

class Recording {
  constructor(data) {
    this.title = data.title;
    this.names = data.names;
    this.lanes = { count: data.lanes.name.length, name: data.lanes.name, depth: data.lanes.depth };
    const lines = data.lines, spans = data.spans;
    this.lines = {
      count: lines.at.length,
      number: lines.number,
      at: Float64Array.from(lines.at),
      way: Uint8Array.from(lines.way),
      kind: Uint8Array.from(lines.kind),
      lane: Uint32Array.from(lines.lane),
      name: Uint32Array.from(lines.name),
      bytes: lines.bytes,
      text: lines.text,
    };
    this.start = this.lines.at.reduce((least, at) => Math.min(least, at), Infinity);
    this.end = this.lines.at.reduce((most, at) => Math.max(most, at), -Infinity);
    if (this.lines.count === 0) this.start = this.end = 0;
    this.spans = {
      count: spans.kind.length,
      kind: Uint8Array.from(spans.kind),
      lane: Uint32Array.from(spans.lane),
      track: Uint8Array.from(spans.track),
      name: Uint32Array.from(spans.name),
      first: Uint32Array.from(spans.first),
      last: Int32Array.from(spans.last),
      end: Uint8Array.from(spans.end),
      from: Float64Array.from(spans.first, (line) => this.lines.at[line]),
      to: Float64Array.from(spans.last, (line) => (line < 0 ? this.end : this.lines.at[line])),
    };
    // Which lines are faults.
    this.faulty = this.lines.kind.map((kind) => (kind === ERROR || kind === DROPPED || kind >= LOST ? 1 : 0));
    for (let span = 0; span < this.spans.count; span++) {
      if (this.spans.end[span] === FAILED) this.faulty[this.spans.last[span]] = 1;
    }
  }

  laneName(lane) {
    return lane === 0 ? "connection" : this.lanes.name[lane] === "" ? "(empty session id)" : this.lanes.name[lane];
  }

  lineName(line) {
    return this.names[this.lines.name[line]];
  }

  spanName(span) {
    return this.names[this.spans.name[span]];
  }

  // What stands on the line, indented where it is whole JSON.
  pretty(line) {
    const text = this.lines.text[line];
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  }
}

// Microseconds with as many decimals as a step of that size needs.
function time(micros, step) {
  const unit = step >= 100_000 || Math.abs(micros) >= 10e6 ? 1e6 : Math.abs(micros) >= 1000 || step >= 100 ? 1000 : 1;
  const decimals = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step / unit) - 1e-9)));
  return `${(micros / unit).toFixed(decimals)} ${unit === 1e6 ? "s" : unit === 1000 ? "ms" : "µs"}`;
}

// A moment, exactly.
function moment(micros) {
  return `${(micros / 1e6).toFixed(6)} s`;
}

// A length of time in three digits.
function duration(micros) {
  const [value, unit] = micros >= 999_500 ? [micros / 1e6, "s"] : micros >= 999.5 ? [micros / 1000, "ms"] : [micros, "µs"];
  return `${value.toFixed(value >= 99.95 || unit === "µs" ? 0 : value >= 9.995 ? 1 : 2)} ${unit}`;
}

function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
