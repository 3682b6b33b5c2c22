// Which lines hold a text, in their name or in themselves.

class Search {
  constructor(recording) {
    this.recording = recording;
    this.query = "";
    this.found = null;
  }

  look(query) {
    this.query = query;
    this.place = -1;
    if (query === "") {
      this.found = null;
      return;
    }
    const { lines, spans, names, lanes } = this.recording;
    const pattern = this.pattern("i");
    const ofName = names.map((name) => pattern.test(name));
    const ofLane = lanes.name.map((name) => pattern.test(name));
    const matches = [];
    const hits = new Uint8Array(lines.count);
    for (let line = 0; line < lines.count; line++) {
      if (ofName[lines.name[line]] || ofLane[lines.lane[line]] || pattern.test(lines.text[line])) {
        hits[line] = 1;
        matches.push(line);
      }
    }
    const spanHits = new Uint8Array(spans.count);
    for (let span = 0; span < spans.count; span++) {
      const last = spans.last[span];
      spanHits[span] = ofName[spans.name[span]] || hits[spans.first[span]] || (last >= 0 && hits[last]) ? 1 : 0;
    }
    this.found = { lines: hits, spans: spanHits, matches };
  }

  pattern(flags) {
    return new RegExp(this.query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), flags);
  }

  // The next match in that direction; undefined where there is none.
  step(by) {
    const matches = this.found?.matches ?? [];
    if (matches.length === 0) return undefined;
    this.place = this.place < 0 && by < 0 ? matches.length - 1 : (this.place + by + matches.length) % matches.length;
    return matches[this.place];
  }

  get told() {
    if (!this.found) return "";
    const { length } = this.found.matches;
    if (length === 0) return "no match";
    return this.place < 0 ? counted(length, "line") : `${(this.place + 1).toLocaleString("en")} of ${length.toLocaleString("en")}`;
  }

  // A text with the matches in it marked.
  marked(text) {
    const node = document.createElement("pre");
    if (!this.found) {
      node.textContent = text;
      return node;
    }
    let from = 0;
    for (const match of text.matchAll(this.pattern("gi"))) {
      const mark = document.createElement("mark");
      mark.textContent = match[0];
      node.append(text.slice(from, match.index), mark);
      from = match.index + match[0].length;
    }
    node.append(text.slice(from));
    return node;
  }
}
