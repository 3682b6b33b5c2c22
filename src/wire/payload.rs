//! How a payload is written down: once, as a list of members, from which its struct, [`Decode`] and `Serialize` follow.
//!
//! Three macros, for the three shapes that JSON of this protocol has:
//!
//! * [`payload!`]: an object. `field: Type = "nameOnTheWire"`, in wire order; an `Option` may be absent.
//! * [`tagged!`]: an object of which one member, the tag, says what the others are. What has no known tag is kept
//!   whole in `Other`, so the vocabulary stays open and nothing is lost.
//! * [`open_enum!`]: a string out of a list that may grow; a word not on it is kept in `Other`.
//!
//! [`Decode`]: super::Decode

/// Reads the members of an object in one pass into variables named like the fields, or returns the error. Duplicates
/// overwrite each other before anything is decoded, so that only the last one counts.
macro_rules! read_members {
    ($members:expr, $of:expr, $($field:ident: $ty:ty = $wire:literal),*) => {
        $(let mut $field = None;)*
        for (name, value) in $members {
            // Names on the wire have no escapes; none of ours holds what lossy could bring in.
            let lossy;
            let name = match name.as_plain() {
                Some(plain) => plain,
                None => {
                    lossy = name.to_string_lossy();
                    &*lossy
                }
            };
            match name {
                $($wire => $field = Some(value),)*
                _ => _ = value,
            }
        }
        $(
            let $field = <$ty as $crate::wire::Decode>::decode_member($field)
                .map_err(|error: $crate::wire::DecodeError| error.within($of, $wire))?;
        )*
    };
}

/// Writes those members that are not absent.
macro_rules! write_members {
    ($map:ident, $($value:expr => $wire:literal),*) => {
        $(
            if !$crate::wire::Decode::is_absent($value) {
                serde::ser::SerializeMap::serialize_entry(&mut $map, $wire, $value)?;
            }
        )*
    };
}

/// An object: see the module.
macro_rules! payload {
    // A view, which lends.
    (
        $(#[$meta:meta])*
        pub struct $name:ident<$lt:lifetime> { $($members:tt)* }
    ) => {
        payload!(@item [$(#[$meta])* #[derive(Copy)]] $name [$lt] [<$lt>] { $($members)* });
    };
    // One that owns.
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($members:tt)* }
    ) => {
        payload!(@item [$(#[$meta])*] $name ['de] [] { $($members)* });
    };
    (
        @item [$(#[$meta:meta])*] $name:ident [$lt:lifetime] [$($generics:tt)*]
        { $($(#[$doc:meta])* $field:ident: $ty:ty = $wire:literal,)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub struct $name $($generics)* {
            $($(#[$doc])* pub $field: $ty,)*
        }

        impl<$lt> $crate::wire::Decode<$lt> for $name $($generics)* {
            fn decode(json: $crate::json::Json<$lt>) -> Result<Self, $crate::wire::DecodeError> {
                if json.kind() != $crate::json::Kind::Object {
                    let error = $crate::wire::DecodeError::unexpected($crate::wire::Expected::Object, json);
                    return Err(error.within(stringify!($name), ""));
                }
                Self::from_members(&mut json.members())
            }
        }

        impl<$lt> $name $($generics)* {
            pub(crate) fn from_members(
                members: &mut $crate::json::Members<$lt>,
            ) -> Result<Self, $crate::wire::DecodeError> {
                read_members!(members, stringify!($name), $($field: $ty = $wire),*);
                Ok(Self { $($field),* })
            }
        }

        impl<$lt> serde::Serialize for $name $($generics)* {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                write_members!(map, $(&self.$field => $wire),*);
                serde::ser::SerializeMap::end(map)
            }
        }
    };
}

/// An object with a tag: see the module.
macro_rules! tagged {
    (
        $(#[$meta:meta])*
        pub enum $name:ident by $tag:literal {
            $(
                $(#[$variant_meta:meta])*
                $variant:ident $({ $($(#[$doc:meta])* $field:ident: $ty:ty = $wire:literal,)* })? = $word:literal,
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        #[non_exhaustive]
        pub enum $name<'a> {
            $(
                $(#[$variant_meta])*
                #[non_exhaustive]
                $variant $({ $($(#[$doc])* $field: $ty,)* })?,
            )*
            /// One that this version does not know, as it came.
            Other($crate::json::Json<'a>),
        }

        impl<'a> $name<'a> {
            #[doc = concat!("The word in `", $tag, "`; `None` where there is none.")]
            #[must_use]
            pub fn tag(&self) -> Option<$crate::json::JsonStr<'a>> {
                match self {
                    $(Self::$variant { .. } => {
                        Some($crate::json::JsonStr::from_proved(concat!("\"", $word, "\"")))
                    })*
                    Self::Other(json) => json.member($tag).and_then(|tag| tag.as_str()),
                }
            }
        }

        impl<'a> $crate::wire::Decode<'a> for $name<'a> {
            fn decode(json: $crate::json::Json<'a>) -> Result<Self, $crate::wire::DecodeError> {
                let Some(tag) = json.member($tag).and_then(|tag| tag.as_str()) else { return Ok(Self::Other(json)) };
                match &*tag.to_string_lossy() {
                    $($word => {
                        $(read_members!(
                            json.members(), concat!(stringify!($name), "::", stringify!($variant)), $($field: $ty = $wire),*
                        );)?
                        Ok(Self::$variant $({ $($field),* })?)
                    })*
                    _ => Ok(Self::Other(json)),
                }
            }
        }

        impl serde::Serialize for $name<'_> {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant $({ $($field),* })? => {
                        let mut map = serializer.serialize_map(None)?;
                        serde::ser::SerializeMap::serialize_entry(&mut map, $tag, $word)?;
                        $(write_members!(map, $($field => $wire),*);)?
                        serde::ser::SerializeMap::end(map)
                    })*
                    Self::Other(json) => json.serialize(serializer),
                }
            }
        }
    };
}

/// A string out of an open list: see the module.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name<'a> {
            $(#[doc = concat!("`", $word, "`.")] $(#[$variant_meta])* $variant,)*
            /// A word that this version does not know.
            Other($crate::json::JsonStr<'a>),
        }

        impl<'a> $name<'a> {
            /// The word on the wire.
            #[must_use]
            pub const fn as_json_str(self) -> $crate::json::JsonStr<'a> {
                match self {
                    $(Self::$variant => $crate::json::JsonStr::from_proved(concat!("\"", $word, "\"")),)*
                    Self::Other(word) => word,
                }
            }
        }

        impl<'a> $crate::wire::Decode<'a> for $name<'a> {
            fn decode(json: $crate::json::Json<'a>) -> Result<Self, $crate::wire::DecodeError> {
                let word = <$crate::json::JsonStr<'a> as $crate::wire::Decode>::decode(json)?;
                Ok(match &*word.to_string_lossy() {
                    $($word => Self::$variant,)*
                    _ => Self::Other(word),
                })
            }
        }

        impl core::fmt::Display for $name<'_> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.as_json_str().fmt(f)
            }
        }

        impl serde::Serialize for $name<'_> {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.as_json_str().serialize(serializer)
            }
        }
    };
}
