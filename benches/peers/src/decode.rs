//! Bytes to classified frames: dsh-wire and the peers over the same corpora.

use dsh_wire::frame::Frame;
use dsh_wire::line::{Line, LineBuffer};
use serde::Deserialize;
use serde_json::value::RawValue;
use simd_json::prelude::ValueAsObject;

use crate::corpus::Corpus;
use crate::measure::{Subject, take_turns, timed};

/// The size of a read.
pub const READ: usize = 64 << 10;

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Lazy<'a> {
    #[serde(borrow, default)]
    id: Option<sonic_rs::LazyValue<'a>>,
    #[serde(borrow, default)]
    method: Option<sonic_rs::LazyValue<'a>>,
    #[serde(borrow, default)]
    params: Option<sonic_rs::LazyValue<'a>>,
    #[serde(borrow, default)]
    result: Option<sonic_rs::LazyValue<'a>>,
    #[serde(borrow, default)]
    error: Option<sonic_rs::LazyValue<'a>>,
}

/// Something that depends on how the frame was taken.
fn weigh(frame: &Frame<'_>) -> usize {
    match frame {
        Frame::Request { id, method, params } => id.get().len() + method.get().len() + params.get().len(),
        Frame::Response { id, outcome } => {
            id.get().len() + outcome.as_ref().map_or_else(|error| error.raw().get().len(), |result| result.get().len())
        }
        Frame::Notification { method, params } => method.get().len() + params.get().len(),
    }
}

/// Lines that are already cut → frames.
pub fn dsh_wire(lines: &[&[u8]]) -> usize {
    let mut scratch = String::new();
    let mut sum = 0;
    for line in lines {
        sum += weigh(&Frame::decode(line, &mut scratch).expect("a frame"));
    }
    sum
}

/// What a connection on which the bytes come so many times is read in.
fn reads(bytes: &[u8], times: usize) -> impl Iterator<Item = &[u8]> {
    std::iter::repeat_n(bytes, times).flat_map(|bytes| bytes.chunks(READ))
}

/// The whole way: reads of 64 KiB → lines → frames, of a connection on which the corpus comes so many times.
pub fn dsh_wire_stream(bytes: &[u8], times: usize) -> usize {
    let mut lines = LineBuffer::new();
    let mut scratch = String::new();
    let mut sum = 0;
    for read in reads(bytes, times) {
        lines.push(read);
        while let Some(line) = lines.next_line() {
            let Line::Whole { bytes, .. } = line else { unreachable!("all lines are whole") };
            sum += weigh(&Frame::decode(bytes, &mut scratch).expect("a frame"));
        }
    }
    sum
}

/// What no reader of text lines can go below: copies of 64 KiB, a split at `\n` by memchr, UTF-8 validation.
pub fn limit(bytes: &[u8], times: usize) -> usize {
    let mut buffer = vec![0; READ + (2 << 20)];
    let (mut end, mut sum) = (0, 0);
    for read in reads(bytes, times) {
        let searched = end;
        buffer[end..end + read.len()].copy_from_slice(read);
        end += read.len();
        let mut start = 0;
        for at in memchr::memchr_iter(b'\n', &buffer[searched..end]) {
            sum += std::str::from_utf8(&buffer[start..searched + at]).expect("text").len();
            start = searched + at + 1;
        }
        buffer.copy_within(start..end, 0);
        end -= start;
    }
    sum
}

fn serde_json_raw(lines: &[&[u8]]) -> usize {
    let len = |value: Option<&RawValue>| value.map_or(0, |value| value.get().len());
    let mut sum = 0;
    for line in lines {
        let raw: Raw<'_> = serde_json::from_slice(line).expect("a frame");
        sum += len(raw.id) + len(raw.method) + len(raw.params) + len(raw.result) + len(raw.error);
    }
    sum
}

fn sonic_lazy(lines: &[&[u8]]) -> usize {
    let len = |value: Option<sonic_rs::LazyValue<'_>>| value.map_or(0, |value| value.as_raw_str().len());
    let mut sum = 0;
    for line in lines {
        let raw: Lazy<'_> = sonic_rs::from_slice(line).expect("a frame");
        sum += len(raw.id) + len(raw.method) + len(raw.params) + len(raw.result) + len(raw.error);
    }
    sum
}

fn serde_json_value(lines: &[&[u8]]) -> usize {
    let mut sum = 0;
    for line in lines {
        let value: serde_json::Value = serde_json::from_slice(line).expect("a frame");
        sum += value.as_object().map_or(0, serde_json::Map::len);
    }
    sum
}

