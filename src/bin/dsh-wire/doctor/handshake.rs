//! The conversation: the handshake, which methods there are, and an orderly end.

use std::io;
use std::time::{Duration, Instant};

use dsh_wire::client::{Counters, Rung};
use dsh_wire::frame::METHOD_NOT_FOUND;
use dsh_wire::json::JsonBuf;
use dsh_wire::peer::Dropped;
use dsh_wire::stdio::{Cause, CloseReport, Closed, Error, ErrorKind, Exit as RuntimeExit};
use dsh_wire::wire::{
    Empty, Initialize, InitializeResult, Method, Resume, Wait, WorkingDirectoryGet, WorkingDirectorySet,
};
use serde_json::json;

use super::Args;
use super::report::{Finding, Report};
use crate::failure::{Exit, Failure};
use crate::runtime::Runtime;
use crate::terminal::shortened;
use crate::time::Time;

/// Shakes hands and asks for methods. Where that fails, the finding comes back, for what the runtime says on stderr is
/// known only at its end.
pub(super) fn check(args: &Args, runtime: &mut Runtime, report: &mut Report) -> Result<Option<Finding>, Failure> {
    let (params, options, started) = (args.route.params()?, runtime.call_options(), Instant::now());
    let ready: Result<InitializeResult, Error> =
        runtime.harness.client().call_with(Initialize::NAME, &params, &options);
    let found = ready.map(|ready| ready_after(started.elapsed(), ready));
    let not_ready = |error: &Error, runtime: &mut Runtime| {
        let came = runtime.harness.client().counters();
        not_ready(error, &came, args.runtime.keeps_stderr(), runtime.console.time)
    };
    if let Some(fault) = add(found, not_ready, runtime, report)? {
        return Ok(Some(fault));
    }
    runtime.status.set("asking for its methods");
    add(methods(runtime), |error, runtime| no_methods(error, runtime.console.time), runtime, report)
}

/// Shows what was found, out of the way of the status line. An error that is a fault of the runtime's comes back as such.
fn add(
    found: Result<Finding, Error>,
    fault: impl FnOnce(&Error, &mut Runtime) -> Finding,
    runtime: &mut Runtime,
    report: &mut Report,
) -> Result<Option<Finding>, Failure> {
    let finding = match found {
        Ok(finding) => finding,
        Err(error) if matches!(error.kind(), ErrorKind::Aborted(_)) => return Err(runtime.failure(error)),
        Err(error) => return Ok(Some(fault(&error, runtime))),
    };
    let mut shown = Ok(());
    let _ = runtime.status.out_of_the_way(|| {
        shown = report.add(finding);
        Ok(true)
    });
    shown.map(|()| None)
}

const NAME: &str = "handshake";

fn ready_after(took: Duration, ready: InitializeResult) -> Finding {
    let info = ready.server_info.unwrap_or_default();
    let [name, version] = [info.name, info.version].map(|text| text.map(|text| text.to_string()));
    let finding = match &name {
        Some(name) => {
            let version = version.as_deref().unwrap_or("without a version");
            Finding::well(NAME, format!("{name} {version}, ready after {took:.1?}"))
        }
        None => Finding::warning(NAME, format!("ready after {took:.1?}, but it does not say what it is"))
            .advise("serverInfo.name is missing in its answer to initialize; is it a DeepSeek Harness runtime?"),
    };
    finding.with("seconds", json!(took.as_secs_f64())).with("server", json!({"name": name, "version": version}))
}

