//! The server without any input or output: each rule of the protocol, by its official text. Every conversation is held
//! twice, its lines whole and one byte at a time.

mod end;
mod recorded;

use dsh_wire::json::{Json, JsonString};
use dsh_wire::server::{Finished, NewEvent, Opening, Phase, Refusal, Server, Task};
use dsh_wire::wire::StopReason;

const GOOD: &str = r#""cwd":"/","provider":"p","model":"m""#;

/// A server and a client that holds a scripted conversation with it.
struct Script {
    server: Server,
    bytewise: bool,
}

#[track_caller]
fn check(hold: impl Fn(&mut Script)) {
    for bytewise in [false, true] {
        hold(&mut Script { server: Server::with_seed(1), bytewise });
    }
}

/// The same, after a good `initialize`.
#[track_caller]
fn check_ready(hold: impl Fn(&mut Script)) {
    check(|script| {
        script.initialize();
        hold(script);
    });
}

impl Script {
    /// The client writes a line.
    fn says(&mut self, line: &str) {
        let line = format!("{line}\n");
        let size = if self.bytewise { 1 } else { line.len() };
        line.as_bytes().chunks(size).for_each(|bytes| self.server.push(bytes));
    }

    fn calls(&mut self, id: u32, method: &str, params: &str) {
        self.says(&format!(r#"{{"id":{id},"method":"{method}","params":{params}}}"#));
    }

    #[track_caller]
    fn initialize(&mut self) {
        self.calls(0, "initialize", &format!("{{{GOOD}}}"));
        let Some(Task::Route { reply, .. }) = self.server.next_task() else { panic!("no route") };
        self.server.routed(reply, Ok(()));
        self.heard();
    }

    /// All lines written since the last look.
    fn heard(&mut self) -> Vec<String> {
        assert!(self.server.next_task().is_none(), "a task is left");
        self.output()
    }

    fn output(&mut self) -> Vec<String> {
        drain(&mut self.server).iter().map(|line| line.replace(r#""jsonrpc":"2.0","#, "")).collect()
    }

    #[track_caller]
    fn hears(&mut self, lines: &[&str]) {
        assert_eq!(self.heard(), lines);
    }

    #[track_caller]
    fn is_refused(&mut self, id: u32, message: &str) {
        let message = JsonString::from(message);
        self.hears(&[&format!(r#"{{"id":{id},"error":{{"code":-32603,"message":{}}}}}"#, message.as_json_str().get())]);
    }

    #[track_caller]
    fn opens(&mut self, session: &str, how: Opening, outcome: Result<(), Refusal>) {
        let Some(Task::Open { session: id, how: this, .. }) = self.server.next_task() else { panic!("no opening") };
        assert_eq!((&id, this), (&session.into(), how));
        self.server.opened(&id, outcome);
    }

    /// Opens a session by a look at its directory.
    #[track_caller]
    fn session(&mut self, session: &str) -> JsonString {
        self.calls(90, "session/working-directory/get", &format!(r#"{{"sessionId":"{session}"}}"#));
        self.opens(session, Opening::Create, Ok(()));
        self.answers_directory("/");
        self.hears(&[r#"{"id":90,"result":{"cwd":"/"}}"#]);
        session.into()
    }

    #[track_caller]
    fn answers_directory(&mut self, cwd: &str) {
        let Some(Task::WorkingDirectory { reply, .. }) = self.server.next_task() else { panic!("no directory") };
        self.server.directory(reply, Ok(cwd.into()));
    }

    #[track_caller]
    fn answers_prompt(&mut self, session: &str, message: &str) {
        let Some(Task::Prompt { session: id, reply, .. }) = self.server.next_task() else { panic!("no prompt") };
        assert_eq!(id, session.into());
        self.server.prompted(reply, Ok(message.into()));
    }

    #[track_caller]
    fn releases(&mut self, session: &str, outcome: Result<(), Refusal>) {
        let Some(Task::Release { session: id }) = self.server.next_task() else { panic!("no release") };
        assert_eq!(id, session.into());
        self.server.released(&id, outcome);
    }
}

/// Takes all lines that wait to be written.
fn drain(server: &mut Server) -> Vec<String> {
    let mut bytes = Vec::new();
    while !server.outgoing().is_empty() {
        let output = server.outgoing();
        bytes.extend_from_slice(output.bytes());
        let len = output.bytes().len();
        output.consume(len);
    }
    String::from_utf8(bytes).unwrap().lines().map(String::from).collect()
}

fn prompt(session: &str) -> String {
    format!(r#"{{"sessionId":"{session}","contentBlocks":[]}}"#)
}

fn named(session: &str) -> String {
    format!(r#"{{"sessionId":"{session}"}}"#)
}

#[test]
fn initialize_is_checked_in_order() {
    let effort = "initialize reasoningEffort must be a non-empty string";
    let tokens = "initialize maxTokens must be a positive safe integer";
    let cwd = "initialize requires a cwd string";
    for (members, message) in [
        (r#""reasoningEffort":"""#, effort),
        (r#""reasoningEffort":5"#, effort),
        (r#""reasoningEffort":null,"maxTokens":0"#, effort),
        (r#""maxTokens":0"#, tokens),
        (r#""maxTokens":-1"#, tokens),
        (r#""maxTokens":1.5,"cwd":5"#, tokens),
        (r#""maxTokens":"5""#, tokens),
        (r#""maxTokens":null"#, tokens),
        (r#""maxTokens":true"#, tokens),
        (r#""maxTokens":9007199254740992"#, tokens),
        (r#""cwd":5"#, cwd),
        (r#""cwd":null"#, cwd),
    ] {
        check(|script| {
            script.calls(1, "initialize", &format!("{{{GOOD},{members}}}"));
            script.is_refused(1, message);
        });
    }
    check(|script| {
        script.says(r#"{"id":1,"method":"initialize","params":[1]}"#);
        script.is_refused(1, cwd);
    });
}

#[test]
fn initialize_hands_the_route_to_the_host() {
    for (members, expected) in [
        (r#""cwd":"","provider":7,"maxTokens":5.0"#, ("", "7", "undefined", None, Some(5))),
        (r#""cwd":"x","model":"","provider":null,"reasoningEffort":"max""#, ("x", "null", "", Some("max"), None)),
        (r#""cwd":"x","maxTokens":9007199254740991"#, ("x", "undefined", "undefined", None, Some((1 << 53) - 1))),
    ] {
        check(|script| {
            script.calls(1, "initialize", &format!("{{{members}}}"));
            let Some(Task::Route { route, reply }) = script.server.next_task() else { panic!("no route") };
            let (cwd, provider, model, effort, tokens) = expected;
            assert_eq!([&route.cwd, &route.provider, &route.model], [&cwd.into(), &provider.into(), &model.into()]);
            assert_eq!((route.reasoning_effort, route.max_tokens), (effort.map(JsonString::from), tokens));
            script.server.routed(reply, Err(Refusal::unknown_provider(&"nobody".into())));
            script.is_refused(1, r#"no adapter registered for provider "nobody""#);
            script.calls(2, "session/prompt", &prompt("s"));
            script.is_refused(2, "SDK server is not initialized");
        });
    }
}

#[test]
fn the_last_good_initialize_is_in_force() {
    check_ready(|script| {
        script.calls(1, "initialize", r#"{"cwd":"/bad","provider":"p","model":"m"}"#);
        let Some(Task::Route { reply, .. }) = script.server.next_task() else { panic!("no route") };
        script.server.routed(reply, Err("not that one".into()));
        script.is_refused(1, "not that one");
        script.calls(2, "session/prompt", &prompt("s"));
        let Some(Task::Open { route, session, .. }) = script.server.next_task() else { panic!("no opening") };
        assert_eq!(route.cwd, "/".into());
        script.server.opened(&session, Err("no".into()));
        script.calls(3, "initialize", r#"{"cwd":"/second","provider":"p","model":"m"}"#);
        let Some(Task::Route { reply, .. }) = script.server.next_task() else { panic!("no route") };
        script.server.routed(reply, Ok(()));
        script.calls(4, "session/prompt", &prompt("s"));
        let Some(Task::Open { route, .. }) = script.server.next_task() else { panic!("no opening") };
        assert_eq!(route.cwd, "/second".into());
    });
}

#[test]
fn nothing_before_initialize() {
    for (method, params, message) in [
        ("session/prompt", "{}", "SDK server is not initialized"),
        ("session/resume", r#"{"sessionId":"s"}"#, "SDK server is not initialized"),
        ("session/resume", r#"{"sessionId":""}"#, "session/resume requires a non-empty sessionId string"),
        ("session/resume", "[]", "session/resume requires a non-empty sessionId string"),
        ("session/wait", r#"{"sessionId":""}"#, "SDK server is not initialized"),
        ("session/wait", r#"{"sessionId":5}"#, "session/wait requires a sessionId string"),
        ("session/working-directory/get", r#"{"sessionId":"s"}"#, "SDK server is not initialized"),
        ("session/working-directory/get", "{}", "working-directory requests require a non-empty sessionId"),
        ("session/working-directory/set", r#"{"sessionId":"s"}"#, "working-directory set requires a path string"),
        (
            "session/working-directory/set",
            r#"{"path":"/"}"#,
            "working-directory requests require a non-empty sessionId",
        ),
        ("nope", "{}", "unknown DeepSeek Harness SDK runtime method: nope"),
        ("", "{}", "unknown DeepSeek Harness SDK runtime method: "),
        ("Initialize", "{}", "unknown DeepSeek Harness SDK runtime method: Initialize"),
    ] {
        check(|script| {
            script.calls(1, method, params);
            script.is_refused(1, message);
        });
    }
}

#[test]
fn a_prompt_right_behind_initialize_is_too_early() {
    check(|script| {
        script.calls(1, "initialize", &format!("{{{GOOD}}}"));
        script.calls(2, "session/prompt", &prompt("s"));
        let Some(Task::Route { reply, .. }) = script.server.next_task() else { panic!("no route") };
        script.server.routed(reply, Ok(()));
        script.hears(&[
            r#"{"id":2,"error":{"code":-32603,"message":"SDK server is not initialized"}}"#,
            r#"{"id":1,"result":{"serverInfo":{"name":"deepseek-harness-sdk-runtime","version":"0.0.1"}}}"#,
        ]);
    });
}

#[test]
fn one_creation_serves_all_who_wait() {
    check_ready(|script| {
        script.calls(1, "session/prompt", &prompt("s"));
        script.calls(2, "session/working-directory/get", &named("s"));
        script.calls(3, "session/prompt", &prompt("s"));
        script.calls(4, "session/wait", &named("s"));
        script.opens("s", Opening::Create, Err("no room".into()));
        script.hears(&[
            r#"{"id":4,"error":{"code":-32603,"message":"unknown SDK session: s"}}"#,
            r#"{"id":1,"error":{"code":-32603,"message":"no room"}}"#,
            r#"{"id":2,"error":{"code":-32603,"message":"no room"}}"#,
            r#"{"id":3,"error":{"code":-32603,"message":"no room"}}"#,
        ]);
        script.calls(5, "session/prompt", &prompt("s"));
        script.calls(6, "session/working-directory/get", &named("s"));
        script.opens("s", Opening::Create, Ok(()));
        script.answers_prompt("s", "m5");
        script.answers_directory("/w");
        script.hears(&[r#"{"id":5,"result":{"messageId":"m5"}}"#, r#"{"id":6,"result":{"cwd":"/w"}}"#]);
        script.calls(7, "session/prompt", &prompt("s"));
        script.answers_prompt("s", "m7");
        script.hears(&[r#"{"id":7,"result":{"messageId":"m7"}}"#]);
    });
}

#[test]
fn prompts_that_cannot_be_taken() {
    let session = "session/prompt requires a sessionId string";
    for params in ["{}", r#"{"sessionId":null}"#, r#"{"sessionId":5}"#] {
        check_ready(|script| {
            script.calls(1, "session/prompt", params);
            script.is_refused(1, session);
        });
    }
    let array = "session/prompt requires a contentBlocks array";
    let null = "session/prompt requires content blocks that are not null";
    for (blocks, message) in [("null", array), (r#""x""#, array), ("{}", array), ("[null]", null)] {
        check_ready(|script| {
            script.calls(1, "session/prompt", &format!(r#"{{"sessionId":"s","contentBlocks":{blocks}}}"#));
            script.opens("s", Opening::Create, Ok(()));
            script.is_refused(1, message);
            // The session is there all the same.
            script.calls(2, "session/wait", &named("s"));
            script.hears(&[r#"{"id":2,"result":{}}"#]);
        });
    }
}

#[test]
fn any_string_is_a_session_and_blocks_stay_as_they_came() {
    for id in [r#""""#, r#""../a b\n\u0000""#, r#""\ud83d""#, r#""会话""#] {
        check_ready(|script| {
            let blocks = r#"["hi",{"type":"mystery","zeta":[1,2.50,null],"a":"\ud83d"}]"#;
            script.calls(1, "session/prompt", &format!(r#"{{"sessionId":{id},"contentBlocks":{blocks}}}"#));
            let Some(Task::Open { session, .. }) = script.server.next_task() else { panic!("no opening") };
            script.server.opened(&session, Ok(()));
            let Some(Task::Prompt { session, content_blocks, reply }) = script.server.next_task() else { panic!() };
            assert_eq!(content_blocks.as_json().get(), blocks);
            script.server.set_running(&session, true);
            script.server.prompted(reply, Err("no".into()));
            script.hears(&[
                &format!(r#"{{"method":"session.status","params":{{"sessionId":{id},"status":"running"}}}}"#),
                r#"{"id":1,"error":{"code":-32603,"message":"no"}}"#,
            ]);
        });
    }
}

#[test]
fn resume() {
    check_ready(|script| {
        script.calls(1, "session/resume", &named("keep"));
        script.calls(2, "session/resume", &named("keep"));
        script.calls(3, "session/prompt", &prompt("keep"));
        script.opens("keep", Opening::Resume, Ok(()));
        script.answers_prompt("keep", "m");
        script.calls(4, "session/resume", &named("keep"));
        script.hears(&[
            r#"{"id":2,"error":{"code":-32603,"message":"SDK session is already open or opening: keep"}}"#,
            r#"{"id":1,"result":{}}"#,
            r#"{"id":3,"result":{"messageId":"m"}}"#,
            r#"{"id":4,"error":{"code":-32603,"message":"SDK session is already open or opening: keep"}}"#,
        ]);
        script.calls(5, "session/resume", &named("lost"));
        script.opens("lost", Opening::Resume, Err(Refusal::session_not_found(&"lost".into())));
        script.is_refused(5, r#"session "lost" not found"#);
        // It may be created now.
        script.session("lost");
    });
}

#[test]
fn working_directory() {
    check_ready(|script| {
        script.session("s");
        script.calls(1, "session/working-directory/set", r#"{"sessionId":"s","path":""}"#);
        script.is_refused(1, "working-directory: cd must not be empty");
        script.calls(2, "session/working-directory/set", r#"{"sessionId":"s","path":"sub"}"#);
        let Some(Task::WorkingDirectory { change, reply, .. }) = script.server.next_task() else { panic!() };
        assert_eq!(change, Some("sub".into()));
        script.server.directory(reply, Err(Refusal::no_directory(&"sub".into())));
        script.is_refused(2, r#"working-directory: directory does not exist: "sub""#);
    });
}

#[test]
fn wait_for_rest() {
    check_ready(|script| {
        let session = script.session("s");
        script.calls(1, "session/wait", &named("s"));
        script.hears(&[r#"{"id":1,"result":{}}"#]);
        script.server.set_running(&session, true);
        script.calls(2, "session/wait", &named("s"));
        script.calls(3, "session/wait", &named("s"));
        script.server.subagent_started(&session, &"child".into());
        script.server.set_running(&session, false);
        assert_eq!(script.heard().len(), 3);
        script.server.set_running(&session, true);
        let end = Finished { provider: "spawn", stop_reason: StopReason::Error, last_assistant_message: None };
        script.server.subagent_finished(&session, &"child".into(), &end);
        script.server.set_running(&session, false);
        let lines = script.heard();
        assert_eq!(
            lines[1..],
            [
                concat!(
                    r#"{"method":"subagent.finished","params":{"provider":"spawn","agentId":"child","#,
                    r#""parentSessionId":"s","childSessionId":"child","status":"error","stopReason":"error"}}"#,
                ),
                r#"{"method":"session.status","params":{"sessionId":"s","status":"idle"}}"#,
                r#"{"id":2,"result":{}}"#,
                r#"{"id":3,"result":{}}"#,
            ]
        );
        script.calls(4, "session/wait", &named("child"));
        script.is_refused(4, "unknown SDK session: child");
    });
}

#[test]
fn wait_behind_a_prompt() {
    check_ready(|script| {
        let session = script.session("s");
        script.calls(1, "session/prompt", &prompt("s"));
        script.calls(2, "session/wait", &named("s"));
        let Some(Task::Prompt { reply, .. }) = script.server.next_task() else { panic!("no prompt") };
        script.hears(&[]);
        script.server.set_running(&session, true);
        script.server.prompted(reply, Ok("m".into()));
        script.server.set_running(&session, false);
        assert_eq!(script.heard().last().unwrap(), r#"{"id":2,"result":{}}"#);
        // One that is refused, or does not make the session run, does not hold it up.
        script.calls(3, "session/prompt", &prompt("s"));
        script.calls(4, "session/wait", &named("s"));
        let Some(Task::Prompt { reply, .. }) = script.server.next_task() else { panic!("no prompt") };
        script.server.prompted(reply, Err("no".into()));
        assert_eq!(script.heard().last().unwrap(), r#"{"id":4,"result":{}}"#);
    });
}

#[test]
fn status_alternates() {
    check_ready(|script| {
        let session = script.session("s");
        for running in [false, true, true, false, false, true] {
            script.server.set_running(&session, running);
        }
        let status =
            |status| format!(r#"{{"method":"session.status","params":{{"sessionId":"s","status":"{status}"}}}}"#);
        script.hears(&[&status("running"), &status("idle"), &status("running")]);
    });
}

#[test]
fn only_ends_of_local_sub_agents_are_reported() {
    for (as_success, expected) in [(true, r#""status":"ok""#), (false, r#""status":"error""#)] {
        check_ready(|script| {
            script.server.max_tokens_as_success(as_success);
            let session = script.session("s");
            let end = Finished { provider: "fork", stop_reason: StopReason::MaxTokens, last_assistant_message: None };
            script.server.subagent_finished(&session, &"remote".into(), &end);
            script.hears(&[]);
            script.server.subagent_started(&session, &"local".into());
            script.server.subagent_started(&session, &"local".into());
            script.server.subagent_finished(&session, &"local".into(), &end);
            script.server.subagent_finished(&session, &"local".into(), &end);
            let lines = script.heard();
            assert_eq!(lines.len(), 2, "{lines:?}");
            assert!(lines[1].contains(expected), "{}", lines[1]);
        });
    }
}

#[test]
fn events_are_numbered_and_stamped() {
    check_ready(|script| {
        let session = script.session("s");
        let data = Json::EMPTY_OBJECT;
        let event = NewEvent::new("turn/start", &data);
        script.server.session_event(&session, &event, 50).unwrap();
        let message = NewEvent { source_event_seqs: &[0, 7], ..NewEvent::new("tool/result", &data).append() };
        // The clock was set back.
        let stamp = script.server.session_event(&session, &message, 40).unwrap();
        let logged = serde_json::to_string(&message.stamped(stamp)).unwrap();
        script.server.number_from(&session, 9);
        script.server.number_from(&session, 3);
        let stamp = script.server.session_event(&session, &event, 60).unwrap();
        assert_eq!((stamp.seq, stamp.time), (9, 60));
        script.server.session_event(&"other".into(), &event, 60).unwrap();
        let line = |session, event| {
            format!(r#"{{"method":"session.event","params":{{"sessionId":"{session}","event":{{{event}}}}}}}"#)
        };
        let result = r#""type":"tool/result","seq":1,"time":50,"data":{},"sourceEventSeqs":[0,7],"surfaceOp":"append""#;
        assert_eq!(logged, format!("{{{result}}}"));
        script.hears(&[
            &line("s", r#""type":"turn/start","seq":0,"time":50,"data":{}"#),
            &line("s", result),
            &line("s", r#""type":"turn/start","seq":9,"time":60,"data":{}"#),
            &line("other", r#""type":"turn/start","seq":0,"time":60,"data":{}"#),
        ]);
        // What has no JSON form uses up no number.
        let broken = NewEvent::new("broken", &std::collections::BTreeMap::from([((1, 2), 3)])).append().data.clone();
        assert!(script.server.session_event(&session, &NewEvent::new("broken", &broken), 70).is_err());
        assert_eq!(script.server.session_event(&session, &event, 70).unwrap().seq, 10);
    });
}

#[test]
fn what_is_no_request_is_counted_and_not_answered() {
    check(|script| {
        for line in [
            "banner",
            r#"{"method":"shutdown"}"#,
            r#"{"id":null,"method":"initialize"}"#,
            r#"{"id":1,"result":{}}"#,
            r#"[{"id":1,"method":"nope"}]"#,
        ] {
            script.says(line);
        }
        script.hears(&[]);
        let counters = script.server.counters();
        assert_eq!((counters.dropped_lines, counters.notifications, counters.unmatched_responses), (2, 2, 1));
        assert_eq!(script.server.phase(), Phase::Serving);
    });
}
