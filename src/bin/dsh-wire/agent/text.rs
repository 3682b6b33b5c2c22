//! Texts that may hold lone surrogates.

use dsh_wire::json::{Json, JsonStr, JsonString};

/// Longest title, in bytes and in words.
const TITLE_BYTES: usize = 40;
const TITLE_WORDS: usize = 5;

/// Makes another text of one. Where Rust's strings cannot hold it, the escapes are worked on as they are written.
fn rewrite(text: JsonStr<'_>, change: impl Fn(&str) -> String) -> JsonString {
    match exact(text) {
        Some(exact) => change(&exact).as_str().into(),
        None => quoted(&change(inside(text))).unwrap_or_else(|| change(&text.to_string_lossy()).as_str().into()),
    }
}

/// What the text says, unless a lone surrogate is in it.
fn exact(text: JsonStr<'_>) -> Option<String> {
    let lossy = text.to_string_lossy();
    (JsonString::from(&*lossy).as_json_str() == text).then(|| lossy.into_owned())
}

fn inside(text: JsonStr<'_>) -> &str {
    text.get().get(1..text.get().len() - 1).unwrap_or_default()
}

/// The string that is written so; `None` if nothing is.
fn quoted(inside: &str) -> Option<JsonString> {
    let text = format!("\"{inside}\"");
    Json::new(&text).ok()?.as_str().map(|text| text.to_buf())
}

pub(super) fn echo(text: JsonStr<'_>) -> JsonString {
    rewrite(text, |text| format!("echo: {}", text.trim()))
}

/// The texts, with a blank between two.
pub(super) fn join(texts: &[JsonString]) -> JsonString {
    let texts: Vec<_> = texts.iter().map(|text| inside(text.as_json_str())).collect();
    quoted(&texts.join(" ")).unwrap_or_else(|| "".into())
}

/// The first words of a text; `None` if it has none.
pub(super) fn title(text: JsonStr<'_>) -> Option<JsonString> {
    let title = rewrite(text, |text| {
        let words: Vec<_> = text.split_whitespace().take(TITLE_WORDS).collect();
        let words: String = words.join(" ").chars().filter(|c| !c.is_control()).collect();
        let end = (0..=TITLE_BYTES.min(words.len())).rfind(|end| words.is_char_boundary(*end)).unwrap_or(0);
        words.get(..end).unwrap_or_default().trim().into()
    });
    (title.as_json_str() != "").then_some(title)
}

/// The text in about `count` pieces, none of them empty; in one where it cannot be cut.
pub(super) fn pieces(text: JsonStr<'_>, count: usize) -> Vec<JsonString> {
    let Some(exact) = exact(text) else { return [text.to_buf()].into() };
    let chars: Vec<char> = exact.chars().collect();
    let size = chars.len().div_ceil(count.max(1)).max(1);
    chars.chunks(size).map(|piece| piece.iter().collect::<String>().as_str().into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(json: &str) -> JsonString {
        Json::new(json).unwrap().as_str().unwrap().to_buf()
    }

    #[test]
    fn lone_surrogates_survive() {
        let text = string(r#""  lone \ud83d surrogate""#);
        assert_eq!(echo(text.as_json_str()), string(r#""echo: lone \ud83d surrogate""#));
        assert_eq!(title(text.as_json_str()), Some(string(r#""lone \ud83d surrogate""#)));
        assert_eq!(join(&[text.clone(), text.clone()]), string(r#""  lone \ud83d surrogate   lone \ud83d surrogate""#));
        assert_eq!(pieces(text.as_json_str(), 3), std::slice::from_ref(&text));
    }

    #[test]
    fn titles_are_short() {
        let title = |text: &str| title(JsonString::from(text).as_json_str()).map(|title| title.to_string());
        assert_eq!(title("@bash echo hi; pwd; exit 3").unwrap(), "@bash echo hi; pwd; exit");
        assert_eq!(title(" a \n b\t"), Some("a b".into()));
        assert_eq!(title("\u{1f600}".repeat(45).as_str()).unwrap().chars().count(), 10);
        assert_eq!(title(" \n "), None);
    }

    #[test]
    fn pieces_are_the_text() {
        let check = |text: &str, count, expected: &[&str]| {
            let pieces = pieces(JsonString::from(text).as_json_str(), count);
            assert_eq!(pieces, expected.iter().map(|piece| JsonString::from(*piece)).collect::<Vec<_>>());
        };
        check("echo: hello", 3, &["echo", ": he", "llo"]);
        check("", 3, &[]);
        check("ab", 3, &["a", "b"]);
    }
}