/// Passes of one subject for a while, for a profiler.
pub fn run_for(seconds: f64, subject: &str, corpus: &Corpus) {
    let lines = corpus.lines();
    let start = std::time::Instant::now();
    let mut passes = 0;
    while start.elapsed().as_secs_f64() < seconds {
        std::hint::black_box(pass(subject, corpus, &lines));
        passes += 1;
    }
    let time = start.elapsed().as_secs_f64() / f64::from(passes);
    println!("{:.3} GB/s, {:.1} ns a line", corpus.bytes.len() as f64 / time / 1e9, time * 1e9 / lines.len() as f64);
}

/// One pass of one subject.
pub fn pass(subject: &str, corpus: &Corpus, lines: &[&[u8]]) -> usize {
    match subject {
        "dsh-wire" => dsh_wire(lines),
        "stream" => dsh_wire_stream(&corpus.bytes, 1),
        "limit" => limit(&corpus.bytes, 1),
        "raw" => serde_json_raw(lines),
        "sonic" => sonic_lazy(lines),
        "typed" => crate::typed::typed(lines),
        "encode" => crate::encode::run(),
        "round-trip" => crate::round_trip::run(),
        "nothing" => lines.len(),
        _ => unreachable!("no subject of this name"),
    }
}

/// simd-json decodes in place, so that each line is copied first, as it would have to be out of a buffer of lines.
fn simd_json_value(lines: &[&[u8]]) -> usize {
    let mut scratch = Vec::new();
    let mut sum = 0;
    for line in lines {
        scratch.clear();
        scratch.extend_from_slice(line);
        let value = simd_json::to_borrowed_value(&mut scratch).expect("a frame");
        sum += value.as_object().map_or(0, |object| object.len());
    }
    sum
}

/// What the speed ÷ serde_json's raw values must be, and what is aimed for.
fn goal(corpus: &str) -> (f64, f64) {
    match corpus {
        "large" | "mix" => (1.5, 2.0),
        "escape" => (3.0, 5.0),
        "deep" => (f64::NAN, f64::NAN),
        _ => (1.8, 2.5),
    }
}

pub fn table(corpora: &[Corpus]) {
    println!(
        "\ndecode: lines → classified frames, whole line proved; speed ÷ that of others, time ÷ limit of bytes → frames"
    );
    println!(
        "{:9} {:>6} {:>6} {:>5} {:>5} {:>8} {:>8} {:>8} {:>10} {:>9} {:>9}",
        "", "GB/s", "× raw", "must", "aim", "× sonic", "× Value", "÷ limit", "× simd-json", "str GB/s", "lim GB/s"
    );
    let mut sonic = 0.0;
    for corpus in corpora {
        let lines = corpus.lines();
        let mut subjects: Vec<Subject<'_>> = vec![
            ("dsh-wire", timed(|| dsh_wire(&lines))),
            ("raw", timed(|| serde_json_raw(&lines))),
            ("sonic", timed(|| sonic_lazy(&lines))),
            ("stream", timed(|| dsh_wire_stream(&corpus.bytes, 1))),
            ("limit", timed(|| limit(&corpus.bytes, 1))),
            ("value", timed(|| serde_json_value(&lines))),
            ("simd-json", timed(|| simd_json_value(&lines))),
        ];
        let times = take_turns(25, &mut subjects);
        let speed = |name| corpus.bytes.len() as f64 / times.seconds(name) / 1e9;
        let (must, aim) = goal(corpus.name);
        println!(
            "{:9} {:6.2} {:6.2} {must:5} {aim:5} {:8.2} {:8.2} {:8.2} {:11.2} {:9.2} {:9.2}",
            corpus.name,
            speed("dsh-wire"),
            times.ratio("raw", "dsh-wire"),
            times.ratio("sonic", "dsh-wire"),
            times.ratio("value", "dsh-wire"),
            times.ratio("stream", "limit"),
            times.ratio("simd-json", "dsh-wire"),
            speed("stream"),
            speed("limit"),
        );
        sonic += times.ratio("sonic", "dsh-wire") / corpora.len() as f64;
    }
    println!("{:28} {sonic:14.2}", "mean");
    println!("{:28} {:14} {:8} {:8}", "must", 1.3, "", 5);
    println!("{:28} {:14} {:8} {:8}", "aim", "2 (mean)", "", 3);
}
