//! Which lines are shown.

use dsh_wire::frame::Frame;

use super::facts::{Call, Facts};
use super::input::{Content, Item};

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// It wants an answer
    Request,
    /// It answers a request
    Response,
    /// It answers a request with an error
    Error,
    /// It wants no answer
    Notification,
    /// It is no frame
    Dropped,
    /// The runtime's stderr, in a recording
    Stderr,
    /// What the recorder could not keep
    Lost,
    /// A line of the file that is no entry of a recording
    Damaged,
}

impl Kind {
    pub(crate) fn of(content: &Content<'_>) -> Self {
        match content {
            Content::Frame(Frame::Request { .. }) => Self::Request,
            Content::Frame(Frame::Notification { .. }) => Self::Notification,
            Content::Frame(Frame::Response { outcome: Ok(_), .. }) => Self::Response,
            Content::Frame(Frame::Response { outcome: Err(_), .. }) => Self::Error,
            Content::Dropped(_) => Self::Dropped,
            Content::Stderr => Self::Stderr,
            Content::Lost => Self::Lost,
            Content::Damaged(_) => Self::Damaged,
        }
    }

    /// Whether something went wrong.
    pub(crate) fn is_bad(self) -> bool {
        matches!(self, Self::Error | Self::Dropped | Self::Lost | Self::Damaged)
    }

    /// As tables and JSON call it: an error is a response.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response | Self::Error => "response",
            Self::Notification => "notification",
            Self::Dropped => "dropped",
            Self::Stderr => "stderr",
            Self::Lost => "lost",
            Self::Damaged => "damaged",
        }
    }
}

/// Of each option that is given, one value has to match.
#[derive(clap::Args)]
#[command(
    next_help_heading = "Filters (each may be given more than once; `*` and `?` stand for any text and any character)"
)]
pub(crate) struct Filter {
    /// Only requests and notifications of this method, and in a recording the responses to them
    #[arg(long, value_name = "PATTERN")]
    method: Vec<String>,

    /// Only events of this type, such as `tool/*`
    #[arg(long, value_name = "PATTERN")]
    event: Vec<String>,

    /// Only what belongs to this session, and the beginning and end of its sub-agents
    #[arg(long, value_name = "PATTERN")]
    session: Vec<String>,

    /// Only lines of this kind
    #[arg(long)]
    kind: Vec<Kind>,
}

impl Filter {
    /// Whether everything passes.
    pub(crate) fn is_empty(&self) -> bool {
        self.method.is_empty() && self.event.is_empty() && self.session.is_empty() && self.kind.is_empty()
    }

    pub(crate) fn passes(&self, item: &Item<'_>, facts: &Facts<'_>) -> bool {
        let kind = Kind::of(&item.content);
        let of_kind = |wanted: &Kind| *wanted == kind || (*wanted == Kind::Response && kind == Kind::Error);
        (self.kind.is_empty() || self.kind.iter().any(of_kind))
            && matches_any(&self.method, [facts.method.as_deref()])
            && matches_any(&self.event, [facts.event.as_ref().map(|event| &*event.kind)])
            && matches_any(&self.session, [facts.session.as_deref(), facts.child.as_deref()])
    }

    /// The same for a request that waits for its answer.
    pub(crate) fn passes_call(&self, call: &Call) -> bool {
        (self.kind.is_empty() || self.kind.contains(&Kind::Request))
            && matches_any(&self.method, [Some(&*call.method)])
            && matches_any(&self.event, [None])
            && matches_any(&self.session, [call.session.as_deref()])
    }
}

fn matches_any<const N: usize>(patterns: &[String], texts: [Option<&str>; N]) -> bool {
    let texts = || texts.iter().flatten();
    patterns.is_empty() || patterns.iter().any(|pattern| texts().any(|text| matches(pattern, text)))
}

/// `*` is any text, `?` any character, everything else itself.
fn matches(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    // Where to go on if what follows the last `*` does not match: behind that `*`, one character later in the text.
    let mut again = None;
    loop {
        let rest = text.clone();
        match (pattern.next(), text.next()) {
            (Some('*'), _) => {
                text = rest;
                again = Some((pattern.clone(), text.clone()));
            }
            (Some('?'), Some(_)) => {}
            (Some(wanted), Some(c)) if wanted == c => {}
            (None, None) => return true,
            _ => {
                let Some((behind_star, from)) = &mut again else { return false };
                if from.next().is_none() {
                    return false;
                }
                (pattern, text) = (behind_star.clone(), from.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let check = |pattern: &str, yes: &[&str], no: &[&str]| {
            for text in yes {
                assert!(matches(pattern, text), "{pattern} {text}");
            }
            for text in no {
                assert!(!matches(pattern, text), "{pattern} {text}");
            }
        };
        check("s1", &["s1"], &["s10", "as1", ""]);
        check("", &[""], &["a"]);
        check("*", &["", "a", "a/b"], &[]);
        check("tool/*", &["tool/call", "tool/"], &["tool", "atool/x"]);
        check("*/end", &["turn/end", "a/end/end", "/end"], &["turn/ends", "end"]);
        check("s?", &["s1", "sé"], &["s", "s12"]);
        check("*a*b?", &["abc", "xaxbx", "abbb"], &["ab", "ba", "b"]);
        check("**a", &["a", "ba"], &["ab"]);
        let many = "a".repeat(10_000);
        assert!(!matches("*a*a*a*a*a*b", &many), "and in no long time");
    }
}
