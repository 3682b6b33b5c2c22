//! From JSON to values: [`Decode`], and the views that put it off, [`List`] and [`Lazy`].

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::ser::{Error as _, SerializeSeq};
use serde::{Serialize, Serializer};

use crate::json::{Elements, Json, JsonBuf, JsonStr, JsonString, Kind};

/// A value that can be read from JSON of the wire.
///
/// Of a member that is there more than once the last one counts, as in JavaScript, and only that one is looked at.
/// Members that a type does not know are passed over; who wants them keeps the [`Json`]. Whole numbers may be written
/// `1.0` or `1e0`.
///
/// An optional member is an `Option`: absent is `None`, and so is `null`, which JavaScript never writes for an absent
/// member but other runtimes do. An optional member whose type is raw [`Json`] keeps a `null` as `Some`, because there
/// `null` is a value of its owner's. An optional member of the wrong kind is an error, not `None`: nothing goes
/// missing in silence. A member that must be there but may be `null` is a [`Nullable`].
pub trait Decode<'a>: Sized {
    /// Reads the value.
    ///
    /// # Errors
    /// What came where something else belongs.
    fn decode(json: Json<'a>) -> Result<Self, DecodeError>;

    /// Reads the value of a member, `None` where the object has none of that name.
    ///
    /// # Errors
    /// As [`Decode::decode`]; for types that are not optional also that the member is missing.
    fn decode_member(json: Option<Json<'a>>) -> Result<Self, DecodeError> {
        json.map_or(Err(DecodeError::new(Problem::Missing)), Self::decode)
    }

    /// Reads the value of an optional member that is there.
    ///
    /// # Errors
    /// As [`Decode::decode`].
    fn decode_optional(json: Json<'a>) -> Result<Option<Self>, DecodeError> {
        if json.is_null() { Ok(None) } else { Self::decode(json).map(Some) }
    }

    /// Whether an object that is written leaves the member out.
    fn is_absent(&self) -> bool {
        false
    }
}

/// A piece of JSON that is not what its place in the protocol asks for. The text itself is still with the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeError {
    /// The type that was being read; the innermost that has members.
    of: &'static str,
    /// The member of it, by its name on the wire; empty where it is the whole value.
    member: &'static str,
    problem: Problem,
}

/// What is wrong, in a [`DecodeError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The object has no such member.
    Missing,
    /// The value is of another kind or out of range.
    Unexpected {
        /// What belongs there.
        expected: Expected,
        /// The kind of what came.
        found: Kind,
    },
}

/// What belongs in a place, in a [`DecodeError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// An object.
    Object,
    /// An array.
    Array,
    /// A string.
    String,
    /// `true` or `false`.
    Bool,
    /// `true`, because `false` is never said.
    True,
    /// A finite number.
    Number,
    /// A whole number in the range of `i64`.
    Whole,
    /// A whole number from 0 in the range of `u64`.
    Count,
}

impl DecodeError {
    pub(crate) const fn new(problem: Problem) -> Self {
        Self { of: "", member: "", problem }
    }

    pub(crate) fn unexpected(expected: Expected, found: Json<'_>) -> Self {
        Self::new(Problem::Unexpected { expected, found: found.kind() })
    }

    /// Says where it happened, unless something further inside has said so.
    #[must_use]
    pub(crate) fn within(mut self, of: &'static str, member: &'static str) -> Self {
        if self.of.is_empty() {
            (self.of, self.member) = (of, member);
        }
        self
    }

    /// The type that was being read: the innermost that has a name; empty for a bare string or number.
    #[must_use]
    pub const fn of(&self) -> &'static str {
        self.of
    }

    /// The member of it, by its name on the wire; `None` where the value as a whole is wrong.
    #[must_use]
    pub const fn member(&self) -> Option<&'static str> {
        if self.member.is_empty() { None } else { Some(self.member) }
    }

    /// What is wrong.
    #[must_use]
    pub const fn problem(&self) -> Problem {
        self.problem
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.of, self.member) {
            ("", _) => f.write_str("cannot read the value: ")?,
            (of, "") => write!(f, "cannot read {of}: ")?,
            (of, member) => write!(f, "cannot read member \"{member}\" of {of}: ")?,
        }
        match self.problem {
            Problem::Missing => f.write_str("it is missing"),
            Problem::Unexpected { expected, found } => {
                let expected = match expected {
                    Expected::Object => "an object",
                    Expected::Array => "an array",
                    Expected::String => "a string",
                    Expected::Bool => "true or false",
                    Expected::True => "true",
                    Expected::Number => "a finite number",
                    Expected::Whole => "a whole number",
                    Expected::Count => "a whole number from 0",
                };
                write!(f, "expected {expected}, found {found}")
            }
        }
    }
}

impl core::error::Error for DecodeError {}

/// An array of the wire whose elements are decoded when asked for; only that it is an array is known.
///
/// It is written element by element through their type, which fails where an element does not decode; where that must
/// not happen, write [`List::json`].
pub struct List<'a, T> {
    /// An array.
    json: Json<'a>,
    element: PhantomData<fn() -> T>,
}

impl<'a, T: Decode<'a>> List<'a, T> {
    /// Decodes the elements one by one.
    pub fn iter(&self) -> ListIter<'a, T> {
        ListIter { elements: self.json.elements(), element: PhantomData }
    }
}

impl<'a, T> List<'a, T> {
    /// The array as it came.
    #[must_use]
    pub const fn json(&self) -> Json<'a> {
        self.json
    }

    /// Whether it has no elements; looks at their beginning only.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.json.elements().next().is_none()
    }
}

