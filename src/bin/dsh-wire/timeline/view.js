// The part of the recording that is seen: a range of time and a scroll position.

const NARROWEST = 20;

class View {
  constructor(recording) {
    const length = Math.max(recording.end - recording.start, 1000);
    // A little air on both sides.
    this.least = recording.start - length * 0.02;
    this.most = recording.end + length * 0.02;
    this.from = this.least;
    this.to = this.most;
    this.top = 0;
    this.left = 0;
    this.width = 1;
  }

  x(at) {
    return this.left + ((at - this.from) / (this.to - this.from)) * this.width;
  }

  at(x) {
    return this.from + ((x - this.left) / this.width) * (this.to - this.from);
  }

  show(from, to) {
    const length = Math.min(Math.max(to - from, NARROWEST), this.most - this.least);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - length / 2, this.least), this.most - length);
    this.to = this.from + length;
  }

  all() {
    [this.from, this.to] = [this.least, this.most];
  }

  // By a factor, with one moment where it is.
  zoom(factor, around = (this.from + this.to) / 2) {
    const length = Math.min(Math.max((this.to - this.from) * factor, NARROWEST), this.most - this.least);
    const part = (around - this.from) / (this.to - this.from);
    const from = around - length * part;
    this.show(from, from + length);
  }

  // By a part of what is seen.
  pan(part) {
    const by = (this.to - this.from) * part;
    this.show(this.from + by, this.to + by);
  }

  // Moves so that this is seen, without more change than needed.
  reveal(from, to) {
    if (from < this.from || to > this.to) {
      const length = Math.max(this.to - this.from, (to - from) * 1.2);
      this.show((from + to) / 2 - length / 2, (from + to) / 2 + length / 2);
    }
  }
}
