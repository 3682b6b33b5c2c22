//! A small agent of one's own behind the protocol: it counts words, of the prompt or of a file that it is told to read
//! with a tool. Any client of the SDK can drive it: `dsh-wire run "one two three" -- target/debug/examples/word_counter`.

use std::process::ExitCode;

use dsh_wire::stdio::turns::{Answer, Step, ToolError, ToolOutput, ToolUse, TurnAgent, TurnError, Turns};
use dsh_wire::stdio::{ServeOptions, serve_stdio};

/// One in each session.
#[derive(Default)]
struct WordCounter {
    /// All words so far.
    total: usize,
    /// What the tool has found, until it is told.
    found: Option<usize>,
}

impl TurnAgent for WordCounter {
    fn answer(&mut self, step: &mut Step<'_>) -> Result<Answer, TurnError> {
        let prompt = step.prompt_text().to_string();
        let words = match (prompt.strip_prefix("file "), step.number(), self.found.take()) {
            // The first step asks for the tool; the second one knows what came of it.
            (Some(file), 1, _) => {
                let arguments = serde_json::json!({ "file": file }).to_string();
                return Ok(Answer::new().thinking("I have to read it.").tool(ToolUse::new("count_file", arguments)));
            }
            (Some(_), _, None) => return Err("the file cannot be counted".into()),
            (Some(_), _, Some(found)) => found,
            (None, ..) => prompt.split_whitespace().count(),
        };
        self.total += words;
        Ok(format!("{words} words, {} so far", self.total).into())
    }

    fn use_tool(&mut self, step: &mut Step<'_>, call: &ToolUse) -> Result<ToolOutput, ToolError> {
        let file = call.argument("file").and_then(|file| file.as_json().parse::<String>().ok());
        let path = step.cwd().join(file.ok_or_else(ToolError::bad_arguments)?);
        let text =
            std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let words = text.split_whitespace().count();
        self.found = Some(words);
        Ok(words.to_string().into())
    }
}

fn main() -> ExitCode {
    match serve_stdio(Turns::each(WordCounter::default), ServeOptions::default()) {
        Ok(served) => ExitCode::from(served.exit_code()),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