/// The elements of a [`List`].
pub struct ListIter<'a, T> {
    elements: Elements<'a>,
    element: PhantomData<fn() -> T>,
}

impl<'a, T: Decode<'a>> Iterator for ListIter<'a, T> {
    type Item = Result<T, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.elements.next().map(T::decode)
    }
}

impl<'a, T: Decode<'a>> IntoIterator for List<'a, T> {
    type Item = Result<T, DecodeError>;
    type IntoIter = ListIter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: Decode<'a>> IntoIterator for &List<'a, T> {
    type Item = Result<T, DecodeError>;
    type IntoIter = ListIter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> Decode<'a> for List<'a, T> {
    fn decode(json: Json<'a>) -> Result<Self, DecodeError> {
        match json.kind() {
            Kind::Array => Ok(Self { json, element: PhantomData }),
            _ => Err(DecodeError::unexpected(Expected::Array, json)),
        }
    }
}

impl<'a, T: Decode<'a> + Serialize> Serialize for List<'a, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        for element in self {
            seq.serialize_element(&element.map_err(S::Error::custom)?)?;
        }
        seq.end()
    }
}

/// A value whose shape belongs to somebody else, such as a model provider: decoded when asked for, so that a shape
/// nobody here knows does not spoil what is around it. It is written through its type, as a [`List`] is.
pub struct Lazy<'a, T> {
    json: Json<'a>,
    value: PhantomData<fn() -> T>,
}

impl<'a, T: Decode<'a>> Lazy<'a, T> {
    /// Decodes the value.
    ///
    /// # Errors
    /// What came where something else belongs.
    pub fn decode(&self) -> Result<T, DecodeError> {
        T::decode(self.json)
    }

    /// The value as it came.
    #[must_use]
    pub const fn json(&self) -> Json<'a> {
        self.json
    }
}

impl<'a, T> Decode<'a> for Lazy<'a, T> {
    fn decode(json: Json<'a>) -> Result<Self, DecodeError> {
        Ok(Self { json, value: PhantomData })
    }
}

impl<'a, T: Decode<'a> + Serialize> Serialize for Lazy<'a, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.decode().map_err(S::Error::custom)?.serialize(serializer)
    }
}

// Derives would ask the same of `T`, of which nothing is held.
macro_rules! holds_only_text {
    ($name:ident) => {
        impl<T> Clone for $name<'_, T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $name<'_, T> {}
        impl<T> PartialEq for $name<'_, T> {
            fn eq(&self, other: &Self) -> bool {
                self.json == other.json
            }
        }
        impl<T> Eq for $name<'_, T> {}
        impl<T> fmt::Debug for $name<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.json.fmt(f)
            }
        }
    };
}

holds_only_text!(List);
holds_only_text!(Lazy);

/// A member that must be there but may be `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nullable<T>(pub Option<T>);

impl<T: Serialize> Serialize for Nullable<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Nullable<T> {
    fn decode(json: Json<'a>) -> Result<Self, DecodeError> {
        T::decode_optional(json).map(Self)
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Option<T> {
    fn decode(json: Json<'a>) -> Result<Self, DecodeError> {
        T::decode_optional(json)
    }

    fn decode_member(json: Option<Json<'a>>) -> Result<Self, DecodeError> {
        json.map_or(Ok(None), T::decode_optional)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<'a> Decode<'a> for Json<'a> {
    fn decode(json: Json<'a>) -> Result<Self, DecodeError> {
        Ok(json)
    }

    fn decode_optional(json: Json<'a>) -> Result<Option<Self>, DecodeError> {
        Ok(Some(json))
    }
}

impl Decode<'_> for JsonBuf {
    fn decode(json: Json<'_>) -> Result<Self, DecodeError> {
        Ok(json.to_buf())
    }

    fn decode_optional(json: Json<'_>) -> Result<Option<Self>, DecodeError> {
        Ok(Some(json.to_buf()))
    }
}

impl<'a> Decode<'a> for JsonStr<'a> {
    fn decode(json: Json<'a>) -> Result<Self, DecodeError> {
        json.as_str().ok_or_else(|| DecodeError::unexpected(Expected::String, json))
    }
}

impl Decode<'_> for JsonString {
    fn decode(json: Json<'_>) -> Result<Self, DecodeError> {
        JsonStr::decode(json).map(JsonStr::to_buf)
    }
}

impl Decode<'_> for bool {
    fn decode(json: Json<'_>) -> Result<Self, DecodeError> {
        json.as_bool().ok_or_else(|| DecodeError::unexpected(Expected::Bool, json))
    }
}

impl Decode<'_> for u64 {
    fn decode(json: Json<'_>) -> Result<Self, DecodeError> {
        json.as_u64().ok_or_else(|| DecodeError::unexpected(Expected::Count, json))
    }
}

impl Decode<'_> for i64 {
    fn decode(json: Json<'_>) -> Result<Self, DecodeError> {
        json.as_i64().ok_or_else(|| DecodeError::unexpected(Expected::Whole, json))
    }
}

impl Decode<'_> for f64 {
    fn decode(json: Json<'_>) -> Result<Self, DecodeError> {
        json.as_f64().filter(|n| n.is_finite()).ok_or_else(|| DecodeError::unexpected(Expected::Number, json))
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Vec<T> {
    fn decode(json: Json<'a>) -> Result<Self, DecodeError> {
        List::decode(json)?.iter().collect()
    }
}