fn not_ready(error: &Error, came: &Counters, stderr_is_kept: bool, time: Time) -> Finding {
    let finding = |text: String| Finding::fault(NAME, Exit::of(error), text);
    match error.kind() {
        ErrorKind::Closed(closed) => gone(closed, finding, stderr_is_kept),
        ErrorKind::TimedOut { .. } if came.dropped_header > 0 => Finding::fault(
            NAME,
            Exit::PROTOCOL,
            format!("no answer within {:?}, and its lines are headers like Content-Length", time.limit()),
        )
        .advise("it speaks the protocol of language servers; a runtime writes one frame a line and no headers"),
        ErrorKind::TimedOut { .. } => {
            let finding = finding(format!("no answer to initialize within {:?}", time.limit()));
            match came.dropped() {
                0 => finding
                    .advise("it may need longer (--timeout SECS), or wait for something else than a frame on stdin"),
                _ => {
                    finding.advise("what it writes is not the protocol; is it a runtime, started with `--profile sdk`?")
                }
            }
        }
        ErrorKind::Rpc(answer) => {
            let code = answer.code.map_or_else(|| "no code".into(), |code| code.to_string());
            let finding = finding(format!("initialize was answered with an error ({code}): {}", answer.message));
            match answer.code {
                Some(METHOD_NOT_FOUND) => {
                    finding.advise("it speaks JSON-RPC, but does not know initialize; is it a runtime?")
                }
                _ => finding
                    .advise("it says what it does not like; --provider, --model and --cwd choose what it is told"),
            }
        }
        ErrorKind::Protocol { expected, came } => {
            let came = shortened(came.as_json().get(), 80);
            finding(format!("initialize was answered with what the protocol does not allow: {expected}; came {came}"))
                .advise("it speaks JSON-RPC, but another protocol, or has a fault; tell those who wrote it")
        }
        _ => finding(format!("{error:#}")),
    }
}

/// How the connection ended before there was an answer.
fn gone(closed: &Closed, finding: impl FnOnce(String) -> Finding, stderr_is_kept: bool) -> Finding {
    match (&closed.cause, closed.exit) {
        (_, Some(exit)) => {
            let finding = finding(format!("the runtime {exit} before it was ready"));
            let said = match closed.stderr.is_empty() && stderr_is_kept {
                true => "it wrote nothing to stderr",
                false => "see what it wrote to stderr",
            };
            finding.advise(format!("{said}; `dsh` needs `--profile sdk`, and a profile that exists"))
        }
        (Cause::Broken(error), None) if error.kind() == io::ErrorKind::BrokenPipe => {
            finding("the runtime has closed its input before it was ready".into())
                .advise("a runtime reads its stdin; does something in between take that away?")
        }
        (Cause::OutputEnded, None) => finding("the runtime has closed its output before it was ready".into())
            .advise("a runtime speaks on its stdout; is that sent somewhere else?"),
        (Cause::Broken(error), None) => finding(format!("the connection broke before the runtime was ready: {error}")),
        (_, None) => finding(format!("the handshake came to no end: {closed}")),
    }
}

/// The methods that came with 0.2.1.
const NEW: [&str; 4] = [Resume::NAME, Wait::NAME, WorkingDirectoryGet::NAME, WorkingDirectorySet::NAME];

/// One that nobody has.
const NOBODYS: &str = "dsh-wire/doctor";

const METHODS: &str = "methods";

/// How long it may take to refuse a method.
const REFUSAL: Duration = Duration::from_secs(3);

/// What becomes of a call without params.
enum Reaction {
    /// In these words, the name of the method left out.
    Refused(String),
    Answered,
    /// Not within [`REFUSAL`].
    Silence,
}

/// Tells the revision by the methods that are there, since the handshake does not. They are called without params, so
/// that they do nothing: what is refused in other words than a method that nobody has is there.
fn methods(runtime: &mut Runtime) -> Result<Finding, Error> {
    let nobodys = match reaction(runtime, NOBODYS)? {
        Reaction::Refused(words) => words,
        Reaction::Answered => {
            return Ok(Finding::warning(METHODS, format!("it answers the method {NOBODYS}, which nobody has")).advise(
                "an unknown method has to be answered with an error, or clients take it for one that is there",
            ));
        }
        Reaction::Silence => {
            return Ok(Finding::warning(METHODS, format!("it does not refuse the method {NOBODYS}"))
                .advise("an unknown method has to be answered with an error, or clients wait for ever"));
        }
    };
    let (mut there, mut missing, mut silent) = (Vec::new(), Vec::new(), Vec::new());
    for method in NEW {
        match reaction(runtime, method)? {
            Reaction::Refused(words) if words == nobodys => missing.push(method),
            Reaction::Refused(_) | Reaction::Answered => there.push(method),
            Reaction::Silence => silent.push(method),
        }
    }
    let finding = match (there.len(), silent.len()) {
        (_, 1..) => Finding::warning(METHODS, format!("no answer within {REFUSAL:?} to {}", silent.join(", ")))
            .advise("what lacks its params has to be refused, or clients wait for ever"),
        (4, _) => Finding::well(METHODS, format!("as from 0.2.1: {}", there.join(", "))),
        (0, _) => Finding::warning(METHODS, "as before 0.2.1: sessions cannot be resumed or waited for")
            .advise("a newer runtime can do that; everything else works with this one"),
        _ => Finding::warning(METHODS, format!("it has {}, but not {}", there.join(", "), missing.join(", "))),
    };
    Ok(finding.with("there", json!(there)).with("missing", json!(missing)).with("silent", json!(silent)))
}

