//! Over the items of a container, in wire order: [`Members`] and [`Elements`], from [`Json::members`] and
//! [`Json::elements`].

use super::scan;
use super::value::{Json, JsonStr, Kind};

/// Where one item lies in a value: an item of an object or array that is itself an item of the value.
///
/// The scanner passes over every line once, to prove it. Who then asks for the members of `params.event` would pass over
/// the event's data again, which is nearly all of the line, only to find its end. So the scanner leaves word of where
/// the longest item of that depth lies, and the walk that comes there takes its end from here. It is a hint: a value
/// without one reads the same, in more time.
///
/// From the bracket or comma before the item to the one behind it, as offsets in the text of the value, which has no
/// white space between tokens. 0 and 0 where there is none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LongItem {
    start: u32,
    end: u32,
}

impl LongItem {
    pub(crate) const NONE: Self = Self { start: 0, end: 0 };

    /// From offsets in a text in which the value begins at `origin`.
    pub(crate) fn new(origin: usize, start: usize, end: usize) -> Self {
        let offset = |at: usize| at.checked_sub(origin).and_then(|at| u32::try_from(at).ok());
        match (offset(start), offset(end)) {
            (Some(start), Some(end)) => Self { start, end },
            _ => Self::NONE,
        }
    }

    /// The end of the item, if `at` is in it.
    pub(super) fn end_from(self, at: usize) -> Option<usize> {
        (self.start as usize..self.end as usize).contains(&at).then_some(self.end as usize)
    }
}

/// A walk over the inside of one container: item by item, with the punctuation between.
#[derive(Debug, Clone, Copy)]
struct Walk<'a> {
    /// Known to be JSON. More may follow the container.
    text: &'a str,
    /// Offset of the next item or of the closing bracket; `text.len()` where there is no container.
    at: usize,
    /// Of this container.
    long: LongItem,
    /// Of the containers in it.
    inner_long: LongItem,
}

impl<'a> Walk<'a> {
    fn new(json: Json<'a>, kind: Kind) -> Self {
        let text = json.get();
        let at = if json.kind() == kind { scan::skip_white(text.as_bytes(), 1) } else { text.len() };
        Self { text, at, long: LongItem::NONE, inner_long: json.long_item() }
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
        let end = self.long.end_from(self.at).unwrap_or_else(|| scan::value_end(bytes, self.at));
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
        let Walk { text, at, inner_long, .. } = self.0;
        let bytes = text.as_bytes();
        if bytes.get(at) != Some(&b'{') {
            return None;
        }
        let at = scan::skip_white(bytes, at + 1);
        let mut inner = Members(Walk { text, at, long: inner_long, inner_long: LongItem::NONE });
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
