//! JSON to be written, its members in the order in which they stand in the source.

use dsh_wire::json::{Json, JsonBuf, JsonStr, JsonString};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

/// One value. What comes from the wire is kept as text.
#[derive(Debug, Clone)]
pub(super) enum Value {
    /// A member that is left out.
    Absent,
    Bool(bool),
    Whole(u64),
    Fraction(f64),
    Text(JsonString),
    Raw(JsonBuf),
    Array(Vec<Value>),
    Object(Vec<(&'static str, Value)>),
}

/// `object! { "turn" => 1, "reason" => object! { "kind" => "completed" } }`
macro_rules! object {
    ($($name:literal => $value:expr),* $(,)?) => {
        $crate::agent::value::Value::Object(vec![$(($name, $crate::agent::value::Value::from($value))),*])
    };
}
pub(super) use object;

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent => serializer.serialize_unit(),
            Self::Bool(value) => value.serialize(serializer),
            Self::Whole(value) => value.serialize(serializer),
            Self::Fraction(value) => value.serialize(serializer),
            Self::Text(text) => text.serialize(serializer),
            Self::Raw(json) => json.serialize(serializer),
            Self::Array(elements) => {
                let mut seq = serializer.serialize_seq(Some(elements.len()))?;
                elements.iter().try_for_each(|element| seq.serialize_element(element))?;
                seq.end()
            }
            Self::Object(members) => {
                let mut map = serializer.serialize_map(None)?;
                for (name, value) in members.iter().filter(|(_, value)| !matches!(value, Self::Absent)) {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

macro_rules! from {
    ($($ty:ty: $value:ident => $to:expr,)*) => {
        $(impl From<$ty> for Value {
            fn from($value: $ty) -> Self {
                $to
            }
        })*
    };
}

from! {
    bool: value => Self::Bool(value),
    u64: value => Self::Whole(value),
    f64: value => Self::Fraction(value),
    &str: text => Self::Text(text.into()),
    String: text => Self::Text(text.as_str().into()),
    &String: text => Self::Text(text.as_str().into()),
    JsonString: text => Self::Text(text),
    &JsonString: text => Self::Text(text.clone()),
    JsonStr<'_>: text => Self::Text(text.to_buf()),
    Json<'_>: json => Self::Raw(json.to_buf()),
    JsonBuf: json => Self::Raw(json),
    Vec<Value>: elements => Self::Array(elements),
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Into::into)
    }
}

impl<T: Into<Value>, const N: usize> From<[T; N]> for Value {
    fn from(elements: [T; N]) -> Self {
        Self::Array(elements.into_iter().map(Into::into).collect())
    }
}
