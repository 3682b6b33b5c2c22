//! The agent of a session: plays what the script or the directives of the prompt say, and tells what the official
//! runtime would.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use dsh_wire::json::{JsonBuf, JsonStr, JsonString, Kind};
use dsh_wire::server::NewEvent;
use dsh_wire::stdio::RequestError;
use dsh_wire::stdio::turns::{
    Answer, Failure, Message, Step, SubAgent, ToolError, ToolOutput, ToolUse, TurnAgent, TurnError,
};

use super::event;
use super::model::{Act, Fault, Reply};
use super::script::Script;
use super::store::Past;
use super::{shell, text};

/// Retries of a model call before it counts as failed, and the pause before the first, in milliseconds; each next one
/// is twice as long. It is a fraction, as the official runtime's are.
const RETRIES: u32 = 5;
const FIRST_PAUSE: f64 = 511.7;

/// How long a sub-agent leaves its parent to come to rest. The official one takes such a time to get ready.
const HEAD_START: Duration = Duration::from_millis(250);

/// What begins the texts that the runtime adds by itself.
const NOTES: [&str; 3] = ["Current runtime context", "The working directory ", "Your parent agent id is "];

/// The agent of one session.
pub(super) struct Player {
    script: Arc<Script>,
    /// Whether it runs commands.
    shell: bool,
    told: Told,
    /// What the model answers to, and how often it has done so.
    prompt: JsonString,
    answered: usize,
    /// The type of a block in the conversation that no model can be given; no call succeeds any more.
    unsupported: Option<String>,
    /// How often an HTTP error was played, by prompt and step.
    failures: BTreeMap<(JsonString, usize), u32>,
    /// Model calls so far.
    calls: u32,
    /// The last event that the next model call takes in.
    through: u64,
    /// The sub-agent that was started last.
    last_agent: Option<JsonString>,
    /// Sub-agents above it.
    depth: u32,
}

/// Which of the events that come once have come.
#[derive(Debug)]
struct Told {
    system: bool,
    title: bool,
    /// The directory that the last context note named.
    context: Option<String>,
    /// Why the next request has a header, if it has one.
    header: Option<&'static str>,
}

impl Player {
    pub(super) fn new(script: &Arc<Script>, shell: bool, past: Option<&Past>) -> Self {
        let header = if past.is_some_and(|past| past.has_header) { "resume" } else { "initial" };
        let context = past.and_then(|past| past.context.as_ref());
        Self {
            script: script.clone(),
            shell,
            told: Told {
                system: past.is_some_and(|past| past.has_system),
                title: past.is_some_and(|past| past.has_title),
                context: context.map(|text| text.as_json_str().to_string_lossy().into_owned()),
                header: Some(header),
            },
            prompt: "".into(),
            answered: 0,
            unsupported: None,
            failures: BTreeMap::new(),
            calls: 0,
            through: 0,
            last_agent: None,
            depth: 0,
        }
    }
}

impl TurnAgent for Player {
    fn begin_step(&mut self, step: &mut Step<'_>) {
        if !std::mem::replace(&mut self.told.system, true) {
            step.tell(&NewEvent::new("system/message", &event::system(step.id(), &step.new_id())).append());
        }
        let cwd = step.cwd().to_string_lossy().into_owned();
        if !step.messages().is_empty() && self.told.context.as_ref() != Some(&cwd) {
            let id = step.new_id();
            step.add_message(event::context(id, &cwd));
            self.told.context = Some(cwd);
        }
    }

    fn answer(&mut self, step: &mut Step<'_>) -> Result<Answer, TurnError> {
        self.open_request(step);
        if let Some(new) = newest(step.messages()) {
            (self.prompt, self.answered) = (new, 0);
        }
        let outcome = self.call(step);
        self.answered += 1;
        outcome
    }

    fn use_tool(&mut self, step: &mut Step<'_>, call: &ToolUse) -> Result<ToolOutput, ToolError> {
        match call.name() {
            "bash" if !self.shell => Err("Error: commands are switched off (--no-shell)".into()),
            "bash" => {
                let command = call.argument("command").filter(|command| command.as_json().kind() == Kind::String);
                let Some(command) = command else {
                    let text = "Error: invalid arguments: \"command\" must be a string";
                    return Err(ToolError::new(text, "ToolArgsError", "INVALID_ARGS"));
                };
                shell::run(&plain(&command), &step.cwd(), |time| step.pause(time).is_ok())
                    .map(ToolOutput::from)
                    .map_err(|error| format!("Error: cannot run the command: {error}").into())
            }
            "subagent" if self.depth > 0 => Err("Error: subagent depth 2 exceeds maxDepth 1".into()),
            "subagent" => self.start_agent(step, call),
            _ => Err(ToolError::unknown(call)),
        }
    }
}

