// The page: what is pressed, turned and dragged, and what becomes of it.

class Page {
  constructor(recording) {
    this.recording = recording;
    this.canvas = document.getElementById("chart");
    this.view = new View(recording);
    this.layout = new Layout(recording);
    this.painter = new Painter(this.canvas, recording, this.layout, this.view);
    this.search = new Search(recording);
    this.hint = new Hint(document.getElementById("hint"), recording);
    this.detail = new Detail(recording, this.search);
    this.selection = null;
    this.drag = null;
    this.fillHeader();
    this.listen();
    this.setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
    new ResizeObserver(() => {
      this.painter.resize();
      this.paint();
    }).observe(this.canvas);
    this.painter.resize();
    this.paint();
  }

  fillHeader() {
    const { recording } = this;
    const faults = recording.faulty.reduce((sum, faulty) => sum + faulty, 0);
    document.title = `${recording.title} – timeline`;
    document.getElementById("title").textContent = recording.title;
    document.getElementById("summary").textContent = [
      counted(recording.lines.count, "line"),
      counted(recording.lanes.count - 1, "session"),
      duration(recording.end - recording.start),
      counted(faults, "fault"),
    ].join(" · ");
    const legend = document.getElementById("legend");
    for (const [kind, name] of [["request", "request"], ["turn", "turn"], ["step", "step"], ["tool", "tool call"], ["note", "line"], ["fault", "error or dropped line"]]) {
      const item = element("li", "");
      item.append(element("i", "", kind), name);
      legend.append(item);
    }
    document.getElementById("empty").hidden = recording.lines.count > 0;
    const keys = document.getElementById("key-list");
    for (const [, , names, says] of KEYS) {
      if (says) keys.append(element("dt", names), element("dd", says));
    }
  }

  // Paints with the next picture of the screen, once however much has changed.
  paint() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = undefined;
      this.painter.paint({ found: this.search.found, selection: this.selection, range: this.drag?.range });
    });
  }

  setTheme(dark) {
    this.dark = dark;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    this.painter.readColours();
    this.paint();
  }

  select(what, { reveal = true } = {}) {
    this.selection = what;
    if (!what) {
      this.detail.hide();
    } else {
      this.detail.show(what);
      if (reveal) this.reveal(what);
    }
    this.paint();
  }

  extent({ line, span }) {
    const { lines, spans } = this.recording;
    return span === undefined ? [lines.at[line], lines.at[line]] : [spans.from[span], spans.to[span]];
  }

  reveal(what) {
    const { lines, spans } = this.recording;
    this.view.reveal(...this.extent(what));
    const lane = what.span === undefined ? lines.lane[what.line] : spans.lane[what.span];
    const top = this.layout.top[lane], bottom = this.layout.top[lane + 1];
    if (top < this.view.top || bottom > this.view.top + this.painter.room) {
      this.view.top = top - Math.max(0, (this.painter.room - (bottom - top)) / 2);
      this.painter.scroll(0);
    }
  }

  // From the line that is selected, or from the first one seen.
  line() {
    const { lines, spans } = this.recording;
    if (this.selection) return this.selection.line ?? spans.first[this.selection.span];
    const first = lines.at.findIndex((at) => at >= this.view.from);
    return first < 0 ? lines.count : first - 1;
  }

  selectLine(line) {
    if (line >= 0 && line < this.recording.lines.count) this.select({ line });
  }

  nextFault(by = 1) {
    const { count } = this.recording.lines;
    const here = this.selection ? this.line() : by > 0 ? -1 : count;
    for (let step = 1; step <= count; step++) {
      const line = (here + by * step + count * 2) % count;
      if (this.recording.faulty[line]) return this.selectLine(line);
    }
  }

  look(query) {
    this.search.look(query);
    document.getElementById("matches").textContent = this.search.told;
    this.paint();
  }

  stepMatch(by) {
    const line = this.search.step(by);
    if (line !== undefined) this.select({ line });
    document.getElementById("matches").textContent = this.search.told;
  }

  zoomToSelection() {
    if (!this.selection) return;
    const [from, to] = this.extent(this.selection);
    const air = Math.max((to - from) * 0.1, 500);
    this.view.show(from - air, to + air);
  }

  // Does what a key or a button stands for.
  act(name) {
    ACTS[name](this);
    this.paint();
  }

  listen() {
    const { canvas } = this;
    document.addEventListener("keydown", (event) => this.onKey(event));
    document.addEventListener("click", (event) => {
      const act = event.target.closest?.("[data-act]")?.dataset.act;
      if (act) this.act(act);
    });
    const query = document.getElementById("query");
    query.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.look(query.value), 120);
    });
    document.getElementById("search").addEventListener("submit", (event) => event.preventDefault());
    canvas.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.onDown(event));
    canvas.addEventListener("pointermove", (event) => this.onMove(event));
    canvas.addEventListener("pointerup", (event) => this.onUp(event));
    canvas.addEventListener("pointercancel", () => this.endDrag());
    canvas.addEventListener("pointerleave", () => this.hint.hide());
    canvas.addEventListener("dblclick", (event) => {
      const what = this.painter.hit(event.offsetX, event.offsetY);
      if (what) this.select(what, { reveal: false });
      this.act("zoomToSelection");
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", ({ matches }) => this.setTheme(matches));
  }

  onKey(event) {
    const typing = event.target.id === "query";
    if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("keys").open) return;
    if (typing && event.key === "Enter") {
      clearTimeout(this.typing);
      if (this.search.query !== event.target.value) this.look(event.target.value);
      this.stepMatch(event.shiftKey ? -1 : 1);
    } else if (typing && event.key === "Escape") {
      event.target.value = "";
      this.look("");
      this.canvas.focus();
    } else if (!typing && ACT_OF.has(event.key)) {
      this.act(ACT_OF.get(event.key));
    } else {
      return;
    }
    event.preventDefault();
  }

  onWheel(event) {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
    const x = event.deltaX * unit, y = event.deltaY * unit;
    if (event.offsetX < this.view.left) {
      this.painter.scroll(y);
    } else if (event.shiftKey || Math.abs(x) > Math.abs(y)) {
      this.view.pan((x || y) / this.view.width);
    } else {
      this.view.zoom(Math.exp(Math.max(-400, Math.min(400, y)) * 0.002), this.view.at(event.offsetX));
    }
    this.hint.hide();
    this.paint();
  }

  onDown(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    const { offsetX: x, offsetY: y } = event;
    const kind = y < AXIS && x >= this.view.left ? "range" : y > this.painter.height - OVERVIEW ? "overview" : "move";
    this.drag = { kind, x, y, moved: false };
    if (kind === "overview") this.centre(x);
    this.hint.hide();
  }

  onMove(event) {
    const { drag, view } = this;
    const { offsetX: x, offsetY: y } = event;
    if (!drag) {
      const what = this.painter.hit(x, y);
      if (what) this.hint.show(what, event.clientX, event.clientY);
      else this.hint.hide();
      return;
    }
    if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < 4) return;
    drag.moved = true;
    if (drag.kind === "range") {
      drag.range = [drag.x, Math.max(x, view.left)];
    } else if (drag.kind === "overview") {
      this.centre(x);
    } else {
      this.canvas.classList.add("dragging");
      view.pan((drag.x - x) / view.width);
      this.painter.scroll(drag.y - y);
      [drag.x, drag.y] = [x, y];
    }
    this.paint();
  }

  onUp(event) {
    const { drag, view } = this;
    if (!drag) return;
    if (drag.range) {
      const [from, to] = drag.range.map((x) => view.at(x)).sort((a, b) => a - b);
      view.show(from, to);
    } else if (!drag.moved && drag.kind === "move") {
      this.select(this.painter.hit(event.offsetX, event.offsetY), { reveal: false });
    }
    this.endDrag();
  }

  endDrag() {
    this.drag = null;
    this.canvas.classList.remove("dragging");
    this.paint();
  }

  centre(x) {
    const { view } = this;
    const at = view.least + ((x - view.left) / view.width) * (view.most - view.least);
    const half = (view.to - view.from) / 2;
    view.show(at - half, at + half);
  }
}

