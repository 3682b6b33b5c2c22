//! A turn, from its first step to its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::vec::Vec;

use super::answer::{Answer, TurnError};
use super::event::{Attempt, Reason, StepId, ToolCall, ToolFailure, ToolMessage, ToolResult, ToolSource};
use super::message::TextBlock;
use super::session::Shared;
use super::tool::{ToolError, ToolOutput, ToolUse};
use super::{Failure, Message, Step, TurnAgent, answer, subagent};
use crate::server::NewEvent;
use crate::stdio::panic;

/// Takes one turn, which has begun, and sees that the next one is taken.
pub(super) fn turn(shared: &Arc<Shared>, messages: Vec<Message>) {
    subagent::let_parent_go_first(shared);
    let mut last = None;
    let reason = {
        let mut agent = shared.agent.lock().unwrap_or_else(PoisonError::into_inner);
        let number = shared.lock().turn();
        steps(shared, &mut **agent, number, messages, &mut last)
    };
    if let Some(messages) = shared.end_turn(reason, last) {
        shared.schedule(messages);
    }
}

/// Takes the steps of a turn; returns why it is over. `last` becomes the last answer.
fn steps(
    shared: &Arc<Shared>,
    agent: &mut dyn TurnAgent,
    turn: u64,
    mut messages: Vec<Message>,
    last: &mut Option<Answer>,
) -> Reason {
    let mut step = Step::new(shared, turn);
    loop {
        step.begin(messages);
        let outcome = guarded(|| {
            agent.begin_step(&mut step);
            step.tell_messages();
            agent.answer(&mut step)
        });
        let outcome = conclude(&mut step, agent, outcome);
        let mut state = shared.lock();
        state.tell(&NewEvent::new("step/end", &StepId { turn, step: step.number() }));
        let answer = match outcome {
            Ok(_) | Err(TurnError::Released) if state.is_releasing() => return Reason::RELEASED,
            Ok(answer) => answer,
            Err(TurnError::Failed { failure, .. }) => return Reason::Error { error: failure },
            Err(TurnError::Released) => return Reason::RELEASED,
        };
        if let Some(error) = state.take_log_failure() {
            return Reason::Error { error };
        }
        let (cut, has_tools) = (answer.is_cut(), answer.tools().next().is_some());
        *last = Some(answer);
        if cut {
            return Reason::MaxTokens;
        }
        messages = state.take_notes();
        if !has_tools && messages.is_empty() {
            return Reason::Completed;
        }
    }
}

/// Tells what the agent has answered, and runs the tools that it asks for.
fn conclude(
    step: &mut Step<'_>,
    agent: &mut dyn TurnAgent,
    outcome: Result<Answer, TurnError>,
) -> Result<Answer, TurnError> {
    let mut answer = match outcome {
        Ok(answer) => answer,
        Err(TurnError::Failed { failure, partial }) => {
            step.attempt(&partial, &failure);
            return Err(failure.into());
        }
        Err(TurnError::Released) => return Err(TurnError::Released),
    };
    let shared = step.shared();
    for tool in answer.tools_mut().filter(|tool| tool.id.is_empty()) {
        tool.id = std::format!("call_{:04}", shared.lock().next_call());
    }
    let data = answer.message(step.id(), &shared.ids.of_turn(), &shared.route, shared.sink.now());
    shared.lock().tell(&NewEvent::new("assistant/message", &data).append());
    use_tools(step, agent, &answer)?;
    Ok(answer)
}

/// Tells all calls, then runs one after the other.
fn use_tools(step: &mut Step<'_>, agent: &mut dyn TurnAgent, answer: &Answer) -> Result<(), TurnError> {
    let (turn, number) = step.id();
    let mut state = step.shared().lock();
    let calls: Vec<(u64, &ToolUse)> = answer
        .tools()
        .map(|tool| {
            let (call_id, name, arguments) = (tool.id(), tool.name(), tool.arguments());
            let call = ToolCall { turn, step: number, call_id, name, arguments };
            (state.tell(&NewEvent::new("tool/call", &call)), tool)
        })
        .collect();
    drop(state);
    for (seq, tool) in calls {
        let outcome = catch_unwind(AssertUnwindSafe(|| agent.use_tool(step, tool))).unwrap_or_else(|panic| {
            Err(std::format!("Error: the tool panicked: {}", panic::text(&*panic).unwrap_or("no message")).into())
        });
        let released = step.is_released();
        let outcome = if released { Err(ToolError::aborted()) } else { outcome };
        tell_result(step, seq, tool, outcome);
        if released {
            return Err(TurnError::Released);
        }
    }
    Ok(())
}

fn tell_result(step: &Step<'_>, seq: u64, tool: &ToolUse, outcome: Result<ToolOutput, ToolError>) {
    let is_error = outcome.is_err();
    let (content, kind) = match outcome {
        Ok(ToolOutput(content)) => (content, None),
        Err(error) => (answer::buf(&[TextBlock::new(error.text.into())]), error.kind),
    };
    let (turn, number) = step.id();
    let shared = step.shared();
    let message = ToolMessage {
        role: "tool",
        source: ToolSource { kind: "tool", call_id: tool.id() },
        tool_call_id: tool.id(),
        content: &content,
        is_error,
        id: &shared.ids.of_turn(),
    };
    let error = kind.as_ref().map(|(name, code)| ToolFailure { name, code });
    let result = ToolResult { turn, step: number, message, error };
    let event = NewEvent { source_event_seqs: &[seq], ..NewEvent::new("tool/result", &result).append() };
    shared.lock().tell(&event);
}

/// Runs the author's code; a panic, which the panic hook has told on stderr, becomes a failure.
fn guarded(call: impl FnOnce() -> Result<Answer, TurnError>) -> Result<Answer, TurnError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        Err(Failure::new(
            std::format!("the agent panicked: {}", panic::text(&*panic).unwrap_or("no message")),
            "UNKNOWN",
        )
        .into())
    })
}

impl Step<'_> {
    /// Tells `assistant/attempt`: a call of the model that has given no message, with what had come of it.
    pub fn attempt(&self, partial: &Answer, failure: &Failure) -> u64 {
        let (turn, step) = self.id();
        let stream = partial.stream(self.now(), Some(failure));
        self.tell(&NewEvent::new("assistant/attempt", &Attempt { turn, step, stream }))
    }
}
