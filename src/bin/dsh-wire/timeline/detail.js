// Words about a line or a span: in short beside the pointer, in full below the picture. Text of the recording only ever
// becomes text of the page.

function describe(recording, { line, span }) {
  const { lines, spans } = recording;
  if (span !== undefined) {
    const lane = spans.lane[span], end = spans.end[span];
    const length = duration(spans.to[span] - spans.from[span]);
    return {
      title: `${SPAN_KINDS[spans.kind[span]]} · ${recording.spanName(span)}`,
      facts: [recording.laneName(lane), moment(spans.from[span]), `took ${length}${end === OPEN ? " and more" : ""}`, ENDS[end]].filter(Boolean).join(" · "),
      lines: spans.last[span] < 0 ? [spans.first[span]] : [spans.first[span], spans.last[span]],
    };
  }
  const facts = [recording.laneName(lines.lane[line]), moment(lines.at[line]), WAYS[lines.way[line]]];
  facts.push(counted(lines.bytes[line], "byte"), `line ${lines.number[line]}`);
  return { title: `${LINE_KINDS[lines.kind[line]]} · ${recording.lineName(line)}`, facts: facts.join(" · "), lines: [line] };
}

function element(name, text, className) {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

class Hint {
  constructor(node, recording) {
    Object.assign(this, { node, recording });
  }

  show(what, x, y) {
    const { title, facts, lines } = describe(this.recording, what);
    const text = this.recording.pretty(lines[0]).slice(0, 1500).split("\n").slice(0, 14).join("\n");
    this.node.replaceChildren(element("b", title), element("span", facts), element("pre", text));
    this.node.hidden = false;
    const { width, height } = this.node.getBoundingClientRect();
    this.node.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
    this.node.style.top = `${y + 18 + height < innerHeight ? y + 18 : Math.max(4, y - height - 12)}px`;
  }

  hide() {
    this.node.hidden = true;
  }
}

class Detail {
  constructor(recording, search) {
    Object.assign(this, { recording, search });
    this.node = document.getElementById("detail");
    this.title = document.getElementById("detail-title");
    this.body = document.getElementById("detail-body");
  }

  show(what) {
    const { title, facts, lines } = describe(this.recording, what);
    this.title.textContent = title;
    this.title.title = title;
    this.body.replaceChildren(element("h3", facts));
    for (const line of lines) {
      if (lines.length > 1) this.body.append(element("h3", describe(this.recording, { line }).facts));
      this.body.append(this.search.marked(this.recording.pretty(line)));
    }
    this.node.hidden = false;
    this.body.scrollTop = 0;
    this.body.querySelector("mark")?.scrollIntoView({ block: "nearest" });
    document.getElementById("said").textContent = `${title}, ${facts}`;
  }

  hide() {
    this.node.hidden = true;
  }
}
