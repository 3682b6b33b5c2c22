//! Bytes to messages: what other programs read such streams with, in memory where they can be had so.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use cpu_time::ThreadTime;
use deepseek_harness_sdk::{IncomingFrame, JsonRpcLineTransport};
use deepseek_harness_sdk_rs::{HarnessClient, HarnessClientOptions};
use futures_util::StreamExt;
use rmcp::RoleClient;
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::runtime::Runtime;
use tokio_util::codec::{FramedRead, LinesCodec};

use crate::corpus::Corpus;
use crate::decode::{dsh_wire_stream, limit};
use crate::measure::{Subject, Times, take_turns, timed};

/// How often the corpus comes on one connection: connections live long, and what one costs at its beginning, as the memory
/// of its buffer does, is no matter of this.
const TIMES: usize = 4;

/// [`TIMES`] times the corpus.
fn connection(bytes: &'static [u8]) -> impl AsyncRead + Send + Unpin {
    const { assert!(TIMES == 4) };
    bytes.chain(bytes).chain(bytes.chain(bytes))
}

/// One thread, so that its processor time is all of it.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The usual way: lines by tokio's codec, each into a `Value`.
fn lines_codec(runtime: &Runtime, bytes: &'static [u8]) -> usize {
    runtime.block_on(async {
        let mut lines = FramedRead::new(connection(bytes), LinesCodec::new());
        let mut sum = 0;
        while let Some(line) = lines.next().await {
            let value: Value = serde_json::from_str(&line.expect("text")).expect("a frame");
            sum += value.as_object().map_or(0, serde_json::Map::len);
        }
        sum
    })
}

/// `deepseek-harness-sdk`: its transport and its frame type, as its client's read loop uses them.
fn sdk(runtime: &Runtime, bytes: &'static [u8]) -> usize {
    runtime.block_on(async {
        let mut transport = JsonRpcLineTransport::new(connection(bytes), tokio::io::sink());
        let mut frames = 0;
        while let Some(value) = transport.read_frame().await.expect("a stream") {
            let frame: IncomingFrame = serde_json::from_value(value).expect("a frame");
            std::hint::black_box(&frame);
            frames += 1;
        }
        frames
    })
}

/// `deepseek-harness-sdk-rs`: its client, whose transport is private, behind a `cat` of the corpus; the seconds from the
/// start of the child on.
fn sdk_rs(runtime: &Runtime, corpus: &str) -> f64 {
    runtime.block_on(async {
        let launch = ["cat"].into_iter().chain([corpus; TIMES]).map(String::from).collect();
        let client =
            HarnessClient::new(HarnessClientOptions { launch_args_override: Some(launch), ..Default::default() });
        client.start().await.expect("cat");
        let start = ThreadTime::now();
        let mut notifications = 0;
        while let Ok(notification) = client.next_notification().await {
            std::hint::black_box(&notification);
            notifications += 1;
        }
        std::hint::black_box(notifications);
        start.elapsed().as_secs_f64()
    })
}

/// rmcp's transport for streams of lines.
fn rmcp(runtime: &Runtime, bytes: &'static [u8]) -> usize {
    runtime.block_on(async {
        let mut transport = AsyncRwTransport::<RoleClient, _, _>::new(connection(bytes), tokio::io::sink());
        let mut messages = 0;
        while let Some(message) = transport.receive().await {
            std::hint::black_box(&message);
            messages += 1;
        }
        messages
    })
}

/// The frames of the connection in the framing of the Language Server Protocol.
fn with_headers(corpus: &Corpus) -> Vec<u8> {
    let mut out = Vec::new();
    for line in std::iter::repeat_n(corpus.lines(), TIMES).flatten() {
        write!(out, "Content-Length: {}\r\n\r\n", line.len()).expect("a vector takes it");
        out.extend(line);
    }
    out
}

fn lsp_server(mut bytes: &[u8]) -> usize {
    let mut messages = 0;
    while let Some(message) = lsp_server::Message::read(&mut bytes).expect("a message") {
        std::hint::black_box(&message);
        messages += 1;
    }
    messages
}

