//! Our client drives the official runtime, and ours beside it: each conversation is held
//! with both, by the client that the caller drives and by the one that threads share.

use std::time::Duration;

use dsh_wire::client::{Filter, Graces, Rung};
use dsh_wire::frame::INTERNAL_ERROR;
use dsh_wire::stdio::{ClientOptions, Error, Exit, HarnessClient, Input, Launch, RunOptions, RunResult};
use dsh_wire::wire::{ContentBlock, EventData, InitializeParams, Status};

use crate::either::{Driver, Either};
use crate::environment::{Model, Place, Which, environment, installed};

/// Holds a conversation with each of the two runtimes.
#[track_caller]
fn with_each(hold: impl Fn(&Setting)) {
    let model = Model::start();
    for driver in [Driver::Caller, Driver::Shared] {
        for which in [Which::Official, Which::Ours] {
            hold(&Setting { which, driver, model: &model, place: Place::new() });
        }
    }
}

struct Setting<'m> {
    which: Which,
    driver: Driver,
    model: &'m Model,
    place: Place,
}

impl Setting<'_> {
    fn launch(&self) -> Launch {
        let launch = match self.which {
            Which::Official => Launch::new(installed("runtime")),
            Which::Ours => Launch::new(env!("CARGO_BIN_EXE_dsh-wire")).arg("serve"),
        };
        let launch = launch.args(["--profile", "sdk-minimal"]).cwd(self.place.workspace());
        environment(self.model, &self.place).into_iter().fold(launch, |launch, (name, value)| launch.env(name, value))
    }

    fn route(&self) -> InitializeParams {
        InitializeParams::new(self.place.workspace().display().to_string(), "deepseek-official", "deepseek-v4-flash")
    }

    /// Before the handshake.
    fn spawn(&self) -> Either {
        Either::new(HarnessClient::spawn(&self.launch()).unwrap(), self.driver)
    }

    fn harness(&self) -> Either {
        let mut client = self.spawn();
        let server = client.initialize(&self.route()).unwrap().server_info.unwrap();
        assert_eq!(server.name.unwrap().to_string(), "deepseek-harness-sdk-runtime");
        client
    }
}

fn run(harness: &mut Either, session: &str, input: impl Into<Input>) -> RunResult {
    harness.run(session, input, RunOptions::new().timeout(Duration::from_secs(30))).unwrap()
}

fn types(result: &RunResult) -> Vec<String> {
    result.events().map(|event| event.kind.to_string()).collect()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, message: &str) {
    let error = result.expect_err(message);
    let rpc = error.rpc().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(rpc.code, Some(INTERNAL_ERROR));
    assert!(rpc.message.contains(message), "{}", rpc.message);
}

#[test]
fn a_plain_turn() {
    with_each(|setting| {
        let mut harness = setting.harness();
        let mut seen = 0;
        let options = RunOptions::new().on_notification(|_| seen += 1);
        let result = harness.run("s", "hello", options).unwrap();
        assert_eq!(result.final_response, "echo: hello");
        assert_eq!(result.finish_reason.as_deref(), Some("completed"));
        assert_eq!(result.session_id.to_string(), "s");
        assert_eq!(seen, result.notifications.len());
        let types = types(&result);
        assert_eq!((types[0].as_str(), types.last().unwrap().as_str()), ("agent/inbox/spliced", "turn/end"));
        let last = result.notifications.last().unwrap().view().unwrap();
        assert_eq!(last.status(), Some(Status::Idle));
        assert_eq!(harness.counters().dropped(), 0);
        let report = harness.close();
        assert_eq!(report.exit, Some(Exit::Code(0)), "{report:?}");
    });
}

#[test]
fn thinking_max_tokens_and_a_model_error() {
    with_each(|setting| {
        let mut harness = setting.harness();
        let result = run(&mut harness, "s", "@think I ponder | Done.");
        assert_eq!(result.final_response, "Done.");
        let thought = result.events().any(|event| match event.decode_data() {
            Ok(EventData::AssistantMessage(message)) => message.message.content.json().get().contains("I ponder"),
            _ => false,
        });
        assert!(thought);
        let result = run(&mut harness, "s", "@maxtokens cut");
        assert_eq!((&*result.final_response, result.finish_reason.as_deref()), ("cut", Some("max-tokens")));
        let result = run(&mut harness, "s", "@error 400");
        assert_eq!((&*result.final_response, result.finish_reason.as_deref()), ("", Some("error")));
        let result = run(&mut harness, "s", "and on");
        assert_eq!(result.final_response, "echo: and on");
    });
}

#[test]
fn a_tool_call() {
    with_each(|setting| {
        let mut harness = setting.harness();
        let result = run(&mut harness, "s", "@bash echo from the $((40 + 2)) shell");
        assert_eq!(result.final_response, "The tool has answered.");
        let types = types(&result);
        let call = types.iter().position(|kind| kind == "tool/call").unwrap();
        let answer = types.iter().position(|kind| kind == "tool/result").unwrap();
        assert!(call < answer);
        assert!(result.events().any(|event| event.data.get().contains("from the 42 shell")));
        // The official runtime keeps its shell for seconds; the default graces bear that.
        assert_eq!(harness.close().exit, Some(Exit::Code(0)));
    });
}

