//! `dsh-wire run`: one prompt, to the end of what it sets off.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use dsh_wire::json::{JsonStr, JsonString};
use dsh_wire::peer::AbortToken;
use dsh_wire::stdio::{Input, RunOptions, RunResult};
use dsh_wire::wire::{
    ContentBlock, Empty, FinishStatus, Method, Notification, NotificationBody, Resume, SessionParams,
};

use crate::console::Console;
use crate::failure::{Failure, TurnFailed};
use crate::runtime::{Route, Runtime, RuntimeArgs};
use crate::status::StatusLine;
use crate::terminal::Styles;
use crate::view::{self, View};
use crate::{argument, image};

/// Run one prompt on one session, to the end
///
/// A terminal sees the answer and the tool calls as they come; a pipe gets the final text.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  dsh-wire run \"hello\"
  dsh-wire run --image photo.png \"What is this?\" -- dsh --profile sdk
  git diff | dsh-wire run --json - -- dsh --profile sdk | jq .method")]
pub(crate) struct Args {
    /// What to ask; `-` reads it, 16 MiB at most, from stdin
    #[arg(allow_hyphen_values = true, value_parser = prompt)]
    prompt: String,

    /// Print one JSON object for each notification, then one with the result
    #[arg(long)]
    json: bool,

    /// The session; a new one gets an id of random bits
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Restore the session first, from what an earlier runtime has stored
    #[arg(long, requires = "session")]
    resume: bool,

    /// Show an image of at most 16 MiB with the prompt; may be given more than once
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,

    #[command(flatten)]
    route: Route,

    #[command(flatten)]
    pub(crate) runtime: RuntimeArgs,
}

/// A list may begin with `- `; anything else with a dash was meant as an option.
fn prompt(text: &str) -> Result<String, &'static str> {
    match text.strip_prefix('-') {
        Some(rest) if rest.starts_with(|c: char| !c.is_whitespace()) => {
            Err("there is no such option; a prompt that starts like one goes to stdin, with `-` in its place")
        }
        _ => Ok(text.into()),
    }
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let time = console.time;
    let text = argument::text(&args.prompt, time)?;
    let mut blocks = vec![ContentBlock::text(&*text)];
    for path in &args.image {
        blocks.push(image::read(path, time)?);
    }
    let to_terminal = io::stdout().is_terminal();
    // What reads our lines may write to the same terminal.
    let mut runtime = Runtime::start(&args.runtime, console, args.json && !to_terminal)?;
    let out = console.stdout();
    let show = match (args.json, to_terminal) {
        (true, _) => Show::Json(out),
        (false, true) => Show::View(View::new(out, Styles::of(&io::stdout()))),
        (false, false) => Show::FinalText(out),
    };
    let outcome = converse(args, blocks, &mut runtime, show);
    runtime.close(&outcome);
    outcome
}

fn converse(
    args: &Args,
    blocks: Vec<ContentBlock>,
    runtime: &mut Runtime,
    show: Show<impl Write>,
) -> Result<(), Failure> {
    runtime.initialize(&args.route)?;
    if let Some(id) = args.session.as_deref().filter(|_| args.resume) {
        let _: Empty = runtime.call(Resume::NAME, &SessionParams::new(id))?;
    }
    runtime.status.set("waiting for the model");
    let mut options = RunOptions::new().collect(false).token(&runtime.console.interrupts.stop);
    if let Some(left) = runtime.console.time.left() {
        options = options.timeout(left);
    }
    let mut session = match &args.session {
        Some(id) => runtime.harness.session(&**id),
        None => runtime.harness.start_session(),
    };
    let id = session.id().clone();
    let mut follower = Follower {
        session: id.as_json_str(),
        show,
        status: &runtime.status,
        stop: &runtime.console.interrupts.stop,
        broken: None,
        failed: None,
    };
    let result = session.run(Input::from(blocks), options.on_notification(|n| follower.follow(n)));
    let failed = follower.finish(result.as_ref().ok()).map_err(|error| runtime.console.output_failure(error))?;
    let reason = result.map_err(|error| runtime.failure(error))?.finish_reason;
    match (failed, reason.as_deref()) {
        (Some(failed), _) => return Err(failed.into()),
        (None, Some("error")) => return Err(TurnFailed::default().into()),
        (None, Some("completed") | None) => {}
        (None, Some("max-tokens")) => runtime.note(format_args!("the answer was cut at the limit of tokens")),
        (None, Some(other)) => runtime.note(format_args!("the turn did not complete: {other}")),
    }
    Ok(())
}

