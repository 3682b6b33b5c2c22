//! Over the items of a container, in wire order: [`Members`] and [`Elements`], from [`Json::members`] and
//! [`Json::elements`].

use super::scan;
use super::value::{Json, JsonStr, Kind};

/// A walk over the inside of one container: item by item, with the punctuation between.
#[derive(Debug, Clone, Copy)]
struct Walk<'a> {
    /// Known to be JSON. More may follow the container.
    text: &'a str,
    /// Offset of the next item or of the closing bracket; `text.len()` where there is no container.
    at: usize,
}

impl<'a> Walk<'a> {
    fn new(json: Json<'a>, kind: Kind) -> Self {
        let text = json.get();
        let at = if json.kind() == kind { scan::skip_white(text.as_bytes(), 1) } else { text.len() };
        Self { text, at }
    }

    /// Whether the closing bracket has been reached.
    fn done(&self) -> bool {
        matches!(self.text.as_bytes().get(self.at), None | Some(b'}' | b']'))
    }

    /// Takes a name and stops behind its colon.
    fn take_name(&mut self) -> &'a str {
        let end = scan::string_end(self.text.as_bytes(), self.at);
        let name = self.text.get(self.at..end).unwrap_or_default();
        self.skip(end, b':');
        name
    }

    /// Takes the item at `at` and stops behind the comma that may follow.
    fn take(&mut self) -> Json<'a> {
        let bytes = self.text.as_bytes();
        let end = scan::value_end(bytes, self.at);
        let value = Json::from_proved(self.text.get(self.at..end).unwrap_or_default());
        self.skip(end, b',');
        value
    }

    /// Goes on behind a value that ends at `end`.
    fn skip(&mut self, end: usize, punctuation: u8) {
        let bytes = self.text.as_bytes();
        self.at = scan::skip_white(bytes, end);
        if bytes.get(self.at) == Some(&punctuation) {
            self.at = scan::skip_white(bytes, self.at + 1);
        }
    }
}

/// The members of an object, from [`Json::members`].
#[derive(Debug, Clone)]
pub struct Members<'a>(Walk<'a>);

impl<'a> Members<'a> {
    pub(super) fn new(json: Json<'a>) -> Self {
        Self(Walk::new(json, Kind::Object))
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (JsonStr<'a>, Json<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.next_name().map(|name| (name, self.take_value()))
    }
}

/// The same in halves, so that a member's own members can be read without a look for its end first.
impl<'a> Members<'a> {
    /// The name of the next member; [`Members::take_value`] or [`Members::walk_value`] must follow.
    pub(crate) fn next_name(&mut self) -> Option<JsonStr<'a>> {
        if self.0.done() { None } else { Some(JsonStr::from_proved(self.0.take_name())) }
    }

    /// The value whose name was read.
    pub(crate) fn take_value(&mut self) -> Json<'a> {
        self.0.take()
    }

    /// Where the value whose name was read is an object, has `read` walk over its members.
    pub(crate) fn walk_value<T>(&mut self, read: impl FnOnce(&mut Members<'a>) -> T) -> Option<T> {
        let Walk { text, at } = self.0;
        let bytes = text.as_bytes();
        if bytes.get(at) != Some(&b'{') {
            return None;
        }
        let at = scan::skip_white(bytes, at + 1);
        let mut inner = Members(Walk { text, at });
        let value = read(&mut inner);
        inner.by_ref().for_each(drop);
        self.0.skip(inner.0.at + 1, b',');
        Some(value)
    }
}

/// The elements of an array, from [`Json::elements`].
#[derive(Debug, Clone)]
pub struct Elements<'a>(Walk<'a>);

impl<'a> Elements<'a> {
    pub(super) fn new(json: Json<'a>) -> Self {
        Self(Walk::new(json, Kind::Array))
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.done() { None } else { Some(self.0.take()) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_walk_goes_on_behind_a_value_that_was_walked_over_in_part_or_whole() {
        for text in [r#"{"a":{"b":[1],"c":2},"d":3}"#, "{ \"a\" : { \"b\" : [ 1 ] , \"c\":2 } , \"d\" : 3 }"] {
            for taken in 0..=3 {
                let mut members = Json::new(text).unwrap().members();
                assert_eq!(members.next_name().map(JsonStr::get), Some("\"a\""));
                let inner =
                    members.walk_value(|inner| inner.take(taken).map(|(name, _)| name.get()).collect::<Vec<_>>());
                assert_eq!(inner.as_deref(), ["\"b\"", "\"c\""].get(..taken.min(2)), "{text}");
                assert_eq!(
                    members.next().map(|(name, value)| (name.get(), value.get())),
                    Some(("\"d\"", "3")),
                    "{text}"
                );
                assert!(members.next().is_none());
            }
        }
        let mut members = Json::new(r#"{"a":[{}],"b":1}"#).unwrap().members();
        members.next_name();
        assert!(members.walk_value(|_| ()).is_none(), "no object");
        assert_eq!(members.take_value().get(), "[{}]");
    }
}
