//! A small agent of one's own behind the protocol: it counts the words of each prompt. Any client of the SDK can drive
//! it: `dsh-wire run "one two three" -- target/debug/examples/word_counter`.

use std::process::ExitCode;

use dsh_wire::json::{Json, JsonString};
use dsh_wire::server::{NewEvent, Opening, Refusal};
use dsh_wire::stdio::{Agent, AgentHost, PromptResponder, ServeOptions, Sink, SinkError, serve_stdio};
use dsh_wire::wire::InitializeParams;
use serde_json::{Value, json};

struct WordCounters;

struct WordCounter {
    sink: Sink,
    cwd: JsonString,
    turn: u64,
}

impl AgentHost for WordCounters {
    type Agent = WordCounter;

    fn open(&self, how: Opening, route: &InitializeParams, sink: Sink) -> Result<WordCounter, Refusal> {
        match how {
            Opening::Create => Ok(WordCounter { sink, cwd: route.cwd.clone(), turn: 0 }),
            // Nothing is stored.
            Opening::Resume => Err(Refusal::session_not_found(sink.session())),
        }
    }
}

impl Agent for WordCounter {
    fn prompt(&mut self, content_blocks: Json<'_>, reply: PromptResponder) {
        let texts = content_blocks.elements().filter_map(|block| block.member("text").and_then(Json::as_str));
        let words: usize = texts.map(|text| text.to_string_lossy().split_whitespace().count()).sum();
        self.turn += 1;
        let id = format!("{}-{}", self.sink.session(), self.turn);
        // It fails only where a client that does not read is to be let down, which is not how we serve.
        let _ = self.take_turn(&id, &content_blocks, reply, &format!("{words} words"));
    }

    fn working_directory(&mut self, change: Option<&JsonString>) -> Result<JsonString, Refusal> {
        change.map_or_else(|| Ok(self.cwd.clone()), |path| Err(Refusal::no_directory(path)))
    }
}

impl WordCounter {
    /// What a client waits for: the receipt of the message, the answer, the end of the turn, and rest.
    fn take_turn(&self, id: &str, content: &Json<'_>, reply: PromptResponder, answer: &str) -> Result<(), SinkError> {
        let tell = |kind, data: Value| self.sink.session_event(&NewEvent::new(kind, &data));
        let said: Value = content.parse().unwrap_or_default();
        let message = json!({ "role": "user", "id": id, "source": { "kind": "user" }, "content": said });
        tell("agent/inbox/spliced", json!({ "target": "next-turn", "start": 0, "inserted": [message] }))?;
        self.sink.set_running(true);
        tell("turn/start", json!({ "turn": self.turn }))?;
        reply.accept(id);
        let content = json!([{ "type": "text", "text": answer }]);
        let message = json!({
            "role": "assistant", "id": format!("{id}-answer"), "source": { "kind": "word-counter" }, "content": content,
        });
        let data = json!({ "turn": self.turn, "step": 1, "message": message });
        self.sink.session_event(&NewEvent::new("assistant/message", &data).append())?;
        tell("turn/end", json!({ "turn": self.turn, "reason": { "kind": "completed" } }))?;
        self.sink.set_running(false);
        Ok(())
    }
}

fn main() -> ExitCode {
    match serve_stdio(WordCounters, ServeOptions::default()) {
        Ok(served) => ExitCode::from(served.exit_code()),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
