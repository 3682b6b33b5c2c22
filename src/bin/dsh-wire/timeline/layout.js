// Where things lie below each other: lanes, in them a row for each track, and the ticks of the lines.

const AXIS = 26, ROW = 19, TICKS = 16, GAP = 9, OVERVIEW = 34;

class Layout {
  constructor(recording) {
    const { lanes, spans } = recording;
    // Rows of each kind in each lane.
    const rows = SPAN_KINDS.map(() => new Uint8Array(lanes.count));
    for (let span = 0; span < spans.count; span++) {
      const of = rows[spans.kind[span]], lane = spans.lane[span];
      of[lane] = Math.max(of[lane], spans.track[span] + 1);
    }
    this.top = new Float64Array(lanes.count + 1);
    this.firstRow = SPAN_KINDS.map(() => new Uint8Array(lanes.count));
    this.rows = new Uint16Array(lanes.count);
    for (let lane = 0; lane < lanes.count; lane++) {
      let row = 0;
      for (const kind of SPAN_KINDS.keys()) {
        this.firstRow[kind][lane] = row;
        row += rows[kind][lane];
      }
      this.rows[lane] = row;
      this.top[lane + 1] = this.top[lane] + GAP + Math.max(row * ROW + TICKS, 24);
    }
    this.height = this.top[lanes.count];
  }

  row(kind, lane, track) {
    return this.top[lane] + GAP / 2 + (this.firstRow[kind][lane] + track) * ROW;
  }

  ticks(lane) {
    return this.top[lane] + GAP / 2 + this.rows[lane] * ROW;
  }

  // The lane at this height; -1 where there is none.
  lane(y) {
    if (y < 0 || y >= this.height) return -1;
    let low = 0, high = this.top.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.top[middle] <= y) low = middle;
      else high = middle;
    }
    return low;
  }
}
