//! Measures dsh-wire against its peers and against what the machine can do.
//!
//! - `dsh-wire-bench`: all figures, with interleaved repetitions and medians.
//! - `dsh-wire-bench decode | typed | encode | lines | round-trip | serve`: one of the tables.
//! - `dsh-wire-bench count SUBJECT CORPUS`: one pass, for callgrind.
//! - `dsh-wire-bench run SUBJECT CORPUS`: passes for two seconds, for a profiler.
//! - `dsh-wire-bench line LEN`: one line of that many bytes through a peer, for its peak of memory.

use dsh_wire_bench::corpus::{self, Corpus};
use dsh_wire_bench::{decode, encode, lines, round_trip, serve, typed};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let corpora = || corpus::NAMES.map(|name| corpus::generate(name, 4 << 20));
    match args[..] {
        [] => {
            let corpora = corpora();
            describe(&corpora);
            decode::table(&corpora);
            typed::table(&corpora);
            encode::table();
            lines::table();
            round_trip::table();
            serve::table();
        }
        ["decode"] => decode::table(&corpora()),
        ["typed"] => typed::table(&corpora()),
        ["encode"] => encode::table(),
        ["lines"] => lines::table(),
        ["round-trip"] => round_trip::table(),
        ["serve"] => serve::table(),
        ["count", subject, corpus] => {
            let corpus = corpus::generate(known(corpus), 1 << 18);
            std::hint::black_box(decode::pass(subject, &corpus, &corpus.lines()));
        }
        ["run", subject, corpus] => {
            let corpus = corpus::generate(known(corpus), 1 << 20);
            decode::run_for(2.0, subject, &corpus);
        }
        ["line", len] => lines::one_line(len.parse().expect("a number of bytes")),
        _ => panic!("no such mode: {args:?}"),
    }
}

fn known(corpus: &str) -> &'static str {
    corpus::NAMES.into_iter().find(|name| *name == corpus).expect("the name of a corpus")
}

fn describe(corpora: &[Corpus]) {
    for Corpus { name, bytes } in corpora {
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        println!("{name:9} {:6.2} MB, {} bytes a line", bytes.len() as f64 / 1e6, bytes.len() / lines);
    }
}
