//! What a person sees of a run: the answer and the tool calls as they come.

use std::io::{self, Write};

use dsh_wire::json::{Json, JsonStr};
use dsh_wire::wire::stream::StreamChunk;
use dsh_wire::wire::turn::ToolResult;
use dsh_wire::wire::{Block, Blocks, Decode, EventData, Notification, NotificationBody};

use crate::terminal::{Styles, VisibleText, shortened};

/// How much of arguments and results is shown.
const WIDTH: usize = 100;

/// Writes to a terminal.
pub(crate) struct View<W> {
    out: W,
    styles: Styles,
    /// Text of the message on its way has been shown, piece by piece.
    streamed: bool,
    /// The cursor stands behind text.
    unfinished: bool,
}

impl<W: Write> View<W> {
    pub(crate) fn new(out: W, styles: Styles) -> Self {
        Self { out, styles, streamed: false, unfinished: false }
    }

    /// Shows what a notification says to a person who follows the session; most say nothing. Returns whether the
    /// cursor stands at the start of a line.
    pub(crate) fn show(&mut self, session: JsonStr<'_>, notification: &Notification<'_>) -> io::Result<bool> {
        match &notification.body {
            NotificationBody::SessionEvent(params) if params.session_id == session => {
                if params.event.kind == "assistant/message" {
                    self.show_message(params.event.data)?;
                } else if let Ok(data) = params.event.decode_data() {
                    // What is not as it should be is for `--json` to show.
                    self.show_event(&data)?;
                }
            }
            NotificationBody::SubagentStarted(started) => {
                self.aside(format_args!("sub-agent {} started", visible(started.child_session_id)))?;
            }
            NotificationBody::SubagentFinished(finished) => {
                let reason = visible(finished.stop_reason.as_json_str());
                self.aside(format_args!("sub-agent {} finished: {reason}", visible(finished.child_session_id)))?;
            }
            _ => {}
        }
        self.out.flush()?;
        Ok(!self.unfinished)
    }

    /// Shows the text of a message, whatever else is in it, unless it has been shown.
    fn show_message(&mut self, data: Json<'_>) -> io::Result<()> {
        let content = data.member("message").unwrap_or(data).member("content");
        let content = content.and_then(|content| Blocks::decode(content).ok());
        if let Some(content) = content.filter(|_| !std::mem::take(&mut self.streamed)) {
            self.write_text(content.text().as_json_str())?;
        }
        self.end_line()
    }

    fn show_event(&mut self, data: &EventData<'_>) -> io::Result<()> {
        match data {
            EventData::AssistantChunk(data) => match &data.chunk {
                StreamChunk::TextDelta { text, .. } => {
                    self.streamed = true;
                    self.write_text(*text)
                }
                _ => Ok(()),
            },
            EventData::ToolCall(call) => {
                let style = self.styles.heading();
                self.aside(format_args!("{style}{}{style:#} {}", visible(call.name), visible(call.arguments)))
            }
            EventData::ToolResult(result) => self.show_result(result),
            EventData::LlmRetry(retry) => {
                let most = retry.max_retries.map(|most| format!(" of {most}")).unwrap_or_default();
                let (number, seconds, why) = (retry.retry, retry.delay_ms / 1000.0, visible(retry.failure.message));
                self.aside(format_args!("retry {number}{most} in {seconds:.1} s: {why}"))
            }
            _ => Ok(()),
        }
    }

    fn show_result(&mut self, result: &ToolResult<'_>) -> io::Result<()> {
        let text = first_text(&result.message.content);
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let line = shortened(lines.next().unwrap_or_default(), WIDTH);
        let more = if lines.next().is_some() { " …" } else { "" };
        let failed = result.error.is_some() || result.message.is_error == Some(true);
        let style = if failed { self.styles.bad() } else { self.styles.faint() };
        self.end_line()?;
        writeln!(self.out, "  {style}{line}{more}{style:#}")
    }

    /// A line that is not of the answer. Text of the peer's in it has been made visible.
    fn aside(&mut self, what: std::fmt::Arguments<'_>) -> io::Result<()> {
        self.end_line()?;
        let style = self.styles.aside();
        writeln!(self.out, "{style}●{style:#} {what}")
    }

    fn write_text(&mut self, text: JsonStr<'_>) -> io::Result<()> {
        let text = text.to_string_lossy();
        if let Some(last) = text.chars().last() {
            write!(self.out, "{}", VisibleText(&text))?;
            self.unfinished = last != '\n';
        }
        Ok(())
    }

    /// Shows all that is held back.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.end_line()?;
        self.out.flush()
    }

    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.unfinished) { self.out.write_all(b"\n") } else { Ok(()) }
    }
}

fn visible(text: JsonStr<'_>) -> String {
    shortened(&text.to_string_lossy(), WIDTH)
}

/// The first text of what a tool answered. Before 0.2.1 it is a block in a block.
fn first_text(blocks: &Blocks<'_>) -> String {
    blocks
        .iter()
        .find_map(|block| match block {
            Ok(Block::Text { text, .. }) => Some(text.to_string_lossy().into_owned()),
            Ok(Block::ToolResult { content, .. }) => Some(content.text().to_string()),
            _ => None,
        })
        .unwrap_or_default()
}

/// What is waited for after this.
pub(crate) fn activity(data: &EventData<'_>) -> Option<String> {
    match data {
        EventData::ToolCall(call) => Some(format!("running {}", call.name)),
        EventData::LlmRetry(_) => Some("waiting to try again".into()),
        EventData::StepStart(_) | EventData::LlmRetryStarted(_) => Some("waiting for the model".into()),
        _ => None,
    }
}
