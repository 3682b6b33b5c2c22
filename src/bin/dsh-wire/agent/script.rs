//! The script file: rules that choose the answers, tried before the directives.

use std::path::Path;
use std::time::Duration;

use dsh_wire::json::{Json, JsonString, Kind};
use dsh_wire::wire::stream::TokenUsage;
use regex_lite::{Regex, RegexBuilder};

use super::model::{self, Act, Fault, Reply, ToolUse};

/// Rules in the order in which they are tried.
#[derive(Debug, Default)]
pub(crate) struct Script(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    matches: Regex,
    /// One a step; not empty.
    replies: Vec<Reply>,
}

impl Script {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let wrong = |what: &dyn std::fmt::Display| format!("cannot use the script {}: {what}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        Self::parse(&text).map_err(|error| wrong(&error))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let script = Json::new(text).map_err(|error| error.to_string())?;
        if script.kind() != Kind::Array {
            return Err("it has to be a list of rules".into());
        }
        let rules = script.elements().enumerate();
        rules.map(|(index, rule)| self::rule(rule).map_err(|error| format!("rule {}: {error}", index + 1))).collect()
    }

    /// What is answered to a prompt in the step that many steps after it.
    pub(super) fn answer(&self, prompt: &JsonString, step: usize) -> Reply {
        let text = prompt.as_json_str().to_string_lossy();
        match self.0.iter().find(|rule| rule.matches.is_match(&text)) {
            Some(rule) => model::choose(rule.replies.clone(), step),
            None => model::answer(prompt.as_json_str(), step),
        }
    }
}

impl FromIterator<Rule> for Script {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        Self(rules.into_iter().collect())
    }
}

fn rule(rule: Json<'_>) -> Result<Rule, String> {
    let pattern = text(rule, "match")?.ok_or("it has no \"match\"")?;
    let matches = RegexBuilder::new(&pattern).dot_matches_new_line(true).build().map_err(|error| error.to_string())?;
    let replies = rule.member("replies").filter(|replies| replies.kind() == Kind::Array);
    let replies: Vec<Reply> =
        replies.ok_or("it has no list \"replies\"")?.elements().map(reply).collect::<Result<_, _>>()?;
    if replies.is_empty() {
        return Err("its \"replies\" are empty".into());
    }
    Ok(Rule { matches, replies })
}

fn reply(reply: Json<'_>) -> Result<Reply, String> {
    let mut made = Reply::text("");
    if reply.kind() != Kind::Object {
        return Err("a reply is no object".into());
    }
    for (name, value) in reply.members() {
        let wrong = || format!("a reply's \"{name}\" cannot be {}", value.get());
        let plain = || text(reply, &name.to_string_lossy())?.ok_or_else(wrong);
        match &*name.to_string_lossy() {
            "thinking" => made.thinking = Some(plain()?).filter(|thinking| !thinking.is_empty()),
            "text" => made.text = value.as_str().ok_or_else(wrong)?.to_buf(),
            "tools" => made.tools = value.elements().map(tool).collect::<Result<_, _>>()?,
            "status" => {
                let status = value.as_u64().and_then(|status| u16::try_from(status).ok()).ok_or_else(wrong)?;
                let times = reply.member("times").and_then(Json::as_u64);
                made.status = Some((status, times.map(|times| u32::try_from(times).unwrap_or(u32::MAX))));
            }
            "times" | "error_type" => {}
            "stop_reason" => made.max_tokens = plain()? == "max_tokens",
            "delay" => made.delay = seconds(value).ok_or_else(wrong)?,
            "delta_delay" => made.piece_delay = seconds(value).ok_or_else(wrong)?,
            "deltas" => made.pieces = value.as_u64().and_then(|n| usize::try_from(n).ok()).ok_or_else(wrong)?,
            "usage" => made.usage = usage(value, made.usage),
            "fault" => made.fault = Some(fault(&plain()?).ok_or_else(wrong)?),
            _ => made
                .acts
                .push(act(&name.to_string_lossy(), value)?.ok_or_else(|| format!("a reply has no \"{name}\""))?),
        }
    }
    Ok(made)
}

