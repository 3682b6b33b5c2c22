//! The strings, numbers and words of a value in wire order, each with its place: [`Tokens`].

use alloc::vec::Vec;
use core::ops::Range;

use super::value::Json;

/// Walks over a value of any depth, without recursion.
#[derive(Debug)]
pub(crate) struct Tokens<'a> {
    text: &'a str,
    at: usize,
    open: Vec<Open<'a>>,
}

/// A container that has begun.
#[derive(Debug, Clone, Copy)]
struct Open<'a> {
    object: bool,
    /// In an object: the next string is a name.
    at_name: bool,
    /// The member whose value is being passed; in an array, the member that the array is the value of.
    member: Option<&'a str>,
}

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    /// Where it stands in the text; of strings and names, what stands inside the quotes.
    pub(crate) range: Range<usize>,
    /// The text there.
    pub(crate) text: &'a str,
    /// The member that it is the value of, or an element of the value of, as it is written; its own of a name.
    pub(crate) member: Option<&'a str>,
    /// How many containers it stands in.
    pub(crate) depth: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Name,
    String,
    Number,
    /// `true`, `false` or `null`.
    Word,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(json: Json<'a>) -> Self {
        Self { text: json.get(), at: 0, open: Vec::new() }
    }

    fn token(&mut self, kind: TokenKind, range: Range<usize>) -> Token<'a> {
        let text = self.text.get(range.clone()).unwrap_or_default();
        let depth = self.open.len();
        let open = self.open.last_mut();
        if kind == TokenKind::Name
            && let Some(object) = open
        {
            (object.at_name, object.member) = (false, Some(text));
        }
        let member = self.open.last().and_then(|open| open.member);
        Token { kind, range, text, member, depth }
    }

    /// The end of a string whose inside begins here.
    fn string_end(&self, from: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = from;
        while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
            at += found;
            if bytes.get(at) == Some(&b'"') {
                return at;
            }
            at += 2;
        }
        bytes.len()
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let bytes = self.text.as_bytes();
        loop {
            let at = self.at;
            self.at += 1;
            match bytes.get(at)? {
                byte @ (b'{' | b'[') => {
                    let object = *byte == b'{';
                    let member = self.open.last().and_then(|open| open.member);
                    self.open.push(Open { object, at_name: object, member });
                }
                b'}' | b']' => drop(self.open.pop()),
                b',' => self.open.iter_mut().last().into_iter().for_each(|open| open.at_name = open.object),
                b'"' => {
                    let end = self.string_end(at + 1);
                    self.at = end + 1;
                    let name = self.open.last().is_some_and(|open| open.at_name);
                    return Some(self.token(if name { TokenKind::Name } else { TokenKind::String }, at + 1..end));
                }
                b':' | b' ' | b'\t' | b'\n' | b'\r' => {}
                first => {
                    let rest = bytes.get(at..).unwrap_or_default();
                    let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
                    let end = rest.iter().position(ends).map_or(bytes.len(), |len| at + len);
                    self.at = end;
                    let kind = if first.is_ascii_alphabetic() { TokenKind::Word } else { TokenKind::Number };
                    return Some(self.token(kind, at..end));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let seen: Vec<String> = Tokens::new(Json::new(text).unwrap())
            .map(|token| {
                assert_eq!(&text[token.range], token.text);
                format!("{:?} {} {:?} {}", token.kind, token.text, token.member.unwrap_or("-"), token.depth)
            })
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn tokens_and_where_they_stand() {
        check("-1.5e3", &["Number -1.5e3 \"-\" 0"]);
        check(r#""a\\\"b""#, &[r#"String a\\\"b "-" 0"#]);
        check(
            r#"{"a" : [1, "x", {"b":null}, "y"],"c":{} , "a":true}"#,
            &[
                r#"Name a "a" 1"#,
                r#"Number 1 "a" 2"#,
                r#"String x "a" 2"#,
                r#"Name b "b" 3"#,
                r#"Word null "b" 3"#,
                r#"String y "a" 2"#,
                r#"Name c "c" 1"#,
                r#"Name a "a" 1"#,
                r#"Word true "a" 1"#,
            ],
        );
    }
}
