//! Measures dsh-wire against its peers and against what the machine can do.
//!
//! - `dsh-wire-bench`: all figures, with interleaved repetitions and medians.
//! - `dsh-wire-bench decode | readers | typed | encode | lines | round-trip | serve`: one of the tables.
//! - `dsh-wire-bench tell TURNS`: notifications out of `serve`, for a profiler.
//! - `dsh-wire-bench count SUBJECT CORPUS`: one pass, for callgrind.
//! - `dsh-wire-bench level`: the vector instructions that this machine seems to have.
//! - `dsh-wire-bench run SUBJECT CORPUS`: passes for two seconds, for a profiler.
//! - `dsh-wire-bench line LEN`: one line of that many bytes through a peer, for its peak of memory.

use dsh_wire_bench::corpus::{self, Corpus};
use dsh_wire_bench::{decode, encode, lines, readers, round_trip, serve, typed};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    // Little enough to lie in the cache of the second level of a usual server, as do the bytes that come out of a pipe.
    let corpora = || Vec::from(corpus::NAMES.map(|name| corpus::generate(name, 2 << 20)));
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
            readers::table(corpora);
        }
        ["decode"] => decode::table(&corpora()),
        ["readers"] => readers::table(corpora()),
        ["typed"] => typed::table(&corpora()),
        ["encode"] => encode::table(),
        ["lines"] => lines::table(),
        ["round-trip"] => round_trip::table(),
        ["serve"] => serve::table(),
        ["tell", turns] => serve::tell(turns.parse().expect("a number")),
        ["count", subject, corpus] => {
            let corpus = corpus::generate(known(corpus), 1 << 18);
            std::hint::black_box(decode::pass(subject, &corpus, &corpus.lines()));
        }
        ["run", subject, corpus] => {
            let corpus = corpus::generate(known(corpus), 1 << 20);
            decode::run_for(2.0, subject, &corpus);
        }
        ["level"] => println!("{}", level()),
        ["line", len] => lines::one_line(len.parse().expect("a number of bytes")),
        _ => panic!("no such mode: {args:?}"),
    }
}

/// Which counts of instructions can be compared: those of one level.
fn level() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return "x86_64-avx2";
    }
    std::env::consts::ARCH
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
