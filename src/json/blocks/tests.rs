//! Against the plain path, at every level of vector instructions that the machine has.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::*;
use crate::json::fast;

/// Byte by byte, as a reference.
#[derive(Clone, Copy)]
struct OneByOne;

impl OneByOne {
    fn bits(block: &[u8; 64], class: impl Fn(u8) -> bool) -> u64 {
        block.iter().rev().fold(0, |bits, byte| bits << 1 | u64::from(class(*byte)))
    }
}

impl Classify for OneByOne {
    fn strings(self, block: &[u8; 64]) -> Strings {
        Strings {
            quote: Self::bits(block, |byte| byte == b'"'),
            backslash: Self::bits(block, |byte| byte == b'\\'),
            control: Self::bits(block, |byte| byte < 0x20),
        }
    }

    fn structure(self, block: &[u8; 64]) -> Structure {
        Structure {
            open: Self::bits(block, |byte| matches!(byte, b'{' | b'[')),
            close: Self::bits(block, |byte| matches!(byte, b'}' | b']')),
            colon: Self::bits(block, |byte| byte == b':'),
            comma: Self::bits(block, |byte| byte == b','),
            digit: Self::bits(block, |byte| byte.is_ascii_digit()),
            zero: Self::bits(block, |byte| byte == b'0'),
        }
    }

    fn usual_escapes(self, block: &[u8; 64]) -> u64 {
        Self::bits(block, |byte| matches!(byte, b'"' | b'\\' | b'n' | b't'))
    }

    fn escapes(self, block: &[u8; 64]) -> Escapes {
        Escapes {
            allowed: Self::bits(block, |byte| br#""\/bfnrtu"#.contains(&byte)),
            u: Self::bits(block, |byte| byte == b'u'),
            hex: Self::bits(block, |byte| byte.is_ascii_hexdigit()),
        }
    }
}

/// Whether `text` is an object or array without white space between its tokens, by the plain path.
fn plain(text: &str) -> bool {
    if scan::validate(text, |_, _| {}).is_err() || !text.starts_with(['{', '[']) {
        return false;
    }
    let (mut inside, mut escaped) = (false, false);
    text.bytes().all(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => inside = !inside,
            b' ' | b'\t' | b'\r' | b'\n' => return inside,
            _ => {}
        }
        true
    })
}

