//! Every text up to a length, over alphabets of what the JSON grammar turns on: the scanner and the oracle agree,
//! on what an object is as a frame too.

use dsh_wire::frame::Frame;

use super::json::text_agrees;
use super::{frame, oracle};

/// Structure, digits, quote, backslash, `u`, sign, exponent, white space, a control character, a character of two bytes.
const ALL: &[&str] =
    &["{", "}", "[", "]", ":", ",", "\"", "\\", "u", "0", "1", "-", "+", ".", "e", "n", " ", "\r", "\u{1}", "\u{e9}"];
const STRUCTURE: &[&str] = &["{", "}", "[", "]", ":", ",", "\"", "1", " "];
const NUMBER: &[&str] = &["0", "1", "9", "-", "+", ".", "e", "E", " "];
const STRING: &[&str] = &["\"", "\\", "u", "0", "d", "A", "g", "/", "\u{1f}", "\u{7f}", "\u{1f600}"];
const WORD: &[&str] = &["t", "r", "u", "e", "f", "a", "l", "s", "n", ","];

/// Checks every text of at most `length` symbols of the large alphabet, longer ones of the small ones, and shorter ones
/// at every place of a long string and in a frame, where a scanner may read many bytes at once. Returns how many.
pub(crate) fn check(length: usize) -> u64 {
    let mut plans: Vec<(&[&str], usize, String, String)> = Vec::new();
    let mut plan = |alphabet, length, before: &str, behind: &str| {
        plans.push((alphabet, length, before.into(), behind.into()));
    };
    plan(ALL, length, "", "");
    plan(STRUCTURE, length + 1, "", "");
    plan(NUMBER, length + 1, "", "");
    plan(NUMBER, length, "[", "]");
    plan(STRING, length, "\"", "\"");
    plan(STRING, length, "{\"a\":\"", "\"}");
    plan(STRING, length - 1, "[\"\\ud83d", "\"]");
    plan(WORD, length, "", "");
    plan(WORD, length - 1, "{\"a\":", "}");
    plan(ALL, length - 1, r#"{"jsonrpc":"2.0","id":1,"method":"m","params":"#, "}");
    plan(ALL, length - 1, r#"{"jsonrpc":"2.0",""#, r#"":{"a":[1,2,{}]}}"#);
    // At every place of a block of 64 bytes, in the compact form that has a path of its own.
    for pad in 0..=66 {
        let head = |fill: &str, rest: &str| "{\"".to_owned() + &fill.repeat(pad) + rest;
        plan(ALL, length - 3, &head("x", "\":[\""), &("x".repeat(70) + "\"]}"));
        plan(ALL, length - 3, &("[".to_owned() + &" ".repeat(pad)), &(" ".repeat(70) + "]"));
        plan(STRING, length - 2, &head("\u{4f60}", ""), "\\\\\":0}");
        plan(STRUCTURE, length - 2, &head("x", "\":[1"), "}");
        plan(STRUCTURE, length - 2, &head("x", "\":{\"\":1"), "}");
        plan(NUMBER, length - 2, &head("x", "\":"), "}");
        plan(WORD, length - 3, &head("x", "\":[nul"), "]}");
    }
    // Two halves, so that two processors share the work.
    std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            let plans = &plans;
            scope.spawn(move || {
                plans.iter().map(|(symbols, length, a, b)| every(symbols, *length, a, b, half)).sum::<u64>()
            })
        });
        halves.map(|half| half.join().expect("no text on which they differ")).iter().sum()
    })
}

/// The texts whose last symbol has this parity; half 0 has the empty one too.
fn every(symbols: &[&str], length: usize, before: &str, behind: &str, half: usize) -> u64 {
    let (mut text, mut units, mut count) = (String::new(), Vec::new(), 0);
    // An odometer: the symbols of the current text by index, the first one turning fastest.
    let mut wheels: Vec<usize> = Vec::new();
    loop {
        if wheels.last().map_or(0, |last| last % 2) == half {
            text.clear();
            text.push_str(before);
            wheels.iter().for_each(|symbol| text.push_str(symbols[*symbol]));
            text.push_str(behind);
            units.clear();
            units.extend(text.encode_utf16());
            text_agrees(&text, &units);
            if text.starts_with('{') {
                frame::agrees(&text, Frame::parse(&text), &oracle::judge(text.as_bytes()));
            }
            count += 1;
        }
        let mut carry = true;
        for wheel in &mut wheels {
            *wheel = (*wheel + 1) % symbols.len();
            carry = *wheel == 0;
            if !carry {
                break;
            }
        }
        if carry {
            if wheels.len() == length {
                return count;
            }
            wheels.push(0);
        }
    }
}
