//! The recordings of the official runtime, held against the server.

use dsh_wire::json::Json;
use dsh_wire::server::{Opening, Refusal, Server, Task};

use super::drain;
use crate::recording::{self, Direction};

/// Texts that belong to the server, not to the host or to JavaScript.
const RULES: [&str; 9] = [
    "SDK server is not initialized",
    "SDK session is already open",
    "initialize maxTokens",
    "initialize reasoningEffort",
    "session/resume requires",
    "session/wait requires",
    "unknown DeepSeek Harness SDK runtime method",
    "unknown SDK session",
    "working-directory ",
];

/// Every refusal by rule that the official runtime was recorded with comes from ours too, and no other.
#[test]
fn the_recorded_refusals() {
    let mut seen = 0;
    for recording in recording::all() {
        let refusals = |lines: Vec<String>| {
            let mut refusals: Vec<_> = lines.iter().filter_map(|line| refusal(line)).collect();
            refusals.sort();
            refusals
        };
        let official = recording.lines(Direction::ServerToClient);
        let official = refusals(official.map(|row| String::from_utf8_lossy(&row.bytes).into_owned()).collect());
        // Ids that JavaScript writes in another way than they came cannot be told apart here.
        if ["ids", "resume-4-occupied-by-other-process"].contains(&&*recording.name) {
            continue;
        }
        // These runs found a session in the store.
        let stored = ["resume-2", "resume-3", "resume-5"].iter().any(|name| recording.name.starts_with(name));
        let mut server = Server::with_seed(1);
        let mut lines = Vec::new();
        for row in &recording.rows {
            match row.dir {
                Direction::ClientToServer => server.push(&row.wire_bytes()),
                // Whoever has been heard has had the time to do all before it.
                Direction::ServerToClient => {
                    while let Some(task) = server.next_task() {
                        agree(&mut server, task, stored);
                    }
                    lines.extend(drain(&mut server));
                }
                Direction::Stderr => {}
            }
        }
        assert_eq!(refusals(lines), official, "{}", recording.name);
        seen += official.len();
    }
    assert!(seen > 100, "only {seen} refusals");
}

fn refusal(line: &str) -> Option<(String, String)> {
    let frame = Json::new(line).ok()?;
    let message = frame.member("error")?.member("message")?.as_str()?.to_string_lossy().into_owned();
    let rule = RULES.iter().any(|rule| message.starts_with(rule));
    rule.then(|| Some((frame.member("id")?.get().into(), message)))?
}

/// A host that is content with what the official runtime is content with.
fn agree(server: &mut Server, task: Task, stored: bool) {
    match task {
        Task::Route { route, reply } => {
            let good = route.provider.as_json_str() == "deepseek-official"
                && !["", "3", "undefined"].iter().any(|model| route.model.as_json_str() == **model)
                && !["bogus", "none"].iter().any(|effort| route.reasoning_effort == Some((*effort).into()));
            server.routed(reply, if good { Ok(()) } else { Err("bad route".into()) });
        }
        Task::Open { session, how: Opening::Resume, .. } => {
            let found = stored && ["keep", "other", "k"].iter().any(|id| session.as_json_str() == **id);
            let outcome = if found { Ok(()) } else { Err(Refusal::session_not_found(&session)) };
            server.opened(&session, outcome);
        }
        Task::Open { session, .. } if stored && session.as_json_str() == "keep" => {
            server.opened(&session, Err(Refusal::session_exists(&session)));
        }
        Task::Open { session, .. } => server.opened(&session, Ok(())),
        Task::Prompt { reply, .. } => server.prompted(reply, Ok("m".into())),
        Task::WorkingDirectory { reply, .. } => server.directory(reply, Ok("/".into())),
        Task::Release { session } => server.released(&session, Ok(())),
        Task::Answered { .. } => panic!("nothing was asked"),
    }
}