fn reaction(runtime: &mut Runtime, method: &str) -> Result<Reaction, Error> {
    let limit = runtime.console.time.left().filter(|left| *left < REFUSAL);
    let options = runtime.call_options().timeout(limit.unwrap_or(REFUSAL));
    let answer: Result<JsonBuf, Error> = runtime.harness.client().call_with(method, &Empty, &options);
    match answer {
        Ok(_) => Ok(Reaction::Answered),
        Err(error) if error.is_timeout() && limit.is_none() => Ok(Reaction::Silence),
        Err(error) => match error.rpc() {
            Some(rpc) => Ok(Reaction::Refused(format!("{:?} {}", rpc.code, rpc.message.replace(method, "")))),
            None => Err(error),
        },
    }
}

/// It was ready, and then could not be asked for methods.
fn no_methods(error: &Error, time: Time) -> Finding {
    let finding = |text: String| Finding::fault(METHODS, Exit::of(error), text);
    match (error.kind(), error.exit()) {
        (ErrorKind::TimedOut { .. }, _) => {
            finding(format!("timed out after {:?}, while it was asked for methods", time.limit()))
                .advise("it may need longer (--timeout SECS), or not answer a method that it does not know")
        }
        (_, Some(exit)) => finding(format!("the runtime {exit} when it was asked for methods"))
            .advise("a runtime refuses a method that it does not know, and goes on"),
        _ => finding(format!("{error:#}")),
    }
}

/// Lines on stdout that are no frames. They are passed over, so they are a warning.
pub(super) fn stray_lines(came: &Counters, last: Option<Dropped<'_>>) -> Option<Finding> {
    let (last, dropped) = (last?, came.dropped());
    let text = shortened(&String::from_utf8_lossy(last.prefix), 80);
    let lines =
        if dropped == 1 { "1 line is no frame".into() } else { format!("{dropped} lines are no frames, the last one") };
    let finding = Finding::warning("stdout", format!("{lines}, line {}: {text} ({})", last.number, last.why));
    let advice = "they are passed over, but may break other clients; what is no frame belongs on stderr";
    Some(finding.advise(advice).with("dropped", json!(dropped)).with("last", json!(text)))
}

/// How it ended once it was asked to.
pub(super) fn end(report: &CloseReport) -> Finding {
    let exit = report.exit.map_or_else(|| "has not ended".into(), |exit| exit.to_string());
    let text = format!("the runtime {exit}, {:.1?} after it was asked to end", report.took);
    let killed = report.rungs.iter().any(|rung| matches!(rung.rung, Rung::Terminate | Rung::Kill));
    let finding = match report.exit {
        Some(RuntimeExit::Code(0)) if !killed && report.left_behind == 0 => Finding::well("end", text),
        _ if report.left_behind > 0 => {
            Finding::warning("end", format!("{text}; it left {} processes, which were ended", report.left_behind))
                .advise("a runtime ends what it has started before it exits")
        }
        _ if killed => {
            Finding::warning("end", text).advise("it ends neither at `shutdown` nor at the end of its stdin")
        }
        _ => Finding::warning("end", text).advise("after `shutdown` a runtime exits with code 0"),
    };
    finding.with("seconds", json!(report.took.as_secs_f64()))
}
