//! What stands for the model: it answers by the directives in the prompt, and echoes all others.

use std::time::Duration;

use dsh_wire::json::{Json, JsonBuf, JsonStr, JsonString};
use dsh_wire::wire::stream::TokenUsage;

use super::text;

/// Prompts longer than this are answered with their length, in characters.
const ECHO_LIMIT: usize = 10_000;

/// The most that a prompt can ask for: calls in one message, and characters of text.
const MOST_TOOLS: usize = 64;
const MOST_TEXT: usize = 16 << 20;

/// Chinese, emoji, combining marks, line separators, control characters.
const UNICODE_SAMPLE: &str = "\u{4f60}\u{597d}\u{ff0c}\u{4e16}\u{754c} \u{2014} \u{1f600} \
    \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} e\u{301} \u{e9} line\u{2028}sep para\u{2029}sep nul\0tab\tend";

/// How long the client may take to answer a request.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What `@long` repeats.
const FILLER: &str = "All work and no play makes the fake model a dull one. ";

/// One answer of the model.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) thinking: Option<String>,
    pub(super) text: JsonString,
    pub(super) tools: Vec<ToolUse>,
    pub(super) max_tokens: bool,
    /// Before the first piece, and before each one.
    pub(super) delay: Duration,
    pub(super) piece_delay: Duration,
    /// In about how many pieces the answer comes.
    pub(super) pieces: usize,
    /// An HTTP status instead of an answer, and how often; always, if `None`.
    pub(super) status: Option<(u16, Option<u32>)>,
    /// The stream breaks after the text.
    pub(super) fault: Option<Fault>,
    /// Done before the answer.
    pub(super) acts: Vec<Act>,
    pub(super) usage: TokenUsage,
}

/// What is done beside an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Tells so many events of this size.
    Flood { events: u64, bytes: usize },
    /// Ends the process at once.
    Exit(i32),
    /// Has the process killed.
    Kill,
    /// Writes a line to stderr.
    Stderr(String),
    /// Panics in the middle of the turn.
    Panic,
    /// Asks the client; the answer is its answer.
    Ask { method: String, params: JsonBuf, within: Duration },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolUse {
    pub(super) name: String,
    /// JSON.
    pub(super) arguments: String,
}

/// How a stream breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Error,
    Cut,
    Garbage,
    /// Nothing comes at all.
    Empty,
}

impl Reply {
    pub(super) fn text(text: impl Into<JsonString>) -> Self {
        Self {
            thinking: None,
            text: text.into(),
            tools: Vec::new(),
            max_tokens: false,
            delay: Duration::ZERO,
            piece_delay: Duration::ZERO,
            pieces: 3,
            status: None,
            fault: None,
            acts: Vec::new(),
            usage: TokenUsage::new(100, 20),
        }
    }

    fn act(act: Act, text: &str) -> Self {
        Self { acts: [act].into(), ..Self::text(text) }
    }

    fn tools(name: &str, arguments: &str, count: usize) -> Self {
        let tool = ToolUse { name: name.into(), arguments: arguments.into() };
        Self { tools: vec![tool; count], ..Self::text("") }
    }
}

/// The answer to a prompt in the step that many steps after it.
pub(super) fn answer(prompt: JsonStr<'_>, step: usize) -> Reply {
    choose(compile(prompt), step)
}

/// The reply of this step; the last one where there are not so many, unless it would go on for ever.
pub(super) fn choose(mut replies: Vec<Reply>, step: usize) -> Reply {
    if step >= replies.len() && replies.last().is_some_and(|last| !last.tools.is_empty()) {
        return Reply::text("Nothing more to do.");
    }
    replies.truncate(step + 1);
    replies.pop().unwrap_or_else(|| Reply::text(""))
}

fn compile(prompt: JsonStr<'_>) -> Vec<Reply> {
    let text = prompt.to_string_lossy();
    let text = text.trim();
    if !text.starts_with('@') {
        return match text.chars().count() {
            len if len > ECHO_LIMIT => [Reply::text(format!("echo of {len} characters").as_str())].into(),
            _ => [Reply::text(text::echo(prompt))].into(),
        };
    }
    match split_directives(text).as_slice() {
        [only] => directive(only, prompt),
        parts => parts.iter().flat_map(|part| directive(part, prompt).into_iter().next()).collect(),
    }
}

/// Splits `@bash one && @say two`.
fn split_directives(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut from = 0;
    while let Some(at) = rest.get(from..).and_then(|tail| tail.find(" && @")).map(|at| at + from) {
        let behind = rest.get(at + " && ".len()..).unwrap_or_default();
        if behind.get(1..2).is_some_and(|c| c.chars().all(|c| c.is_ascii_lowercase())) {
            parts.push(rest.get(..at).unwrap_or_default());
            (rest, from) = (behind, 0);
        } else {
            from = at + 1;
        }
    }
    parts.push(rest);
    parts
}

