//! Structs that preserve unknown fields.

/// Defines a struct that decodes some fields of a JSON object, all optional, and keeps all others
/// raw in `rest`. A `null` field counts as missing, and a field may have several spellings.
macro_rules! open_struct {
    ($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty = $($key:literal)|+,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Default)]
        pub(super) struct $name<'a> {
            $(pub(super) $field: Option<$type>,)*
            pub(super) rest: Vec<($crate::wire::lenient::Str<'a>, &'a serde_json::value::RawValue)>,
        }

        impl<'de: 'a, 'a> serde::Deserialize<'de> for $name<'a> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields<'a>(std::marker::PhantomData<&'a ()>);

                impl<'de: 'a, 'a> serde::de::Visitor<'de> for Fields<'a> {
                    type Value = $name<'a>;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                        let mut value = $name::default();
                        while let Some(key) = map.next_key::<$crate::wire::lenient::Str<'a>>()? {
                            match &*key.0 {
                                $($($key)|+ => value.$field = map.next_value()?,)*
                                _ => {
                                    let json: &'a serde_json::value::RawValue = map.next_value()?;
                                    if json.get() != "null" {
                                        value.rest.push((key, json));
                                    }
                                }
                            }
                        }
                        Ok(value)
                    }
                }

                deserializer.deserialize_map(Fields(std::marker::PhantomData))
            }
        }
    };
}
pub(crate) use open_struct;
