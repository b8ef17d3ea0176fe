//! Names of JSON members in the convention of other protocols.

use serde_json::{Map, Value};

/// Renames the members of an event from `camelCase` to `snake_case`.
pub(crate) fn snake_case(event: Value) -> Value {
    let Value::Object(members) = event else { return event };
    let renamed = members.into_iter().map(|(name, value)| {
        let mut written = String::with_capacity(name.len() + 4);
        for letter in name.chars() {
            if letter.is_ascii_uppercase() {
                written.push('_');
            }
            written.push(letter.to_ascii_lowercase());
        }
        (written, value)
    });
    renamed.collect::<Map<_, _>>().into()
}