fn directive(text: &str, whole: JsonStr<'_>) -> Vec<Reply> {
    let cut = |text: &str| -> (String, String) {
        let (head, tail) = text.split_once(' ').unwrap_or((text, ""));
        (head.into(), tail.trim().into())
    };
    let (word, rest) = cut(text.trim());
    let (head, tail) = cut(&rest);
    let or = |text: &str, otherwise: &str| JsonString::from(if text.is_empty() { otherwise } else { text });
    let seconds = |otherwise: f64| {
        let seconds = head.parse().ok().filter(|_| !head.is_empty()).unwrap_or(otherwise);
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    };
    let count = |otherwise: usize, most| head.parse().unwrap_or(otherwise).min(most);
    let last = || Reply::text("The tool has answered.");
    let broken = |fault| Reply { fault: Some(fault), ..Reply::text("half an answer before the fault") };
    match word.as_str() {
        "@say" => [Reply::text(rest.as_str())].into(),
        "@think" => {
            let (thought, answer) = rest.split_once('|').unwrap_or((&rest, ""));
            let thinking = Some(thought.trim().to_owned()).filter(|thought| !thought.is_empty());
            [Reply { thinking, ..Reply::text(or(answer.trim(), "Thought about it.")) }].into()
        }
        "@bash" => [Reply::tools("bash", &command(&rest), 1), last()].into(),
        "@tools" => [Reply::tools("bash", &command(&tail), count(1, MOST_TOOLS)), last()].into(),
        "@tool" => {
            let arguments = if Json::new(&tail).is_ok() { tail.as_str() } else { "{}" };
            [Reply::tools(&head, arguments, 1), last()].into()
        }
        "@long" => {
            let text: String = FILLER.chars().cycle().take(count(20_000, MOST_TEXT)).collect();
            [Reply { pieces: 50, ..Reply::text(text.as_str()) }].into()
        }
        "@maxtokens" => [Reply { max_tokens: true, ..Reply::text(or(&rest, "This answer is cut")) }].into(),
        "@unicode" => [Reply { pieces: 5, ..Reply::text(UNICODE_SAMPLE) }].into(),
        "@slow" => [Reply { delay: seconds(1.0), ..Reply::text(or(&tail, "Slow answer.")) }].into(),
        "@drip" => {
            let text = or(&tail, "This answer arrives in small drops.");
            [Reply { piece_delay: seconds(0.2), pieces: 8, ..Reply::text(text) }].into()
        }
        "@error" => {
            let status = Some((head.parse().unwrap_or(500), tail.parse().ok()));
            [Reply { status, ..Reply::text("recovered") }].into()
        }
        "@sseerror" => [Reply { fault: Some(Fault::Error), ..Reply::text("half an ans") }].into(),
        "@cut" => [broken(Fault::Cut)].into(),
        "@garbage" => [broken(Fault::Garbage)].into(),
        "@empty" => [broken(Fault::Empty)].into(),
        "@agent" => [Reply::tools("subagent", &agent(&rest), 1), last()].into(),
        "@agents" => [Reply::tools("subagent", &agent(&tail), head.parse().unwrap_or(1)), last()].into(),
        "@flood" => {
            let act = Act::Flood { events: head.parse().unwrap_or(1000), bytes: tail.parse().unwrap_or(100) };
            [Reply::act(act, "The flood is over.")].into()
        }
        "@die" => [Reply::act(Act::Exit(head.parse().unwrap_or(1)), "")].into(),
        "@kill" => [Reply::act(Act::Kill, "")].into(),
        "@panic" => [Reply::act(Act::Panic, "")].into(),
        "@stderr" => [Reply::act(Act::Stderr(rest.clone()), "Written to stderr.")].into(),
        "@ask" => {
            let params = JsonBuf::new(&tail).unwrap_or_else(|_| Json::EMPTY_OBJECT.to_buf());
            [Reply::act(Act::Ask { method: head, params, within: ANSWER_WITHIN }, "")].into()
        }
        // Not known: it is a prompt like any other.
        _ => [Reply::text(text::echo(whole))].into(),
    }
}

/// The arguments of a sub-agent call, written as Python does.
fn agent(prompt: &str) -> String {
    format!("{{\"description\": \"fake child\", \"prompt\": {}}}", JsonString::from(prompt).as_json_str().get())
}

/// The arguments of a bash call, written as Python does.
fn command(command: &str) -> String {
    format!("{{\"command\": {}}}", JsonString::from(command).as_json_str().get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(prompt: &str, step: usize) -> Reply {
        answer(JsonString::from(prompt).as_json_str(), step)
    }

    #[test]
    fn prompts_are_echoed() {
        assert_eq!(reply(" hello ", 0).text, "echo: hello".into());
        assert_eq!(reply("@nonsense", 0).text, "echo: @nonsense".into());
        assert_eq!(reply(&"x".repeat(10_001), 0).text, "echo of 10001 characters".into());
    }

    #[test]
    fn directives_take_steps() {
        let calls = ToolUse { name: "bash".into(), arguments: r#"{"command": "echo \"a\""}"#.into() };
        let prompt = r#"@bash echo "a" && @say done && not"#;
        assert_eq!(reply(prompt, 0).tools, [calls]);
        assert_eq!(reply(prompt, 1).text, "done && not".into());
        assert_eq!(reply(prompt, 2).text, "done && not".into());
        assert_eq!(reply("@bash true", 1).text, "The tool has answered.".into());
        assert_eq!(reply("@bash true && @bash false", 2).text, "Nothing more to do.".into());
        assert_eq!(reply("@error 429 2", 0).status, Some((429, Some(2))));
        assert_eq!(reply("@think a | b", 0).thinking.as_deref(), Some("a"));
        let child = ToolUse {
            name: "subagent".into(),
            arguments: r#"{"description": "fake child", "prompt": "@say \"x\""}"#.into(),
        };
        assert_eq!(reply(r#"@agents 2 @say "x""#, 0).tools, [child.clone(), child]);
        assert_eq!(reply("@flood 3 9", 0).acts, [Act::Flood { events: 3, bytes: 9 }]);
        assert_eq!(reply("@die 3", 0).acts, [Act::Exit(3)]);
    }
}