#[test]
fn unicode_and_blocks() {
    with_each(|setting| {
        let mut harness = setting.harness();
        let result =
            run(&mut harness, "s/../ä", vec![ContentBlock::text("one"), ContentBlock::text("two \u{2028} 你好")]);
        assert_eq!(result.final_response, "echo: two \u{2028} 你好");
        let lone = dsh_wire::json::Json::new(r#""lone \ud83d surrogate""#).unwrap().as_str().unwrap().to_buf();
        let result = run(&mut harness, "s/../ä", vec![ContentBlock::text(lone)]);
        assert_eq!(result.final_response, "echo: lone \u{fffd} surrogate");
        assert!(result.events().any(|event| event.data.get().contains(r#""echo: lone \ud83d surrogate""#)));
    });
}

#[test]
fn two_sessions_at_once() {
    with_each(|setting| {
        let mut client = setting.harness();
        let all = client.subscribe(Filter::all().method("session.status"));
        let calls: Vec<_> = ["a", "b"]
            .map(|session| client.start_prompt(session, &format!("@drip 0.05 for {session}")).unwrap())
            .into();
        for call in calls {
            assert!(client.finish(call).unwrap().message_id().is_some());
        }
        let mut idle = Vec::new();
        while idle.len() < 2 {
            let delivery = client.next(&all);
            let status = delivery.notification().unwrap();
            if status.status() == Some(Status::Idle) {
                idle.push(status.session_id().unwrap().to_string());
            }
        }
        idle.sort();
        assert_eq!(idle, ["a", "b"]);
    });
}

#[test]
fn queued_prompts_are_runs_of_their_own() {
    with_each(|setting| {
        let mut harness = setting.harness();
        harness.prompt("s", "@slow 0.5 first").unwrap();
        harness.prompt("s", "second").unwrap();
        let result = run(&mut harness, "s", "third");
        // By the rule of the official clients a run starts at its receipt, so it holds the queue before it as well.
        assert_eq!(result.final_response, "echo: third");
        assert_eq!(types(&result).iter().filter(|kind| *kind == "turn/end").count(), 3);
        harness.wait("s").unwrap();
    });
}

#[test]
fn resume_in_a_fresh_process() {
    with_each(|setting| {
        let mut harness = setting.harness();
        run(&mut harness, "kept", "hello");
        refused(harness.resume("kept"), "SDK session is already open or opening: kept");
        refused(harness.resume("never"), r#"session "never" not found"#);
        assert_eq!(harness.close().exit, Some(Exit::Code(0)));
        let mut harness = setting.harness();
        harness.resume("kept").unwrap();
        let result = harness.run("kept", "after", RunOptions::new()).unwrap();
        assert_eq!(result.final_response, "echo: after");
        assert!(result.events().next().unwrap().seq > 10, "the log goes on");
        drop(harness);
        let mut harness = setting.harness();
        refused(harness.run("kept", "again", RunOptions::new()), r#"session "kept" already exists"#);
    });
}

#[test]
fn the_working_directory() {
    with_each(|setting| {
        let mut harness = setting.harness();
        std::fs::create_dir(setting.place.workspace().join("sub")).unwrap();
        let start = setting.place.workspace().display().to_string();
        assert_eq!(harness.working_directory("s").unwrap().to_string(), start);
        assert_eq!(harness.set_working_directory("s", "sub/../sub/").unwrap().to_string(), format!("{start}/sub"));
        assert_eq!(harness.working_directory("s").unwrap().to_string(), format!("{start}/sub"));
        refused(harness.set_working_directory("s", "missing"), r#"directory does not exist: "missing""#);
        assert_eq!(harness.run("s", "hello", RunOptions::new()).unwrap().final_response, "echo: hello");
    });
}

#[test]
fn a_bad_handshake_can_be_mended() {
    with_each(|setting| {
        let mut client = setting.spawn();
        refused(client.prompt("s", "early"), "SDK server is not initialized");
        let mut bad = setting.route();
        bad.provider = "nobody".into();
        refused(client.initialize(&bad), r#"no adapter registered for provider "nobody""#);
        bad = setting.route();
        bad.max_tokens = Some(0);
        refused(client.initialize(&bad), "initialize maxTokens must be a positive safe integer");
        bad = setting.route();
        bad.reasoning_effort = Some("".into());
        refused(client.initialize(&bad), "initialize reasoningEffort must be a non-empty string");
        client.initialize(&setting.route()).unwrap();
        refused(client.call("nope"), "unknown DeepSeek Harness SDK runtime method: nope");
        client.prompt("s", "now").unwrap();
        client.wait("s").unwrap();
    });
}

#[test]
fn shutdown_by_request() {
    with_each(|setting| {
        let mut client = setting.harness();
        client.shutdown().unwrap();
        let report = client.close();
        assert_eq!(report.exit, Some(Exit::Code(0)));
    });
}

#[test]
fn the_end_of_input_ends_the_runtime() {
    with_each(|setting| {
        // Without a rung for the request, the end of stdin is the first.
        let mut options = ClientOptions::default();
        options.graces = Graces { shutdown: Duration::ZERO, ..Graces::default() };
        let client = HarnessClient::spawn_with(&setting.launch(), options).unwrap();
        let mut harness = Either::new(client, setting.driver);
        harness.initialize(&setting.route()).unwrap();
        run(&mut harness, "s", "hello");
        let report = harness.close();
        assert_eq!(report.exit, Some(Exit::Code(0)));
        assert_eq!(report.rungs.last().unwrap().rung, Rung::CloseStdin, "{report:?}");
    });
}

#[test]
fn sigterm_ends_the_runtime_in_mid_turn() {
    with_each(|setting| {
        let mut client = setting.harness();
        client.prompt("s", "@slow 20").unwrap();
        let pid = client.process_id().and_then(|id| rustix::process::Pid::from_raw(id as i32)).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        // The call that waits does not hang. It is answered, where the runtime has already forgotten the session with an
        // error ("unknown SDK session"), or it ends with the cause.
        if let Err(error) = client.wait("s") {
            assert!(error.rpc().is_some() || error.exit() == Some(Exit::Code(0)), "{error:?}");
        }
        assert_eq!(client.close().exit, Some(Exit::Code(0)));
    });
}
