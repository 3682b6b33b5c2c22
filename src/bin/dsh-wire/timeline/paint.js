// The picture on the canvas.

const SPAN_COLOURS = ["request", "turn", "step", "tool"];
const LINE_COLOURS = ["request", "response", "fault", "note", "fault", "tool", "fault", "fault"];

class Painter {
  constructor(canvas, recording, layout, view) {
    Object.assign(this, { canvas, recording, layout, view });
    this.context = canvas.getContext("2d", { alpha: false });
    this.readColours();
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const names = ["paper", "raised", "line", "ink", "faint", "lane", "found", "focus", "on-span"];
    this.colour = Object.fromEntries(
      [...names, ...SPAN_COLOURS, "note", "response", "fault"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
    );
    this.overview = null;
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.view.left = Math.round(Math.min(230, Math.max(96, width * 0.2)));
    this.view.width = Math.max(1, width - this.view.left - 8);
    this.context.font = "11px ui-monospace, monospace";
    this.letter = this.context.measureText("M").width;
    this.overview = null;
    this.scroll(0);
  }

  // Height of the lanes that are seen.
  get room() {
    return Math.max(0, this.height - AXIS - OVERVIEW);
  }

  scroll(by) {
    this.view.top = Math.max(0, Math.min(this.view.top + by, this.layout.height - this.room));
  }

  // Where a height in the layout is on the canvas, and back.
  y(height) {
    return AXIS + height - this.view.top;
  }

  heightAt(y) {
    return y - AXIS + this.view.top;
  }

  paint({ found, selection, range }) {
    const { context, colour, width, height, view } = this;
    context.fillStyle = colour.paper;
    context.fillRect(0, 0, width, height);
    context.textBaseline = "middle";
    this.paintLanes();
    context.save();
    context.beginPath();
    context.rect(view.left, AXIS, width - view.left, this.room);
    context.clip();
    this.paintGrid();
    this.paintSpans(found);
    this.paintTicks(found);
    this.paintSelection(selection);
    context.restore();
    this.paintNames();
    this.paintAdvice();
    this.paintAxis(range);
    this.paintOverview(found);
  }

  visibleLanes() {
    const { layout, view } = this;
    const first = Math.max(0, layout.lane(view.top));
    const last = layout.lane(view.top + this.room);
    return [first, last < 0 ? this.recording.lanes.count - 1 : last];
  }

  paintLanes() {
    const { context, colour, layout } = this;
    const [first, last] = this.visibleLanes();
    for (let lane = first; lane <= last; lane++) {
      const top = this.y(layout.top[lane]), bottom = this.y(layout.top[lane + 1]);
      if (lane % 2 === 0) {
        context.fillStyle = colour.lane;
        context.fillRect(0, top, this.width, bottom - top);
      }
      context.fillStyle = colour.line;
      context.fillRect(0, Math.round(bottom) - 1, this.width, 1);
    }
  }

  paintNames() {
    const { context, colour, layout, recording, view } = this;
    const [first, last] = this.visibleLanes();
    context.save();
    context.beginPath();
    context.rect(0, AXIS, view.left - 6, this.room);
    context.clip();
    for (let lane = first; lane <= last; lane++) {
      const depth = recording.lanes.depth[lane];
      const indent = 12 + Math.min(depth, 8) * 14;
      const top = this.y(layout.top[lane]) + GAP / 2 + ROW / 2;
      context.font = "12px system-ui, sans-serif";
      context.fillStyle = colour.ink;
      // A part of a long name tells more at both ends.
      const name = fitted(context, recording.laneName(lane), view.left - 14 - indent);
      context.fillText(name, indent, top);
      if (depth > 0) {
        context.strokeStyle = colour.faint;
        context.beginPath();
        context.moveTo(indent - 9, this.y(layout.top[lane]) + 2);
        context.lineTo(indent - 9, top);
        context.lineTo(indent - 3, top);
        context.stroke();
      }
    }
    context.restore();
    context.fillStyle = colour.line;
    context.fillRect(view.left - 1, AXIS, 1, this.room);
  }

  // What to do, where there is nothing else.
  paintAdvice() {
    const { context, colour, layout, view } = this;
    const top = this.y(layout.height);
    if (this.height - OVERVIEW - top < 90 || view.width < 420) return;
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "center";
    const text = "Point at a line or span to see it, click to keep it. Wheel or + and − zoom, drag moves, / searches, ? lists all keys.";
    const middle = view.left + view.width / 2, wide = Math.min(context.measureText(text).width, view.width - 20);
    context.fillStyle = colour.paper;
    context.fillRect(middle - wide / 2 - 8, top + 28, wide + 16, 24);
    context.fillStyle = colour.faint;
    context.fillText(text, middle, top + 40, wide);
    context.textAlign = "left";
  }

  // Steps of 1, 2 or 5 of some power of ten, about so many pixels apart.
  steps() {
    const { view } = this;
    const wanted = ((view.to - view.from) / view.width) * 110;
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = [1, 2, 5, 10].map((n) => n * power).find((size) => size >= wanted) ?? power * 10;
    return { step, first: Math.ceil(view.from / step) * step };
  }

  paintGrid() {
    const { context, colour, view } = this;
    const { step, first } = this.steps();
    context.fillStyle = colour.line;
    for (let at = first; at < view.to; at += step) context.fillRect(Math.round(view.x(at)), AXIS, 1, this.room);
  }

  paintAxis(range) {
    const { context, colour, view, width } = this;
    context.fillStyle = colour.raised;
    context.fillRect(0, 0, width, AXIS);
    context.fillStyle = colour.line;
    context.fillRect(0, AXIS - 1, width, 1);
    if (range) {
      context.fillStyle = colour.focus;
      context.globalAlpha = 0.25;
      context.fillRect(Math.min(...range), 0, Math.abs(range[1] - range[0]), AXIS + this.room);
      context.globalAlpha = 1;
    }
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colour.faint;
    const { step, first } = this.steps();
    for (let at = first; at < view.to; at += step) {
      const x = view.x(at), text = time(Math.abs(at) < step / 2 ? 0 : at, step);
      if (x + context.measureText(text).width + 6 > width) break;
      context.fillText(text, x + 4, AXIS / 2);
      context.fillRect(Math.round(x), AXIS - 7, 1, 6);
    }
    context.fillStyle = colour.raised;
    context.fillRect(0, 0, view.left - 1, AXIS - 1);
    context.fillStyle = colour.faint;
    context.fillText(`${duration(view.to - view.from)} seen`, 12, AXIS / 2);
  }

  paintSpans(found) {
    const { context, colour, recording, layout, view } = this;
    const { spans } = recording;
    const low = view.top, high = view.top + this.room;
    const narrow = new Map();
    context.font = "11px ui-monospace, monospace";
    for (let span = 0; span < spans.count; span++) {
      const from = spans.from[span], to = spans.to[span];
      if (to < view.from || from > view.to) continue;
      const y = layout.row(spans.kind[span], spans.lane[span], spans.track[span]);
      if (y + ROW < low || y > high) continue;
      const x = Math.max(view.x(from), view.left - 3), right = Math.min(view.x(to), this.width + 3);
      const failed = spans.end[span] === FAILED;
      const shown = !found || found.spans[span];
      if (right - x < 2 && !failed) {
        // One of many in the same pixels is enough.
        const key = y * 2 + (shown ? 1 : 0);
        if (x < (narrow.get(key) ?? -Infinity) + 2) continue;
        narrow.set(key, x);
      }
      this.paintSpan(span, x, this.y(y), Math.max(right - x, 2), shown);
    }
    context.globalAlpha = 1;
  }

  paintSpan(span, x, y, wide, shown) {
    const { context, colour, recording } = this;
    const { spans } = recording;
    const end = spans.end[span];
    context.globalAlpha = shown ? 1 : 0.18;
    context.fillStyle = end === FAILED ? colour.fault : colour[SPAN_COLOURS[spans.kind[span]]];
    if (end === OPEN) {
      // A fading end: it goes on somewhere else.
      const height = ROW - 3;
      context.fillRect(x, y, Math.max(wide - 10, 2), height);
      for (let piece = 0; piece < 3 && wide > 10; piece++) context.fillRect(x + wide - 9 + piece * 3, y, 1.5, height);
    } else {
      context.fillRect(x, y, wide, ROW - 3);
    }
    // Beside the edge, where the span begins outside.
    const left = Math.max(x, this.view.left) + 4;
    const letters = Math.floor((x + wide - left - 4) / this.letter);
    if (letters < 3) return;
    const name = recording.spanName(span);
    const length = ` ${duration(spans.to[span] - spans.from[span])}`;
    const whole = name.length + length.length <= letters && end !== OPEN ? name + length : name;
    context.fillStyle = colour["on-span"];
    context.fillText(whole.length <= letters ? whole : `${whole.slice(0, letters - 1)}…`, left, y + (ROW - 3) / 2 + 0.5);
  }

  paintTicks(found) {
    const { context, colour, recording, layout, view } = this;
    const { lines } = recording;
    const low = view.top - ROW, high = view.top + this.room;
    const perPixel = view.width / (view.to - view.from);
    const last = new Int32Array(recording.lanes.count * 2).fill(-9);
    const faults = [];
    let style = "";
    for (let line = 0; line < lines.count; line++) {
      const at = lines.at[line];
      if (at < view.from || at > view.to) continue;
      if (recording.faulty[line]) {
        faults.push(line);
        continue;
      }
      const lane = lines.lane[line];
      const y = layout.ticks(lane);
      if (y < low || y > high) continue;
      const x = (view.left + (at - view.from) * perPixel) | 0;
      const shown = !found || found.lines[line] === 1;
      const slot = lane * 2 + (shown ? 1 : 0);
      if (last[slot] === x) continue;
      last[slot] = x;
      const wanted = shown ? (found ? colour.found : colour[LINE_COLOURS[lines.kind[line]]]) : colour.line;
      if (wanted !== style) context.fillStyle = style = wanted;
      context.fillRect(x, this.y(y) + (shown && found ? 0 : 3), found && shown ? 2 : 1, shown && found ? 14 : 9);
    }
    this.paintFaults(faults, found);
  }

  // Diamonds above the ticks, never left out for want of room but where one lies on another.
  paintFaults(faults, found) {
    const { context, colour, recording, layout, view } = this;
    const last = new Map();
    for (const line of faults) {
      const lane = recording.lines.lane[line];
      const x = Math.round(view.x(recording.lines.at[line])), y = this.y(layout.ticks(lane)) + 7;
      if (last.get(lane) === x || y < AXIS - ROW || y > AXIS + this.room + ROW) continue;
      last.set(lane, x);
      context.globalAlpha = !found || found.lines[line] ? 1 : 0.25;
      context.fillStyle = colour.fault;
      context.beginPath();
      context.moveTo(x, y - 6);
      context.lineTo(x + 5, y);
      context.lineTo(x, y + 6);
      context.lineTo(x - 5, y);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  paintSelection(selection) {
    if (!selection) return;
    const { context, colour, recording, layout, view } = this;
    context.strokeStyle = colour.focus;
    context.lineWidth = 2;
    if (selection.span !== undefined) {
      const { spans } = recording, { span } = selection;
      const y = this.y(layout.row(spans.kind[span], spans.lane[span], spans.track[span]));
      const x = view.x(spans.from[span]);
      context.strokeRect(x - 1, y - 1, Math.max(view.x(spans.to[span]) - x, 2) + 2, ROW - 1);
    } else {
      const { lines } = recording, { line } = selection;
      const x = Math.round(view.x(lines.at[line])), y = this.y(layout.ticks(lines.lane[line]));
      context.strokeRect(x - 4, y - 1, 9, 16);
    }
    context.lineWidth = 1;
  }

  // All of the recording at the bottom, with the part that is seen.
  paintOverview(found) {
    const { context, colour, recording, view, width, height } = this;
    const top = height - OVERVIEW;
    if (this.overview?.found !== found) this.overview = { found, picture: this.drawOverview(found) };
    context.drawImage(this.overview.picture, 0, top, width, OVERVIEW);
    const whole = view.most - view.least;
    const from = view.left + ((view.from - view.least) / whole) * view.width;
    const to = view.left + ((view.to - view.least) / whole) * view.width;
    context.strokeStyle = colour.focus;
    context.strokeRect(Math.round(from) + 0.5, top + 2.5, Math.max(Math.round(to - from), 3) - 1, OVERVIEW - 5);
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colour.faint;
    context.fillText(`${duration(recording.end - recording.start)} in all`, 12, top + OVERVIEW / 2);
  }

  // Kept until the size, the colours or the search change: it does not when the view does.
  drawOverview(found) {
    const { colour, view, width } = this;
    const picture = document.createElement("canvas");
    const ratio = devicePixelRatio || 1;
    picture.width = Math.max(1, Math.round(width * ratio));
    picture.height = Math.round(OVERVIEW * ratio);
    const context = picture.getContext("2d", { alpha: false });
    context.scale(ratio, ratio);
    context.fillStyle = colour.raised;
    context.fillRect(0, 0, width, OVERVIEW);
    context.fillStyle = colour.line;
    context.fillRect(0, 0, width, 1);
    const columns = Math.max(1, Math.floor(view.width));
    const { counts, faults, most } = this.measureDensity(columns, found);
    for (let column = 0; column < columns; column++) {
      if (counts[column] === 0) continue;
      const tall = 4 + 20 * (Math.log1p(counts[column]) / Math.log1p(most));
      context.fillStyle = faults[column] ? colour.fault : found ? colour.found : colour.note;
      context.fillRect(view.left + column, OVERVIEW - 4 - tall, 1, tall);
    }
    return picture;
  }

  measureDensity(columns, found) {
    const { recording, view } = this;
    const { lines } = recording;
    const counts = new Uint32Array(columns), faults = new Uint8Array(columns);
    const scale = columns / (view.most - view.least);
    for (let line = 0; line < lines.count; line++) {
      if (found && !found.lines[line]) continue;
      const column = Math.min(columns - 1, ((lines.at[line] - view.least) * scale) | 0);
      counts[column]++;
      faults[column] |= recording.faulty[line];
    }
    return { counts, faults, most: counts.reduce((most, count) => Math.max(most, count), 1) };
  }

  // What lies under a point: a span, a line, or nothing.
  hit(x, y) {
    const { recording, layout, view } = this;
    if (x < view.left || y < AXIS || y > AXIS + this.room) return null;
    const atHeight = this.heightAt(y), lane = layout.lane(atHeight);
    if (lane < 0) return null;
    const { spans, lines } = recording;
    if (atHeight >= layout.ticks(lane)) {
      let best = null, nearest = 6;
      for (let line = 0; line < lines.count; line++) {
        if (lines.lane[line] !== lane) continue;
        const away = Math.abs(view.x(lines.at[line]) - x) - (recording.faulty[line] ? 2 : 0);
        if (away < nearest) [best, nearest] = [{ line }, away];
      }
      return best;
    }
    let best = null, nearest = 4;
    for (let span = 0; span < spans.count; span++) {
      if (spans.lane[span] !== lane) continue;
      const top = layout.row(spans.kind[span], lane, spans.track[span]);
      if (atHeight < top || atHeight >= top + ROW) continue;
      const from = view.x(spans.from[span]), to = Math.max(view.x(spans.to[span]), from + 2);
      const away = Math.max(from - x, x - to, 0);
      if (away < nearest) [best, nearest] = [{ span }, away];
    }
    return best;
  }
}

// Text cut in the middle, so that it takes no more than this room.
function fitted(context, text, room) {
  if (text.length > 200) text = `${text.slice(0, 100)}…${text.slice(-100)}`;
  if (context.measureText(text).width <= room) return text;
  let low = 0, high = text.length;
  const cut = (kept) => `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(text.length - Math.floor(kept / 2))}`;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (context.measureText(cut(middle)).width <= room) low = middle;
    else high = middle;
  }
  return cut(low);
}
