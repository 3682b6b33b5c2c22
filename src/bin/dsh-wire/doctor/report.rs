//! What was found, check by check, for people or for machines.

use std::io::{self, LineWriter, Write};

use serde_json::{Map, Value, json};

use crate::console::Console;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::terminal::{Styles, Visible};

/// The result of one check.
pub(super) struct Finding {
    name: &'static str,
    state: State,
    text: String,
    /// What to do about it.
    advice: Option<String>,
    /// What the runtime itself said.
    quoted: Vec<String>,
    data: Map<String, Value>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Well,
    Warning,
    Fault(Exit),
}

/// How many lines of the runtime's are shown.
const QUOTED: usize = 20;

impl Finding {
    pub(super) fn well(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, state: State::Well, text: text.into(), advice: None, quoted: Vec::new(), data: Map::new() }
    }

    pub(super) fn warning(name: &'static str, text: impl Into<String>) -> Self {
        Self { state: State::Warning, ..Self::well(name, text) }
    }

    pub(super) fn fault(name: &'static str, exit: Exit, text: impl Into<String>) -> Self {
        Self { state: State::Fault(exit), ..Self::well(name, text) }
    }

    pub(super) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// The last lines of this.
    pub(super) fn quote(mut self, text: &str) -> Self {
        let lines = text.lines().count();
        self.quoted = text.lines().skip(lines.saturating_sub(QUOTED)).map(str::to_owned).collect();
        self
    }

    /// A fact for machines.
    pub(super) fn with(mut self, name: &str, value: Value) -> Self {
        self.data.insert(name.into(), value);
        self
    }

    fn write_text(&self, out: &mut impl Write, styles: Styles) -> io::Result<()> {
        let (mark, style) = match self.state {
            State::Well => ('✓', styles.good()),
            State::Warning => ('!', styles.doubtful()),
            State::Fault(_) => ('✗', styles.bad()),
        };
        writeln!(out, "{style}{mark}{style:#} {:<12} {}", self.name, Visible(&self.text))?;
        let faint = styles.faint();
        for line in &self.quoted {
            writeln!(out, "{:15}{faint}| {}{faint:#}", "", Visible(line))?;
        }
        self.advice.iter().try_for_each(|advice| writeln!(out, "{:15}→ {}", "", Visible(advice)))
    }

    fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        let state = match self.state {
            State::Well => "ok",
            State::Warning => "warning",
            State::Fault(_) => "fault",
        };
        let mut row = json!({"kind": "check", "name": self.name, "state": state, "text": self.text});
        if let Value::Object(row) = &mut row {
            row.extend(self.advice.iter().map(|advice| ("advice".into(), json!(advice))));
            row.extend((!self.quoted.is_empty()).then(|| ("stderr".into(), json!(self.quoted))));
            row.extend(self.data.clone());
        }
        writeln!(out, "{row}")
    }
}

/// Shows each finding as it comes, and keeps count.
pub(super) struct Report {
    console: Console,
    out: LineWriter<Output>,
    json: bool,
    styles: Styles,
    warnings: usize,
    faults: Vec<(&'static str, Exit)>,
}

impl Report {
    pub(super) fn new(json: bool, console: &Console) -> Self {
        let (console, out) = (console.clone(), console.stdout());
        Self { console, out, json, styles: Styles::of(&io::stdout()), warnings: 0, faults: Vec::new() }
    }

    pub(super) fn has_faults(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Not while a status line stands on the terminal.
    pub(super) fn add(&mut self, finding: Finding) -> Result<(), Failure> {
        match finding.state {
            State::Well => {}
            State::Warning => self.warnings += 1,
            State::Fault(exit) => self.faults.push((finding.name, exit)),
        }
        let out = &mut self.out;
        let written = match self.json {
            true => finding.write_json(out),
            false => finding.write_text(out, self.styles),
        };
        written.map_err(|error| self.console.output_failure(error))
    }

    /// Says how it all went.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let names: Vec<_> = self.faults.iter().map(|(name, _)| *name).collect();
        let exit = self.faults.last().map(|(_, exit)| *exit);
        let out = &mut self.out;
        let written = match (self.json, self.warnings) {
            (true, warnings) => {
                let exit = exit.map_or(0, Exit::code);
                writeln!(out, "{}", json!({"kind": "result", "exit": exit, "faults": names, "warnings": warnings}))
            }
            (false, _) if exit.is_some() => Ok(()),
            (false, 0) => writeln!(out, "all is well"),
            (false, 1) => writeln!(out, "it works, with 1 warning"),
            (false, warnings) => writeln!(out, "it works, with {warnings} warnings"),
        };
        written.map_err(|error| self.console.output_failure(error))?;
        match exit {
            Some(exit) => Err(Failure::Failed(exit, format!("a check has failed: {}", names.join(", ")).into())),
            None => Ok(()),
        }
    }
}
