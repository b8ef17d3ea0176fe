//! YAML to JSON conversion, as authors of documents expect: `200:` is a string key, and a number
//! may exceed every integer type.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// JSON value deserialised from YAML.
pub(super) struct Yaml(pub(super) Value);

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any).map(Self)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok((value as f64).into())
    }

    fn visit_u128<E>(self, value: u128) -> Result<Value, E> {
        Ok((value as f64).into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Yaml(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((Yaml(name), Yaml(value))) = entries.next_entry()? {
            let name = match name {
                Value::String(name) => name,
                other => other.to_string(),
            };
            map.insert(name, value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_numbers_are_what_authors_mean() {
        let text = "200: ok\ntrue: [1, -2, 1.5, null, yes]\nlarge: -9223372036854776000\nlarger: 99999999999999999999999999\na: &x {b: c}\nd: *x";
        let Yaml(value) = serde_yaml_ng::from_str(text).expect("is read");
        let expected = json!({"200": "ok", "true": [1, -2, 1.5, null, "yes"], "large": -9.223372036854776e18, "larger": 1e26, "a": {"b": "c"}, "d": {"b": "c"}});
        assert_eq!(value, expected);
        let bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned()
            + &('b'..='k')
                .map(|c| {
                    let before = char::from(c as u8 - 1);
                    format!("{c}: &{c} [{}]\n", vec![format!("*{before}"); 9].join(", "))
                })
                .collect::<String>();
        assert!(serde_yaml_ng::from_str::<Yaml>(&bomb).is_err(), "a billion laughs");
    }
}
