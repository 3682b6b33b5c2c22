//! Measures dsh-wire against its peers and against what the machine can do.
//!
//! - `dsh-wire-bench`: the table of ratios, with interleaved repetitions and medians.
//! - `dsh-wire-bench serve`: the serving end against the pipe alone.
//! - `dsh-wire-bench count CORPUS SUBJECT`: one pass, for callgrind.

mod corpus;
mod decode;
mod measure;
mod serve;

use corpus::Corpus;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["count", corpus, subject] => {
            let name = corpus::NAMES.into_iter().find(|name| *name == corpus).expect("the name of a corpus");
            let corpus = corpus::generate(name, 1 << 18);
            decode::count(subject, &corpus);
        }
        ["loop", corpus, subject] => {
            let name = corpus::NAMES.into_iter().find(|name| *name == corpus).expect("the name of a corpus");
            let corpus = corpus::generate(name, 1 << 20);
            decode::run_for(2.0, subject, &corpus);
        }
        ["serve"] => serve::table(),
        ["write", dir] => {
            for name in corpus::NAMES {
                std::fs::write(format!("{dir}/{name}.jsonl"), &corpus::generate(name, 4 << 20).bytes)
                    .expect("a directory");
            }
        }
        _ => {
            let corpora: Vec<Corpus> = corpus::NAMES.into_iter().map(|name| corpus::generate(name, 4 << 20)).collect();
            for corpus in &corpora {
                let lines = corpus.lines();
                println!(
                    "{:9} {:7.2} MB, {} bytes a line",
                    corpus.name,
                    corpus.bytes.len() as f64 / 1e6,
                    corpus.bytes.len() / lines.len()
                );
            }
            decode::table(&corpora);
        }
    }
}