/// How a run is shown.
enum Show<W> {
    Json(W),
    View(View<W>),
    FinalText(W),
}

/// Looks at each notification as it comes.
struct Follower<'a, W> {
    session: JsonStr<'a>,
    show: Show<W>,
    status: &'a StatusLine,
    /// Set where it is no use to go on.
    stop: &'a AbortToken,
    /// Why nothing more can be written.
    broken: Option<io::Error>,
    /// The last turn ended like this.
    failed: Option<TurnFailed>,
}

impl<W: Write> Follower<'_, W> {
    fn follow(&mut self, notification: &Notification<'_>) {
        if notification.session_id() == Some(self.session) {
            self.learn(notification);
        }
        let (show, session) = (&mut self.show, self.session);
        let written = self.status.out_of_the_way(|| match show {
            Show::Json(out) => write_notification(out, notification).map(|()| true),
            Show::View(view) => view.show(session, notification),
            Show::FinalText(_) => Ok(true),
        });
        if let Err(error) = written {
            self.broken.get_or_insert(error);
            self.stop.abort();
        }
    }

    fn learn(&mut self, notification: &Notification<'_>) {
        match &notification.body {
            NotificationBody::SessionFinished(finished) if finished.status == FinishStatus::Error => {
                self.failed.get_or_insert_with(|| TurnFailed::said(finished.reason));
            }
            NotificationBody::SessionEvent(params) if params.event.kind == "turn/end" => {
                let error = params.event.data.member("reason").and_then(|reason| reason.member("error"));
                self.failed = error.map(TurnFailed::new);
            }
            NotificationBody::SessionEvent(params) => {
                let data = params.event.decode_data().ok();
                data.as_ref().and_then(view::activity).into_iter().for_each(|text| self.status.set(&text));
            }
            _ => {}
        }
    }

    /// Shows what is left to show; tells how the last turn failed, if it did.
    fn finish(mut self, result: Option<&RunResult>) -> io::Result<Option<TurnFailed>> {
        self.broken.map_or(Ok(()), Err)?;
        let failed = self.failed;
        self.status.out_of_the_way(|| {
            match (&mut self.show, result) {
                (Show::View(view), _) => view.end()?,
                (Show::Json(out), Some(result)) => write_result(out, result)?,
                (Show::FinalText(out), Some(result)) if failed.is_none() || !result.final_response.is_empty() => {
                    writeln!(out, "{}", result.final_response)?;
                }
                (Show::Json(_) | Show::FinalText(_), _) => {}
            }
            Ok(true)
        })?;
        Ok(failed)
    }
}

fn write_notification(out: &mut impl Write, notification: &Notification<'_>) -> io::Result<()> {
    let (method, params) = (notification.method.to_buf(), notification.params);
    let method = method.as_json_str();
    writeln!(out, r#"{{"kind":"notification","method":{},"params":{params}}}"#, method.get())
}

fn write_result(out: &mut impl Write, result: &RunResult) -> io::Result<()> {
    let text = |text: &str| JsonString::from(text).as_json_str().get().to_owned();
    let response = text(&result.final_response);
    let reason = result.finish_reason.as_deref().map_or_else(|| "null".into(), text);
    let session = result.session_id.as_json_str().get();
    writeln!(out, r#"{{"kind":"result","sessionId":{session},"finalResponse":{response},"finishReason":{reason}}}"#)
}
