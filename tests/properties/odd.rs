//! Odd lines: a seeded generator of every kind of line that people meet and of damage to good ones.

use super::choices::Random;

/// Makes lines from a seed and from `real` ones, which it damages and joins.
pub(crate) struct Odd {
    random: Random,
    real: Vec<Vec<u8>>,
}

/// What damage is made of.
const PIECES: [&str; 80] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\\",
    "\\u",
    "\\ud83d",
    "\\ude00",
    "\\u0000",
    "\\n",
    "\\/",
    "\\x",
    "'",
    "0",
    "1",
    "-",
    "-0",
    "01",
    "+1",
    ".5",
    "1.",
    "1e",
    "1e5",
    "1E+5",
    "1e400",
    "-1e400",
    "1.0",
    "4.9e-324",
    "9007199254740993",
    "123456789012345678901234567890",
    "0x1",
    "NaN",
    "Infinity",
    "true",
    "false",
    "null",
    "tru",
    "nul",
    "True",
    "undefined",
    " ",
    "\t",
    "\r",
    "\u{b}",
    "\u{c}",
    "\u{a0}",
    "\u{85}",
    "\u{feff}",
    "\u{2028}",
    "\u{2029}",
    "\u{3000}",
    "\u{180e}",
    "\u{1}",
    "\u{1f}",
    "\u{7f}",
    "\u{4f60}\u{597d}",
    "\u{1f600}",
    "\u{fffd}",
    "\u{ffff}",
    "//",
    "/* */",
    "\"id\":",
    "\"method\":",
    "\"params\":",
    "\"result\":",
    "\"error\":",
    "\"\\u0069d\":",
    "\"__proto__\":",
    "\"constructor\":",
    "\"id\":null,",
    "\"method\":7,",
    "{}",
    "[]",
    ",]",
    ",}",
    "[,",
    "{,",
];

/// Bytes that are not UTF-8.
const BROKEN: [&[u8]; 14] = [
    b"\xff\xfe",
    b"\xff",
    b"\xe4\xbd",
    b"\xc0\xaf",
    b"\xed\xa0\xbd\xed\xb8\x80",
    b"\xf0\x9f\x98",
    b"\xf4\x90\x80\x80",
    b"\x80",
    b"\xc2",
    b"\xe0\x9f\xbf",
    b"\xf0\x8f\xbf\xbf",
    b"\xef\xbb",
    b"\xf5\x80",
    b"\xf8\x88\x80\x80\x80",
];

/// White space around a frame: some that JavaScript trims, some that it does not.
const AROUND: [&str; 24] = [
    " ",
    "\t",
    "\r",
    "\u{b}",
    "\u{c}",
    "\u{a0}",
    "\u{1680}",
    "\u{2000}",
    "\u{2007}",
    "\u{200a}",
    "\u{200b}",
    "\u{2028}",
    "\u{2029}",
    "\u{202f}",
    "\u{205f}",
    "\u{3000}",
    "\u{feff}",
    "\u{feff}\u{feff}",
    "\u{85}",
    "\u{180e}",
    "\u{1c}",
    "\u{0}",
    " \t\r ",
    "\u{2060}",
];

const NOISE: [&str; 28] = [
    "",
    " ",
    "banner: starting",
    r#"{"level":"info","msg":"up"}"#,
    "}",
    "{",
    "null",
    "true",
    "42",
    "\"text\"",
    "[]",
    "[1,2]",
    r#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"id":2,"method":"b"}]"#,
    "Content-Length: 20",
    "content-length:5\r",
    "data: {}",
    r#"{"id":1,"method":"a"}{"id":2,"method":"b"}"#,
    r#"{"id":1,"method":"a"} {"id":2,"method":"b"}"#,
    "{}",
    "[[[[",
    "]]]]",
    r#"{"id":1,"method":"a",}"#,
    r#"{"id":1,"method":"a","params":{"list":[1,]}}"#,
    r#"{"id":1,"method":"a","params":{"list":[1}}"#,
    r#"{'id':1,'method':'a'}"#,
    r#"{id:1,method:"a"}"#,
    "// comment",
    "\u{1b}[31merror\u{1b}[0m",
];

