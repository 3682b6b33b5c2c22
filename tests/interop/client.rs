//! Our client drives the official runtime, and ours beside it: each conversation is held with both.

use std::time::Duration;

use dsh_wire::client::{Filter, Policy, Rung};
use dsh_wire::frame::INTERNAL_ERROR;
use dsh_wire::stdio::{
    CallOptions, DeepSeekHarness, Error, Exit, HarnessClient, HarnessOptions, Input, Launch, RunOptions, RunResult,
};
use dsh_wire::wire::{ContentBlock, EventData, InitializeParams, Prompt, PromptParams, PromptResult, Status};
use dsh_wire::wire::{Empty, Method as _};

use crate::environment::{Model, Place, Which, environment, installed};

/// Holds a conversation with each of the two runtimes.
#[track_caller]
fn with_each(hold: impl Fn(&Setting)) {
    let model = Model::start();
    for which in [Which::Official, Which::Ours] {
        hold(&Setting { which, model: &model, place: Place::new() });
    }
}

struct Setting<'m> {
    which: Which,
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

    fn harness(&self) -> DeepSeekHarness {
        DeepSeekHarness::start(&HarnessOptions::new(self.launch(), self.route())).unwrap()
    }

    fn client(&self) -> HarnessClient {
        let mut client = HarnessClient::spawn(&self.launch()).unwrap();
        let server = client.initialize(&self.route()).unwrap().server_info.unwrap();
        assert_eq!(server.name.unwrap().to_string(), "deepseek-harness-sdk-runtime");
        client
    }
}

fn run(harness: &mut DeepSeekHarness, session: &str, input: impl Into<Input>) -> RunResult {
    harness.session(session).run(input, RunOptions::new().timeout(Duration::from_secs(30))).unwrap()
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
        let result = harness.session("s").run("hello", options).unwrap();
        assert_eq!(result.final_response, "echo: hello");
        assert_eq!(result.finish_reason.as_deref(), Some("completed"));
        assert_eq!(result.session_id.to_string(), "s");
        assert_eq!(seen, result.notifications.len());
        let types = types(&result);
        assert_eq!((types[0].as_str(), types.last().unwrap().as_str()), ("agent/inbox/spliced", "turn/end"));
        let last = result.notifications.last().unwrap().view().unwrap();
        assert_eq!(last.status(), Some(Status::Idle));
        assert_eq!(harness.client().counters().dropped_no_frame(), 0);
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
        let mut client = setting.client();
        let all = client.subscribe(Filter::all().method("session.status"), Policy::Lossless);
        let calls: Vec<_> = ["a", "b"]
            .map(|session| {
                let params = PromptParams::text(session, format!("@drip 0.05 for {session}"));
                client.start_call::<PromptResult>(Prompt::NAME, &params, &CallOptions::default()).unwrap()
            })
            .into();
        for call in calls {
            assert!(client.finish(call).unwrap().message_id().is_some());
        }
        let mut idle = Vec::new();
        while idle.len() < 2 {
            let delivery = all.next_timeout(&mut client, Duration::from_secs(30)).unwrap().expect("both become idle");
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
        let client = harness.client();
        client.prompt("s", &[ContentBlock::text("@slow 0.5 first")]).unwrap();
        client.prompt("s", &[ContentBlock::text("second")]).unwrap();
        let result = run(&mut harness, "s", "third");
        // By the rule of the official clients a run starts at its receipt, so it holds the queue before it as well.
        assert_eq!(result.final_response, "echo: third");
        assert_eq!(types(&result).iter().filter(|kind| *kind == "turn/end").count(), 3);
        harness.session("s").wait().unwrap();
    });
}

#[test]
fn resume_in_a_fresh_process() {
    with_each(|setting| {
        let mut harness = setting.harness();
        run(&mut harness, "kept", "hello");
        refused(harness.resume_session("kept"), "SDK session is already open or opening: kept");
        refused(harness.resume_session("never"), r#"session "never" not found"#);
        assert_eq!(harness.close().exit, Some(Exit::Code(0)));
        let mut harness = setting.harness();
        let result = harness.resume_session("kept").unwrap().run("after", RunOptions::new()).unwrap();
        assert_eq!(result.final_response, "echo: after");
        assert!(result.events().next().unwrap().seq > 10, "the log goes on");
        drop(harness);
        let mut harness = setting.harness();
        refused(harness.session("kept").run("again", RunOptions::new()), r#"session "kept" already exists"#);
    });
}

#[test]
fn the_working_directory() {
    with_each(|setting| {
        let mut harness = setting.harness();
        std::fs::create_dir(setting.place.workspace().join("sub")).unwrap();
        let mut session = harness.session("s");
        let start = setting.place.workspace().display().to_string();
        assert_eq!(session.working_directory().unwrap().to_string(), start);
        assert_eq!(session.set_working_directory("sub/../sub/").unwrap().to_string(), format!("{start}/sub"));
        assert_eq!(session.working_directory().unwrap().to_string(), format!("{start}/sub"));
        refused(session.set_working_directory("missing"), r#"directory does not exist: "missing""#);
        assert_eq!(session.run("hello", RunOptions::new()).unwrap().final_response, "echo: hello");
    });
}

#[test]
fn a_bad_handshake_can_be_mended() {
    with_each(|setting| {
        let mut client = HarnessClient::spawn(&setting.launch()).unwrap();
        refused(client.prompt("s", &[ContentBlock::text("early")]), "SDK server is not initialized");
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
        refused(client.call("nope", &()), "unknown DeepSeek Harness SDK runtime method: nope");
        client.prompt("s", &[ContentBlock::text("now")]).unwrap();
        client.wait("s").unwrap();
    });
}

#[test]
fn shutdown_by_request() {
    with_each(|setting| {
        let mut client = setting.client();
        let _: Empty = client.call_with("shutdown", &(), &CallOptions::default()).unwrap();
        let report = client.close();
        assert_eq!(report.exit, Some(Exit::Code(0)));
    });
}

#[test]
fn the_end_of_input_ends_the_runtime() {
    with_each(|setting| {
        // Without a rung for the request, the end of stdin is the first.
        let mut options = HarnessOptions::new(setting.launch(), setting.route());
        options.client.graces.shutdown = Duration::ZERO;
        let mut harness = DeepSeekHarness::start(&options).unwrap();
        run(&mut harness, "s", "hello");
        let report = harness.close();
        assert_eq!(report.exit, Some(Exit::Code(0)));
        assert_eq!(report.rungs.last().unwrap().rung, Rung::CloseStdin, "{report:?}");
    });
}

#[test]
fn sigterm_ends_the_runtime_in_mid_turn() {
    with_each(|setting| {
        let mut client = setting.client();
        client.prompt("s", &[ContentBlock::text("@slow 20")]).unwrap();
        let pid = client.process_id().and_then(|id| rustix::process::Pid::from_raw(id as i32)).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        // The call that waits is answered, by the recording, or ends with the cause; it does not hang.
        if let Err(error) = client.wait("s") {
            assert_eq!(error.exit(), Some(Exit::Code(0)), "{error}");
        }
        assert_eq!(client.close().exit, Some(Exit::Code(0)));
    });
}