/// Members that the script files of other tools do not have.
fn act(name: &str, value: Json<'_>) -> Result<Option<Act>, String> {
    let number = |of: Json<'_>, name: &str| of.member(name).and_then(Json::as_u64);
    Ok(Some(match name {
        "flood" => {
            let bytes = number(value, "bytes").and_then(|bytes| usize::try_from(bytes).ok());
            Act::Flood { events: number(value, "events").unwrap_or(1000), bytes: bytes.unwrap_or(100) }
        }
        "die" => Act::Exit(value.as_i64().and_then(|code| i32::try_from(code).ok()).unwrap_or(1)),
        "kill" => Act::Kill,
        "panic" => Act::Panic,
        "stderr" => Act::Stderr(value.as_str().map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()),
        "ask" => Act::Ask {
            method: text(value, "method")?.ok_or("an \"ask\" has no \"method\"")?,
            params: value.member("params").unwrap_or(Json::EMPTY_OBJECT).to_buf(),
            within: value.member("within").and_then(seconds).unwrap_or(Duration::from_secs(10)),
        },
        _ => return Ok(None),
    }))
}

fn tool(tool: Json<'_>) -> Result<ToolUse, String> {
    let name = text(tool, "name")?.ok_or("a tool has no \"name\"")?;
    let arguments = tool.member("input").unwrap_or(Json::EMPTY_OBJECT).get().into();
    Ok(ToolUse { name, arguments })
}

fn usage(given: Json<'_>, or: TokenUsage) -> TokenUsage {
    let number = |name| given.member(name).and_then(Json::as_u64);
    let mut usage = or;
    usage.input_tokens = number("input_tokens").unwrap_or(or.input_tokens);
    usage.output_tokens = number("output_tokens").unwrap_or(or.output_tokens);
    usage.cache_read_tokens = number("cache_read_input_tokens").or(or.cache_read_tokens);
    usage.cache_write_tokens = number("cache_creation_input_tokens").or(or.cache_write_tokens);
    let parts =
        [Some(usage.input_tokens), Some(usage.output_tokens), usage.cache_read_tokens, usage.cache_write_tokens];
    usage.total_tokens = Some(parts.into_iter().flatten().fold(0, u64::saturating_add));
    usage
}

fn fault(name: &str) -> Option<Fault> {
    Some(match name {
        "cut" => Fault::Cut,
        "garbage" => Fault::Garbage,
        "sseerror" => Fault::Error,
        "empty" => Fault::Empty,
        _ => return None,
    })
}

/// A member that has to be a string where it is there.
fn text(of: Json<'_>, name: &str) -> Result<Option<String>, String> {
    match of.member(name) {
        None => Ok(None),
        Some(value) => match value.as_str() {
            Some(text) => Ok(Some(text.to_string_lossy().into_owned())),
            None => Err(format!("\"{name}\" cannot be {}", value.get())),
        },
    }
}

fn seconds(value: Json<'_>) -> Option<Duration> {
    value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_come_before_directives() {
        let script = r#"[
            {"match": "^hello", "replies": [{"tools": [{"name": "bash", "input": {"command": "ls"}}]},
                {"text": "done", "thinking": "hm", "delay": 0.5, "usage": {"output_tokens": 3}}]},
            {"match": "x.y", "replies": [{"status": 429, "times": 2, "text": "ok"}]}
        ]"#;
        let script = Script::parse(script).unwrap();
        let answer = |prompt: &str, step| script.answer(&prompt.into(), step);
        assert_eq!(answer("hello you", 0).tools[0].arguments, r#"{"command": "ls"}"#);
        let done = answer("hello you", 7);
        assert_eq!((done.text, done.delay), ("done".into(), Duration::from_millis(500)));
        assert_eq!((done.usage.output_tokens, done.usage.total_tokens), (3, Some(103)));
        assert_eq!(answer("x\ny", 0).status, Some((429, Some(2))));
        assert_eq!(answer("@say z", 0).text, "z".into());
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (script, expected) in [
            ("[", "the text ends inside a value"),
            ("{}", "it has to be a list of rules"),
            ("[{}]", "rule 1: it has no \"match\""),
            (r#"[{"match": "(", "replies": []}]"#, "rule 1: "),
            (r#"[{"match": "", "replies": []}]"#, "rule 1: its \"replies\" are empty"),
            (r#"[{"match": "", "replies": [{"text": 5}]}]"#, "rule 1: a reply's \"text\" cannot be 5"),
            (r#"[{"match": "", "replies": [{"txt": 5}]}]"#, "rule 1: a reply has no \"txt\""),
            (r#"[{"match": "", "replies": [{"fault": "x"}]}]"#, "rule 1: a reply's \"fault\" cannot be \"x\""),
        ] {
            let error = Script::parse(script).unwrap_err();
            assert!(error.contains(expected), "{script}: {error}");
        }
    }
}