const NAMES: [&str; 22] = [
    "id",
    "id",
    "id",
    "method",
    "method",
    "method",
    "params",
    "params",
    "result",
    "result",
    "error",
    "error",
    "jsonrpc",
    "\\u0069d",
    "m\\u0065thod",
    "par\\u0061ms",
    "err\\u006Fr",
    "ID",
    "__proto__",
    "constructor",
    "",
    "\\ud83d",
];

impl Odd {
    pub(crate) fn new(seed: u64, real: Vec<Vec<u8>>) -> Self {
        Self { random: Random::new(seed), real }
    }

    pub(crate) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// The next line, without a line end of its own; damage may have put one in.
    pub(crate) fn line(&mut self) -> Vec<u8> {
        match self.random.below(32) {
            0..=4 => self.frame().into_bytes(),
            5..=7 => self.usual().into_bytes(),
            8..=15 => {
                let mut line = self.good();
                for _ in 0..=self.random.below(4) {
                    self.damage(&mut line);
                }
                line
            }
            16..=18 => {
                let (mut line, tail) = (self.good(), self.good());
                let (keep, from) = (self.random.below(line.len() + 1), self.random.below(tail.len() + 1));
                line.truncate(keep);
                line.extend_from_slice(&tail[from..]);
                line
            }
            19..=21 => {
                let (before, behind) = (self.blanks(), self.blanks());
                [before.as_bytes(), &self.good(), behind.as_bytes()].concat()
            }
            22 | 23 => {
                let mut line = self.good();
                for _ in 0..=self.random.below(3) {
                    let at = self.random.below(line.len() + 1);
                    let broken = BROKEN[self.random.below(BROKEN.len())];
                    line.splice(at..at, broken.iter().copied());
                }
                line
            }
            24 => self.random.pick(&NOISE).into(),
            25 => (0..self.random.below(12)).map(|_| self.random.pick(&PIECES)).collect::<String>().into_bytes(),
            26 => {
                let len = self.random.below(24);
                self.random.bytes(len)
            }
            27 => {
                let depth = if self.random.one_in(50) { 1000 } else { self.random.below(130) };
                let (open, close) = if self.random.one_in(2) { ("[", "]") } else { ("{\"a\":", "}") };
                let missing = usize::from(self.random.one_in(8));
                let deep = open.repeat(depth) + "1" + &close.repeat(depth - missing.min(depth));
                format!(r#"{{"id":{},"method":"deep","params":{{"p":{deep}}}}}"#, depth).into_bytes()
            }
            28 => self.response().into_bytes(),
            // More text right behind the frame.
            29 => {
                let behind = if self.random.one_in(2) { self.good() } else { Vec::new() };
                [&self.good(), self.random.pick(&PIECES).as_bytes(), &behind].concat()
            }
            30 if self.random.one_in(200) => {
                let text = self.string().repeat(self.random.below(2000) + 1).replace('"', "");
                format!(r#"{{"method":"long","params":{{"text":"{text}"}}}}"#).into_bytes()
            }
            _ => self.value(0).into_bytes(),
        }
    }

    /// A line that somebody has sent, or could.
    fn good(&mut self) -> Vec<u8> {
        if self.real.is_empty() || self.random.one_in(3) {
            return self.frame().into_bytes();
        }
        // Long ones are rare, so that the bytes go into many lines.
        for _ in 0..4 {
            let index = self.random.below(self.real.len());
            if self.real[index].len() < 600 {
                return self.real[index].clone();
            }
        }
        let index = self.random.below(self.real.len());
        self.real[index].clone()
    }

    fn damage(&mut self, line: &mut Vec<u8>) {
        let at = self.random.below(line.len() + 1);
        let len = self.random.below(6).min(line.len() - at);
        match self.random.below(8) {
            0 => drop(line.drain(at..at + len)),
            1 | 2 => drop(line.splice(at..at, self.random.pick(&PIECES).bytes())),
            3 => drop(line.splice(at..at + len, self.random.pick(&PIECES).bytes())),
            4 => {
                let from = line[at..at + len].to_vec();
                line.splice(at..at, from);
            }
            5 if at < line.len() => line[at] = self.random.next() as u8,
            6 if at < line.len() => line[at] ^= 1 << self.random.below(8),
            _ => line.truncate(at),
        }
    }

    fn blanks(&mut self) -> String {
        (0..self.random.below(3)).map(|_| self.random.pick(&AROUND)).collect()
    }

    /// White space between tokens, mostly none.
    fn gap(&mut self) -> &'static str {
        if self.random.one_in(12) { self.random.pick(&[" ", "\t", "\r", "  \r\t", "\u{a0}", "\u{b}"]) } else { "" }
    }

    /// An object of the members that make a frame, in any order and number.
    fn frame(&mut self) -> String {
        let mut members = Vec::new();
        for _ in 0..1 + self.random.below(6) {
            let name = self.random.pick(&NAMES);
            let value = match name {
                "jsonrpc" => self.random.pick(&["\"2.0\"", "\"2.0\"", "2.0", "\"1.0\"", "null"]).into(),
                "id" | "\\u0069d" => self.id(),
                "method" | "m\\u0065thod" if !self.random.one_in(4) => self.string(),
                "error" | "err\\u006Fr" => self.error(),
                _ => self.value(0),
            };
            let gaps = [self.gap(), self.gap(), self.gap(), self.gap()];
            members.push(format!("{}\"{name}\"{}:{}{value}{}", gaps[0], gaps[1], gaps[2], gaps[3]));
        }
        format!("{{{}}}", members.join(","))
    }

    /// A frame as both ends write it, with one piece left out, doubled, or another one, in some.
    fn usual(&mut self) -> String {
        let head = |rest: &[&str]| ["{\"jsonrpc\":\"2.0\","].iter().chain(rest).map(|piece| (*piece).into()).collect();
        let mut pieces: Vec<String> = match self.random.below(4) {
            0 => head(&["\"id\":", "S", ",\"method\":", "S", ",\"params\":", "V", "}"]),
            1 => head(&["\"id\":", "S", self.random.pick(&[",\"result\":", ",\"error\":"]), "V", "}"]),
            _ => head(&[
                "\"method\":",
                "\"session.event\"",
                ",\"params\":",
                "{\"sessionId\":",
                "S",
                ",\"event\":{\"type\":",
                "S",
                ",\"seq\":",
                "N",
                ",\"time\":",
                self.random.pick(&["N", "1796028532123", "179602853212", "1796028532123456", "012"]),
                ",\"data\":",
                "V",
                self.random.pick(&["", ",\"surfaceOp\":\"append\"", ",\"sourceEventSeqs\":[1]"]),
                "}}",
                "}",
            ]),
        };
        if self.random.one_in(2) {
            let at = self.random.below(pieces.len());
            match self.random.below(4) {
                0 => drop(pieces.remove(at)),
                1 => pieces.insert(at, pieces[at].clone()),
                2 => pieces[at] = self.random.pick(&PIECES).into(),
                _ => pieces[at] = self.random.pick(&["S", "N", "V", "}", " "]).into(),
            }
        }
        let mut text = String::new();
        for piece in pieces {
            text += &match piece.as_str() {
                "S" if self.random.one_in(2) => format!("\"{}\"", "session-0".repeat(self.random.below(5))),
                "S" => self.string(),
                "N" => (self.random.next() >> (24 + self.random.below(40))).to_string(),
                "V" if self.random.one_in(6) => self.value(1),
                "V" => format!("{{\"a\":{},\"b\":{}}}", self.value(1), self.value(2)),
                _ => piece,
            };
        }
        text
    }

    fn response(&mut self) -> String {
        let (id, error) = (self.id(), self.error());
        let result = self.value(1);
        match self.random.below(5) {
            0 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
            1 => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#),
            2 => format!(r#"{{"id":{id},"error":{error},"result":{result}}}"#),
            3 => format!(r#"{{"id":{id},"error":{error},"error":{}}}"#, self.error()),
            _ => format!(r#"{{"id":{id}}}"#),
        }
    }

    fn id(&mut self) -> String {
        match self.random.below(8) {
            0..=2 => self.string(),
            3..=5 => self.number(),
            _ => self.value(1),
        }
    }

    fn error(&mut self) -> String {
        if self.random.one_in(3) {
            return self.value(1);
        }
        let mut members = Vec::new();
        for _ in 0..self.random.below(5) {
            let name = self.random.pick(&["code", "message", "data", "c\\u006fde", "other"]);
            let value = match (name, self.random.below(3)) {
                ("code", 0) => "-32603".into(),
                ("message", 0 | 1) => self.string(),
                _ => self.value(1),
            };
            members.push(format!("\"{name}\":{value}"));
        }
        format!("{{{}}}", members.join(","))
    }

    fn number(&mut self) -> String {
        if self.random.one_in(3) {
            let numbers =
                ["0", "-0", "1.0", "1e3", "1E+2", "0.1", "1e-7", "1e400", "-1e400", "4.9e-324", "9007199254740993"];
            return self.random.pick(&numbers).into();
        }
        let mut text = self.random.pick(&["", "", "-"]).to_owned() + &self.random.below(1 << 20).to_string();
        if self.random.one_in(3) {
            text += &format!(".{}", self.random.below(1000));
        }
        if self.random.one_in(4) {
            text += self.random.pick(&["e", "E", "e+", "E-"]);
            text += &self.random.below(400).to_string();
        }
        text
    }

    fn string(&mut self) -> String {
        let mut text = String::from("\"");
        let len = if self.random.one_in(20) { 70 } else { 7 };
        for _ in 0..self.random.below(len) {
            text += match self.random.below(8) {
                0 => {
                    self.random.pick(&["\\n", "\\\"", "\\\\", "\\/", "\\b", "\\f", "\\r", "\\t", "\\u0041", "\\u00e9"])
                }
                1 => {
                    self.random.pick(&["\\ud83d\\ude00", "\\ud83d", "\\ude00", "\\uDBFF\\uDFFF", "\\u0000", "\\u2028"])
                }
                2 => self.random.pick(&["\u{4f60}", "\u{1f600}", "\u{e9}", "\u{2028}", "\u{85}", "\u{feff}", "\u{7f}"]),
                _ => self.random.pick(&["a", "session/", "prompt", "x", " ", "{", "]", ":", ",", "'"]),
            };
        }
        text + "\""
    }

    fn value(&mut self, depth: usize) -> String {
        match self.random.below(if depth < 3 { 9 } else { 6 }) {
            0 => self.random.pick(&["null", "true", "false"]).into(),
            1 => self.number(),
            2..=5 => self.string(),
            6 => {
                let gap = self.gap();
                let elements: Vec<_> = (0..self.random.below(4)).map(|_| self.value(depth + 1)).collect();
                format!("[{gap}{}{gap}]", elements.join(","))
            }
            _ => {
                let mut members = Vec::new();
                for _ in 0..self.random.below(4) {
                    let name =
                        if self.random.one_in(2) { format!("\"{}\"", self.random.pick(&NAMES)) } else { self.string() };
                    let gap = self.gap();
                    members.push(format!("{name}{gap}:{}", self.value(depth + 1)));
                }
                format!("{{{}}}", members.join(","))
            }
        }
    }
}
