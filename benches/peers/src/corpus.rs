//! The corpora: streams of lines, generated from a seed. Shapes and member order are those of the official runtime.

use std::fmt::Write as _;

/// A named stream of lines, each with its `\n`.
pub struct Corpus {
    pub name: &'static str,
    pub bytes: Vec<u8>,
}

impl Corpus {
    pub fn lines(&self) -> Vec<&[u8]> {
        self.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect()
    }
}

/// The names of all corpora.
pub const NAMES: [&str; 7] = ["small", "chinese", "large", "mix", "requests", "escape", "deep"];

/// Generates the corpus of that name, of at least `size` bytes.
pub fn generate(name: &'static str, size: usize) -> Corpus {
    let mut random = Random(0x5eed ^ name.len() as u64);
    let mut out = String::with_capacity(size + (1 << 20));
    while out.len() < size {
        match name {
            "small" => notification(&mut out, &mut random, ascii),
            "chinese" => notification(&mut out, &mut random, chinese),
            "large" => large(&mut out, &mut random, 100 << 10, 1 << 20),
            "mix" => {
                for _ in 0..200 {
                    match random.below(10) {
                        0 => exchange(&mut out, &mut random),
                        1 | 2 => notification(&mut out, &mut random, chinese),
                        _ => notification(&mut out, &mut random, ascii),
                    }
                }
                large(&mut out, &mut random, 20 << 10, 120 << 10);
            }
            "requests" => exchange(&mut out, &mut random),
            "escape" => event(&mut out, &mut random, "tool/result", |out, random| {
                out.push_str(r#"{"output":""#);
                let len = 2000 + random.below(6000);
                escapes(out, random, len);
                out.push_str(r#""}"#);
            }),
            "deep" => event(&mut out, &mut random, "tool/result", deep),
            _ => unreachable!("no corpus of this name"),
        }
    }
    Corpus { name, bytes: out.into_bytes() }
}

/// One session event.
fn event(out: &mut String, random: &mut Random, kind: &str, data: impl FnOnce(&mut String, &mut Random)) {
    let (session, seq) = (random.below(3), random.below(5000));
    let time = 1_796_028_532_000 + random.below(1_000_000) as u64;
    let _ = write!(
        out,
        r#"{{"jsonrpc":"2.0","method":"session.event","params":{{"sessionId":"session-{session}","event":{{"type":"{kind}","seq":{seq},"time":{time},"data":"#
    );
    data(out, random);
    out.push_str(match kind {
        "assistant/message" | "tool/result" => r#","surfaceOp":"append"}}}"#,
        _ => "}}}",
    });
    out.push('\n');
}

/// One notification of 150 to 400 bytes.
fn notification(out: &mut String, random: &mut Random, text: fn(&mut String, &mut Random, usize)) {
    let start = out.len();
    let turn = random.below(9) + 1;
    let len = random.below(140);
    match random.below(8) {
        0 => event(out, random, "step/start", |out, _| {
            let _ = write!(out, r#"{{"turn":{turn},"step":{len}}}"#);
        }),
        1 => event(out, random, "turn/end", |out, _| {
            let _ = write!(
                out,
                r#"{{"turn":{turn},"outcome":{{"kind":"completed"}},"usage":{{"input":{len},"output":{turn},"cacheRead":0}}}}"#
            );
        }),
        2 => event(out, random, "tool/start", |out, random| {
            let id = random.uuid();
            let _ = write!(out, r#"{{"turn":{turn},"callId":"{id}","name":"bash","input":{{"command":""#);
            text(out, random, len / 2);
            out.push_str(r#"","timeout":null,"background":false}}"#);
        }),
        3 => event(out, random, "agent/inbox/spliced", |out, random| {
            let id = random.uuid();
            out.push_str(r#"{"target":"next-turn","start":0,"inserted":[{"content":[{"type":"text","text":""#);
            text(out, random, len / 3);
            let _ = write!(out, r#""}}],"source":{{"kind":"user"}},"role":"user","id":"{id}"}}]}}"#);
        }),
        4 => event(out, random, "assistant/message", |out, random| {
            out.push_str(r#"{"content":[{"type":"text","text":""#);
            text(out, random, len);
            let _ = write!(out, r#""}}],"stream":{{"index":{turn},"done":true}}}}"#);
        }),
        _ => event(out, random, "assistant/chunk", |out, random| {
            let _ = write!(out, r#"{{"turn":{turn},"kind":"text","delta":""#);
            text(out, random, len);
            out.push_str(r#""}"#);
        }),
    }
    if !(150..=400).contains(&(out.len() - start)) {
        out.truncate(start);
    }
}

/// One request or one response.
fn exchange(out: &mut String, random: &mut Random) {
    let id = random.uuid().replace('-', "");
    let _ = match random.below(5) {
        0 => writeln!(
            out,
            r#"{{"jsonrpc":"2.0","id":"req_{id}","method":"session/wait","params":{{"sessionId":"session-1"}}}}"#
        ),
        1 => {
            let _ = write!(
                out,
                r#"{{"jsonrpc":"2.0","id":"req_{id}","method":"session/prompt","params":{{"sessionId":"session-1","contentBlocks":[{{"type":"text","text":""#
            );
            let len = random.below(120);
            ascii(out, random, len);
            writeln!(out, r#""}}]}}}}"#)
        }
        2 => writeln!(out, r#"{{"jsonrpc":"2.0","id":"req_{id}","result":{{"messageId":"{}"}}}}"#, random.uuid()),
        3 => writeln!(out, r#"{{"jsonrpc":"2.0","id":"req_{id}","result":{{}}}}"#),
        _ => writeln!(
            out,
            r#"{{"jsonrpc":"2.0","id":"req_{id}","error":{{"code":-32603,"message":"unknown SDK session: ghost"}}}}"#
        ),
    };
}

/// A tool result that holds `min` to `max` bytes of escaped source code.
fn large(out: &mut String, random: &mut Random, min: usize, max: usize) {
    let len = min + random.below(max - min);
    event(out, random, "tool/result", |out, random| {
        let id = random.uuid();
        let _ = write!(out, r#"{{"turn":1,"callId":"{id}","isError":false,"output":[{{"type":"text","text":""#);
        code(out, random, len);
        out.push_str(r#""}]}"#);
    });
}

const WORDS: [&str; 16] = [
    "the", "session", "ends", "when", "its", "input", "does", "and", "every", "frame", "is", "whole", "a", "of",
    "reader", "waits",
];

fn ascii(out: &mut String, random: &mut Random, len: usize) {
    let end = out.len() + len;
    while out.len() < end {
        out.push_str(WORDS[random.below(WORDS.len())]);
        out.push_str(match random.below(40) {
            0 => "\\n",
            1 => ", \\\"",
            _ => " ",
        });
    }
}

fn chinese(out: &mut String, random: &mut Random, len: usize) {
    const CHARS: [char; 16] =
        ['会', '话', '结', '束', '时', '输', '入', '也', '结', '每', '帧', '完', '整', '读', '者', '等'];
    let end = out.len() + len;
    while out.len() < end {
        out.push(CHARS[random.below(CHARS.len())]);
        match random.below(25) {
            0 => out.push('，'),
            1 => out.push_str("\\n"),
            2 => out.push_str(" API "),
            _ => {}
        }
    }
}

/// Source code as it stands in a JSON string: a line end, quotes and indentation each 20 to 60 bytes.
fn code(out: &mut String, random: &mut Random, len: usize) {
    let end = out.len() + len;
    while out.len() < end {
        for _ in 0..random.below(5) {
            out.push_str(if random.below(8) == 0 { "\\t" } else { "    " });
        }
        match random.below(6) {
            0 => {
                let _ = write!(out, "let {} = {};\\n", WORDS[random.below(16)], random.below(1000));
            }
            1 => {
                let _ =
                    write!(out, "println!(\\\"{} {{}}\\\", {});\\n", WORDS[random.below(16)], WORDS[random.below(16)]);
            }
            2 => out.push_str("}\\n"),
            3 => {
                out.push_str("// ");
                let len = random.below(70);
                ascii(out, random, len);
                out.push_str("\\n");
            }
            4 => {
                let _ = write!(
                    out,
                    "if {}.is_empty() && {}[{}] != '\\\\n' {{\\n",
                    WORDS[random.below(16)],
                    WORDS[random.below(16)],
                    random.below(9)
                );
            }
            _ => {
                let _ = write!(
                    out,
                    "self.{}({}, &mut {})?;\\n",
                    WORDS[random.below(16)],
                    random.below(100),
                    WORDS[random.below(16)]
                );
            }
        }
    }
}

/// Text in which every third character or so is an escape.
fn escapes(out: &mut String, random: &mut Random, len: usize) {
    let end = out.len() + len;
    while out.len() < end {
        match random.below(10) {
            0 | 1 => out.push_str("\\n"),
            2 => out.push_str("\\\""),
            3 => out.push_str("\\\\"),
            4 => {
                let _ = write!(out, "\\u{:04x}", 0x4e00 + random.below(0x5000));
            }
            5 => out.push_str("\\t"),
            _ => {
                let len = random.below(6);
                out.push_str("abcdef".get(..len).unwrap_or_default());
            }
        }
    }
}

/// Objects and arrays inside each other, up to 100 levels (serde_json's `Value` gives up at 128).
fn deep(out: &mut String, random: &mut Random) {
    let depth = 20 + random.below(80);
    let mut close = Vec::new();
    for level in 0..depth {
        if random.below(2) == 0 {
            let _ = write!(out, r#"{{"level":{level},"in":"#);
            close.push('}');
        } else {
            let _ = write!(out, r#"[{level},"#);
            close.push(']');
        }
    }
    out.push_str("null");
    out.extend(close.into_iter().rev());
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.word() % n as u64) as usize
    }

    fn uuid(&mut self) -> String {
        let (a, b) = (self.word(), self.word());
        format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            a >> 32,
            a >> 16 & 0xffff,
            a & 0xfff,
            b >> 52,
            b & 0xffff_ffff_ffff
        )
    }
}