/// The npm transport, in a node that waits for its turns.
struct Node {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Node {
    /// `None` where it is not installed.
    fn start(corpus: &str) -> Option<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let package = here.join("../../target/interop/node/node_modules/@deepseek-ai/dsh-sdk-protocol");
        if !package.exists() {
            return None;
        }
        let mut child = Command::new("node")
            .args([&here.join("src/node.mjs"), &package, Path::new(corpus), Path::new(&TIMES.to_string())])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let answers = BufReader::new(child.stdout.take()?);
        Some(Self { child, answers })
    }

    fn pass(&mut self) -> f64 {
        self.child.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("node waits");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("an answer");
        let seconds = answer.split_once(' ').expect("two numbers").0;
        seconds.parse().expect("a number")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

const COLUMNS: [(&str, &str); 7] = [
    ("lines", "× tokio LinesCodec + Value"),
    ("sdk", "× deepseek-harness-sdk"),
    ("sdk-rs", "× deepseek-harness-sdk-rs"),
    ("node", "× npm transport under node"),
    ("lsp", "× lsp-server"),
    ("rmcp", "× rmcp"),
    ("limit", "× copies of 64 KiB, a split by memchr and UTF-8 validation, and nothing else"),
];

pub fn table(corpora: Vec<Corpus>) {
    println!("\nbytes → frames in reads of 64 KiB, speed ÷ that of other readers");
    for (name, what) in COLUMNS {
        println!("  {name:8} {what}");
    }
    print!("{:9} {:>8}", "", "GB/s");
    COLUMNS.iter().for_each(|(name, _)| print!(" {name:>8}"));
    println!();
    let mut means = [0.0; COLUMNS.len()];
    let count = corpora.len() as f64;
    for corpus in corpora {
        let name = corpus.name;
        let (speed, ratios) = row(corpus);
        print!("{name:9} {speed:8.2}");
        for (mean, ratio) in means.iter_mut().zip(ratios) {
            print!(" {ratio:8.*}", if ratio < 2.0 { 2 } else { 1 });
            *mean += ratio / count;
        }
        println!();
    }
    print!("{:9} {:8}", "mean", "");
    means.iter().for_each(|mean| print!(" {mean:8.1}"));
    println!("\n{:9} {:8} {:>8} {:>8} {:>8} {:>8}", "must", "", 5, 15, "", 12);
    println!("{:9} {:8} {:>8} {:>8} {:>8} {:>8}  (mean)", "aim", "", 10, 40, "", 20);
    if means[3].is_nan() {
        println!("node: not measured; tests/interop/setup installs the npm transport");
    }
}

fn row(corpus: Corpus) -> (f64, [f64; COLUMNS.len()]) {
    let name = corpus.name;
    let path = std::env::temp_dir().join(format!("dsh-wire-bench-{}-{name}", std::process::id()));
    std::fs::write(&path, &corpus.bytes).expect("a place for the corpus");
    let file = path.to_str().expect("a plain path");
    let framed = with_headers(&corpus);
    // For rmcp, which wants to own its stream; a few corpora in one process.
    let bytes: &'static [u8] = corpus.bytes.leak();
    let runtime = runtime();
    let mut subjects: Vec<Subject<'_>> = vec![
        ("dsh-wire", timed(|| dsh_wire_stream(bytes, TIMES))),
        ("limit", timed(|| limit(bytes, TIMES))),
        ("lines", timed(|| lines_codec(&runtime, bytes))),
        ("sdk", timed(|| sdk(&runtime, bytes))),
        ("sdk-rs", Box::new(|| sdk_rs(&runtime, file))),
        ("lsp", timed(|| lsp_server(&framed))),
        ("rmcp", timed(|| rmcp(&runtime, bytes))),
    ];
    if let Some(mut node) = Node::start(file) {
        subjects.push(("node", Box::new(move || node.pass())));
    }
    let times: Times = take_turns(11, &mut subjects);
    drop(subjects);
    let _ = std::fs::remove_file(&path);
    (
        (TIMES * bytes.len()) as f64 / times.seconds("dsh-wire") / 1e9,
        COLUMNS.map(|(name, _)| times.ratio(name, "dsh-wire")),
    )
}