#[track_caller]
fn check(text: &str) {
    let expected = plain(text);
    // Behind bytes that are no part of it, and in a last block that is filled up with them.
    for before in ["", r#"{"a":[\\"#] {
        let (whole, start) = (format!("{before}{text}"), before.len());
        assert_eq!(compact(OneByOne, whole.as_bytes(), start), expected, "{before} {text}");
        for level in fast::levels() {
            assert_eq!(fast::is_container_at(level, &whole, start), expected, "{level:?}: {before} {text}");
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn string(random: &mut Random, out: &mut String) {
    out.push('"');
    for _ in 0..random.below(12) {
        out.push_str(match random.below(16) {
            0 => "\\\"",
            1 => "\\\\",
            2 => "\\u00e9",
            3 => "\\n",
            4 => "你好",
            5 => "{[]}:,",
            6 => " ",
            7 => "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            _ => "x",
        });
    }
    out.push('"');
}

fn value(random: &mut Random, depth: u64, out: &mut String) {
    match random.below(if depth > 5 { 6 } else { 9 }) {
        0 | 1 => string(random, out),
        2 => out.push_str(["true", "false", "null"][random.below(3) as usize]),
        3 => out.push_str(["0", "-0.5e+7", "-1", "1E2", "0.25"][random.below(5) as usize]),
        4 | 5 => {
            let size = random.below(60);
            out.push_str(&format!("{}", random.below(1 << size)));
        }
        6 => {
            out.push('[');
            for index in 0..random.below(4) {
                out.push_str(if index > 0 { "," } else { "" });
                value(random, depth + 1, out);
            }
            out.push(']');
        }
        _ => object(random, depth + 1, out),
    }
}

fn object(random: &mut Random, depth: u64, out: &mut String) {
    out.push('{');
    for index in 0..random.below(5) {
        out.push_str(if index > 0 { "," } else { "" });
        string(random, out);
        out.push(':');
        value(random, depth, out);
    }
    out.push('}');
}

#[test]
fn it_agrees_with_the_plain_path_on_generated_texts_and_on_broken_ones() {
    let mut random = Random(0x0dd5_eed5);
    for round in 0..1500 {
        let mut text = String::new();
        match round % 4 {
            0 => text.push_str(r#"{"jsonrpc":"2.0","method":"x","params":"#),
            1 => text.push_str(r#"{"jsonrpc":"2.0","id":7,"result":"#),
            2 => text.push_str(r#"{"params":"#),
            _ => {}
        }
        if round % 8 == 7 {
            text.push('[');
            value(&mut random, 0, &mut text);
            text.push(']');
        } else {
            object(&mut random, 0, &mut text);
        }
        if round % 4 != 3 {
            text.push('}');
        }
        check(&text);
        for _ in 0..8 {
            let mut broken: Vec<char> = text.chars().collect();
            for _ in 0..=random.below(2) {
                let at = random.below(broken.len() as u64) as usize;
                let other =
                    ['{', '}', '[', ']', ':', ',', '"', '\\', 'u', '0', '1', '-', 'e', '.', 't', ' ', '\t', 'é'];
                let other = other[random.below(other.len() as u64) as usize];
                match random.below(4) {
                    0 => broken.insert(at, other),
                    1 if broken.len() > 1 => drop(broken.remove(at)),
                    2 => broken.truncate(at + 1),
                    _ => broken[at] = other,
                }
            }
            check(&broken.into_iter().collect::<String>());
        }
    }
}

/// Every short text over the bytes that matter, at the end of a block and across it.
#[test]
fn it_agrees_with_the_plain_path_on_every_short_text_at_the_edge_of_a_block() {
    const ALPHABET: &[u8; 11] = br#"{}[]:,"\0-n"#;
    for len in 0..=4 {
        let long = "a".repeat(58);
        for (head, end) in [("{".into(), '}'), ("[".into(), ']'), (format!(r#"{{"{long}":"#), '}')] {
            for mut number in 0..ALPHABET.len().pow(len) {
                let mut text = head.clone();
                for _ in 0..len {
                    text.push(ALPHABET[number % ALPHABET.len()].into());
                    number /= ALPHABET.len();
                }
                check(&text);
                text.push(end);
                check(&text);
            }
        }
    }
}

/// A scalar, an escape and a string end at every place of the first blocks.
#[test]
fn it_agrees_with_the_plain_path_at_every_alignment() {
    let digits = format!(r#"{{"v":{}}}"#, "1".repeat(200));
    for len in 0..200 {
        // Every offset within a block comes with either. Digits are taken for those of a number where a shift is wrong.
        let pad = if len % 3 == 0 { "1" } else { "p" }.repeat(len);
        for tail in [
            r#"{"v":-12.5e3}"#,
            r#"{"v":12345678901234567890}"#,
            r#"{"v":01}"#,
            &digits,
            r#"{"v":true}"#,
            r#"{"v":tru}"#,
            r#"{"v":"\u00fF\\\""}"#,
            r#"{"v":"\u00g0"}"#,
            r#"{"v":"\u000\n"}"#,
            r#"{"v":"\/\b\f\n\r\t"}"#,
            r#"{"v":"\x"}"#,
            "{\"v\":\"\u{1}\"}",
            r#"{"v":[[],{},""]}"#,
            r#"{"v":[1,2,3]}"#,
            r#"{"v":1"w":2}"#,
            r#"{"v":"a":"b"}"#,
            r#"{"v"}"#,
            r#"{"v":1,}"#,
            "{}",
            "{}}",
            "{},",
            "{} ",
            r#"{"v":é}"#,
            r#"{"v":"\"#,
            r#"{"v":"#,
            "",
        ] {
            check(&format!(r#"{{"{pad}":0,"o":{tail}}}"#));
            check(&format!(r#"{{"o":[{{"{pad}":"{pad}"}},{tail},"{pad}"]}}"#));
            check(&format!(r#"["{pad}",{tail}]"#));
            check(&format!(r#"[{tail},"{pad}"]"#));
        }
        // Scalars at the same places of two blocks.
        let ones = "1,".repeat(len);
        for scalar in ["1", "01", "tru"] {
            check(&format!(r#"{{"o":[{ones}{scalar}]}}"#));
            check(&format!(r#"{{"oo":[{ones}{scalar}]}}"#));
        }
        let deep = format!("{}{}{}", "[".repeat(len), r#"{"a":["#.repeat(len), "]}".repeat(len));
        check(&format!(r#"{{"d":{deep}{}}}"#, "]".repeat(len)));
        check(&format!(r#"{{"d":{deep}{}}}"#, "]".repeat(len + 1)));
        check(&format!(r#"{{"d":{deep}}}"#));
    }
}