impl Player {
    /// Tells what goes with a request: the header when it is new, and the title of the session.
    fn open_request(&mut self, step: &Step<'_>) {
        let route = step.route();
        let header = self.told.header.take();
        if let Some(reason) = header {
            // A sub-agent is given the effort of its parent.
            let effort_is_given = self.depth > 0 || route.reasoning_effort.is_some();
            step.tell(&NewEvent::new("request/header", &event::header(route, effort_is_given, reason)));
        }
        if header == Some("initial") {
            step.tell(&NewEvent::new("request/context", &event::request_context(route)));
        }
        // The message that begins a turn comes last of those that waited, and the context behind it.
        let first = step.messages().iter().zip(step.message_seqs()).rfind(|(message, _)| event::is_for_title(message));
        if step.number() == 1
            && !self.told.title
            && let Some((message, seq)) = first
            && let Some(title) = title_of(message)
        {
            step.tell(&NewEvent::new("session/title", &event::title(&title, *seq)));
            self.told.title = true;
        }
        let unsupported = step.messages().iter().filter(|message| message.is_prompt()).find_map(event::unsupported);
        self.unsupported = self.unsupported.take().or(unsupported);
        self.through = step.last_seq();
    }

    /// One answer of the model, retries included.
    fn call(&mut self, step: &Step<'_>) -> Result<Answer, TurnError> {
        if let Some(kind) = &self.unsupported {
            let message = format!("DeepSeek Messages cannot represent user/tool-result content {kind}");
            return Err(Failure::new(message, "UNSUPPORTED_CONTENT").into());
        }
        let mut reply = self.script.answer(&self.prompt, self.answered);
        for act in std::mem::take(&mut reply.acts) {
            play(step, act, &mut reply)?;
        }
        let retry_id = step.new_id();
        let mut retries = 0;
        loop {
            step.pause(reply.delay)?;
            let Some((failure, passes)) = self.failure(&reply) else { return self.receive(step, reply) };
            if !passes || retries == RETRIES {
                return Err(failure.into());
            }
            step.attempt(&Answer::new(), &failure);
            let delay = FIRST_PAUSE * f64::from(1 << retries);
            retries += 1;
            let retry = event::retry(&retry_id, step.id(), step.route(), retries, delay, &failure);
            step.tell(&NewEvent::new("llm/retry", &retry));
            step.pause(Duration::from_secs_f64(delay / 1000.0))?;
            let started = event::retry_started(&retry_id, step.id(), retries);
            self.through = step.tell(&NewEvent::new("llm/retry-started", &started));
        }
    }

    /// How the call fails before anything comes, if it does, and whether a retry may help.
    fn failure(&mut self, reply: &Reply) -> Option<(Failure, bool)> {
        if reply.fault == Some(Fault::Empty) {
            return Some((Failure::new("DeepSeek Messages answer has no content", "EMPTY_RESPONSE"), true));
        }
        let (status, times) = reply.status.filter(|(status, _)| *status != 200)?;
        let played = self.failures.entry((self.prompt.clone(), self.answered)).or_default();
        *played += 1;
        if times.is_some_and(|times| *played > times) {
            return None;
        }
        let (code, passes) = code_of(status);
        Some((Failure::new(format!("fake error {status}"), code).with_status(status), passes))
    }