const ACTS = {
  left: (page) => page.view.pan(-0.2),
  right: (page) => page.view.pan(0.2),
  up: (page) => page.painter.scroll(-60),
  down: (page) => page.painter.scroll(60),
  pageUp: (page) => page.painter.scroll(-page.painter.room * 0.9),
  pageDown: (page) => page.painter.scroll(page.painter.room * 0.9),
  zoomIn: (page) => page.view.zoom(1 / 1.5),
  zoomOut: (page) => page.view.zoom(1.5),
  fit: (page) => page.view.all(),
  start: (page) => page.view.show(page.view.least, page.view.least + page.view.to - page.view.from),
  end: (page) => page.view.show(page.view.most - page.view.to + page.view.from, page.view.most),
  next: (page) => page.selectLine(page.line() + 1),
  previous: (page) => page.selectLine(page.line() - 1),
  nextFault: (page) => page.nextFault(),
  previousFault: (page) => page.nextFault(-1),
  nextMatch: (page) => page.stepMatch(1),
  previousMatch: (page) => page.stepMatch(-1),
  zoomToSelection: (page) => page.zoomToSelection(),
  search: () => document.getElementById("query").select(),
  theme: (page) => page.setTheme(!page.dark),
  help: () => document.getElementById("keys").showModal(),
  close: (page) => page.select(null),
};

// Keys, what they do, and how the list of keys says it.
const KEYS = [
  ["ArrowLeft", "left", "← →", "move"],
  ["ArrowRight", "right"],
  ["ArrowUp", "up", "↑ ↓", "scroll the lanes"],
  ["ArrowDown", "down"],
  ["PageUp", "pageUp"],
  ["PageDown", "pageDown"],
  ["+", "zoomIn", "+ −", "zoom"],
  ["=", "zoomIn"],
  ["-", "zoomOut"],
  ["0", "fit", "0", "show all"],
  ["Home", "start", "Home End", "go to the beginning, to the end"],
  ["End", "end"],
  ["]", "next", "[ ]", "line before, next line"],
  ["[", "previous"],
  ["e", "nextFault", "e E", "next fault, fault before"],
  ["E", "previousFault"],
  ["/", "search", "/", "search; Enter and Shift Enter go through the matches"],
  ["n", "nextMatch", "n N", "next match, match before"],
  ["N", "previousMatch"],
  ["z", "zoomToSelection", "z", "zoom to the selected line or span"],
  ["d", "theme", "d", "light or dark"],
  ["?", "help", "?", "this list"],
  ["Escape", "close", "Esc", "close, end the search"],
];
const ACT_OF = new Map(KEYS);

const page = new Page(new Recording(JSON.parse(document.getElementById("data").textContent)));
