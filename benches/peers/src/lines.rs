//! Long lines, short feeds, and the memory that a line takes.

use cpu_time::ThreadTime;
use dsh_wire::line::{Line, LineBuffer};
use dsh_wire::peer::{Event, Peer};

use crate::corpus;
use crate::measure::{Subject, median, take_turns};

/// A notification of `len` bytes, with its `\n`.
fn line(len: usize) -> Vec<u8> {
    let head = br#"{"jsonrpc":"2.0","method":"session.event","params":{"text":""#;
    let mut line = head.to_vec();
    line.resize(len - 4, b'x');
    line.extend(b"\"}}\n");
    line
}

/// Feeds a peer in pieces; returns the number of events.
fn feed(bytes: &[u8], piece: usize) -> usize {
    let mut peer: Peer<()> = Peer::with_seed_and_limit(1, 1 << 30);
    let mut events = 0;
    for piece in bytes.chunks(piece) {
        peer.push(piece);
        while let Some(event) = peer.next_event() {
            assert!(matches!(event, Event::Notification { .. }));
            events += 1;
        }
    }
    events
}

/// The same bytes through the line buffer alone.
fn split(bytes: &[u8], piece: usize) -> usize {
    let mut lines = LineBuffer::new();
    let mut sum = 0;
    for piece in bytes.chunks(piece) {
        lines.push(piece);
        while let Some(line) = lines.next_line() {
            let Line::Whole { bytes, .. } = line else { panic!("a line that is not whole") };
            sum += bytes.len();
        }
    }
    sum
}

/// One line of `len` bytes in reads of 64 KiB, each from the same place, as reads from a pipe are.
fn long_line(len: usize) -> usize {
    let mut peer: Peer<()> = Peer::with_seed_and_limit(1, 1 << 30);
    let piece = vec![b'x'; 64 << 10];
    peer.push(br#"{"method":"m","params":{"text":""#);
    for _ in 0..len / piece.len() {
        peer.push(&piece);
        assert!(peer.next_event().is_none());
    }
    peer.push(b"\"}}\n");
    let Some(Event::Notification { params, .. }) = peer.next_event() else { panic!("no notification") };
    params.get().len()
}

/// What a loop written for the purpose does: each piece into a vector, each `\n` in it ends a line.
fn bare_split(bytes: &[u8], piece: usize) -> usize {
    let mut line: Vec<u8> = Vec::new();
    let mut sum = 0;
    for mut piece in bytes.chunks(piece) {
        while let Some(at) = memchr::memchr(b'\n', piece) {
            line.extend_from_slice(&piece[..at]);
            sum += std::hint::black_box(&line).len();
            line.clear();
            piece = &piece[at + 1..];
        }
        line.extend_from_slice(piece);
    }
    sum
}

pub fn table() {
    let long = line(4 << 20);
    let small = corpus::generate("small", 1 << 20).bytes;
    // In processes of their own: an allocator that has seen such lengths keeps memory ready for some of them.
    let ratios = (0..9).map(|_| child(64 << 20).0 / child(16 << 20).0).collect();
    println!("\none 64 MiB line ÷ one 16 MiB line, in reads of 64 KiB: {:.2}  (must 6, aim 4.4)", median(ratios));
    let mut subjects: Vec<Subject<'_>> = vec![
        ("split", Box::new(|| split(&small, 1))),
        ("bare", Box::new(|| bare_split(&small, 1))),
        ("feed", Box::new(|| feed(&small, 1))),
        ("long", Box::new(|| split(&long, 1))),
        ("long bare", Box::new(|| bare_split(&long, 1))),
    ];
    let times = take_turns(15, &mut subjects);
    println!(
        "feeds of 1 byte ÷ a bare split loop: lines {:.2}, of 4 MiB {:.2}  (must 1.5, aim 1.1); a whole peer {:.2}; {:.1} ns a byte",
        times.ratio("split", "bare"),
        times.ratio("long", "long bare"),
        times.ratio("feed", "bare"),
        times.seconds("split") * 1e9 / small.len() as f64,
    );
    println!("peak of memory for one line of N bytes  (must 1.3 N + 4 MB, aim 1.1 N)");
    for mib in [0, 1, 4, 16, 64] {
        let peak = child(mib << 20).1;
        println!("  {mib:2} MiB: {:.1} MB, {:.2} N", peak / 1e6, peak / f64::from((mib << 20).max(1)));
    }
}

/// The time that a line takes in a process of its own, and its memory.
fn child(len: i32) -> (f64, f64) {
    let exe = std::env::current_exe().expect("the path of this program");
    let out = std::process::Command::new(exe).args(["line", &len.to_string()]).output().expect("a child");
    let out = String::from_utf8(out.stdout).expect("numbers");
    let (time, peak) = out.trim().split_once(' ').expect("two numbers");
    (time.parse().expect("a number"), peak.parse().expect("a number"))
}

/// Reads one line of `len` bytes; prints the seconds and the bytes by which the peak of memory has grown.
pub fn one_line(len: usize) {
    let before = peak();
    let start = ThreadTime::now();
    assert!(long_line(len) > len);
    println!("{} {}", start.elapsed().as_secs_f64(), peak() - before);
}

/// The largest resident set so far, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok()).unwrap_or(0) << 10
}