    /// Waits for the pieces of an answer.
    fn receive(&mut self, step: &Step<'_>, reply: Reply) -> Result<Answer, TurnError> {
        let began = step.now();
        let pieces = text::pieces(reply.text.as_json_str(), reply.pieces);
        let count = pieces.len() + usize::from(reply.thinking.is_some());
        step.pause(reply.piece_delay.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX)))?;
        let mut answer = Answer::new();
        let thinking = reply.thinking.as_deref().map(JsonString::from);
        for piece in thinking.iter().flat_map(|text| text::pieces(text.as_json_str(), reply.pieces)) {
            answer.push_thinking(began, piece);
        }
        let gap = u64::try_from(reply.piece_delay.as_millis()).unwrap_or(0);
        for (index, piece) in (0..).zip(pieces) {
            answer.push_text(began.saturating_add(gap.saturating_mul(index)), piece);
        }
        self.calls += 1;
        for (place, tool) in reply.tools.iter().enumerate() {
            let arguments = self.complete(&tool.arguments);
            let pieces = text::pieces(arguments.as_json_str(), reply.pieces);
            let call = ToolUse::new(&tool.name, arguments).in_pieces(pieces);
            answer = answer.tool(call.with_id(format!("toolu_fake_{:04}_{place}", self.calls)));
        }
        let delivered = event::delivered(step.session(), self.through);
        step.tell(&NewEvent::new("session-log-deepseek/delivery-accepted", &delivered));
        if let Some(fault) = reply.fault {
            return Err(TurnError::Failed { failure: failure_of(fault), partial: Box::new(answer) });
        }
        let answer = answer.usage(reply.usage).replay_state(event::replay_state(step.route(), &reply));
        Ok(if reply.max_tokens { answer.cut_at_max_tokens() } else { answer })
    }

    /// Puts the last sub-agent in where the arguments of a tool name it.
    fn complete(&self, arguments: &str) -> JsonString {
        let agent = self.last_agent.as_ref().map(JsonString::to_string).unwrap_or_default();
        arguments.replace("$AGENT", &agent).into()
    }

    fn start_agent(&mut self, step: &Step<'_>, call: &ToolUse) -> Result<ToolOutput, ToolError> {
        let argument = |name| call.argument(name).filter(|value| value.as_json().kind() == Kind::String);
        let (Some(prompt), Some(label)) = (argument("prompt"), argument("description")) else {
            return Err(ToolError::bad_arguments());
        };
        let player = Self { depth: self.depth + 1, ..Self::new(&self.script, self.shell, None) };
        let prompt = prompt.as_json().as_str().map(JsonStr::to_buf).unwrap_or_else(|| "".into());
        let note = format!("Your parent agent id is {}.", step.session());
        let agent = SubAgent::new(player, prompt).and_text(note).label(plain(&label)).head_start(HEAD_START);
        let id = step.start(agent);
        let text = format!("started subagent {id}");
        self.last_agent = Some(id);
        Ok(text.into())
    }
}

/// Does what a directive says beside the answer, or for it.
fn play(step: &Step<'_>, act: Act, reply: &mut Reply) -> Result<(), TurnError> {
    match act {
        Act::Flood { events, bytes } => {
            let data = event::flood(bytes);
            for _ in 0..events {
                if step.is_released() {
                    return Err(TurnError::Released);
                }
                step.tell(&NewEvent::new("dsh-wire/flood", &data));
            }
        }
        Act::Exit(code) => std::process::exit(code),
        Act::Kill => {
            // Nothing comes after it.
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
        Act::Stderr(text) => drop(writeln!(std::io::stderr(), "{text}")),
        Act::Panic => panic!("as the prompt says"),
        Act::Ask { method, params, within } => {
            reply.text = match step.request(&method, &params, within) {
                Ok(result) => format!("the client answered: {}", result.as_json().get()).into(),
                Err(RequestError::Refused(error)) => format!("the client refused: {error}").into(),
                Err(error) => error.to_string().into(),
            };
        }
    }
    Ok(())
}

/// The newest text that a user wrote; where there is none, the newest note.
fn newest(messages: &[Message]) -> Option<JsonString> {
    let texts = || messages.iter().flat_map(Message::texts).rev();
    let is_note = |text: &JsonStr<'_>| {
        let text = text.to_string_lossy();
        NOTES.iter().any(|note| text.trim_start().starts_with(note))
    };
    texts().find(|text| !is_note(text)).or_else(|| texts().next()).map(JsonStr::to_buf)
}

fn title_of(message: &Message) -> Option<JsonString> {
    let texts: Vec<_> = message.texts().map(JsonStr::to_buf).collect();
    text::title(text::join(&texts).as_json_str())
}

/// What a JSON string says; other JSON as it is.
fn plain(json: &JsonBuf) -> String {
    let json = json.as_json();
    json.as_str().map_or_else(|| json.get().into(), |text| text.to_string_lossy().into_owned())
}

/// The official code of an HTTP status, and whether a retry may help.
fn code_of(status: u16) -> (&'static str, bool) {
    match status {
        401 | 403 => ("AUTH", false),
        429 => ("RATE_LIMIT", true),
        500.. => ("SERVER", true),
        _ => ("INVALID_REQUEST", false),
    }
}

fn failure_of(fault: Fault) -> Failure {
    match fault {
        Fault::Error => Failure::new("fake stream error", "INVALID_REQUEST"),
        Fault::Cut => Failure::new("DeepSeek Messages stream ended before message_stop", "STREAM_CLOSED"),
        Fault::Garbage => Failure::new("DeepSeek Messages SSE contains invalid JSON", "MALFORMED_RESPONSE"),
        Fault::Empty => Failure::new("DeepSeek Messages answer has no content", "EMPTY_RESPONSE"),
    }
}
