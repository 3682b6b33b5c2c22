//! `Serialize` without a derive, for objects that are only ever written.

/// Writes the fields of a struct as members of an object, in this order: `field => "nameOnTheWire"`, or
/// `field unless is_absent => "nameOnTheWire"`.
macro_rules! written {
    (
        [$($generics:tt)*] $name:ty { $($field:ident $(unless $is_absent:expr)? => $wire:literal,)* }
    ) => {
        impl<$($generics)*> serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                $(
                    if true $(&& !$is_absent(&self.$field))? {
                        serde::ser::SerializeMap::serialize_entry(&mut map, $wire, &self.$field)?;
                    }
                )*
                serde::ser::SerializeMap::end(map)
            }
        }
    };
}

pub(crate) use written;
