//! How two requests differ.

use serde_json::Value;

use super::exchange::Asked;
use crate::error::bounded;

/// The longest value that is shown, in characters.
const LONGEST: usize = 120;

/// One line for each difference.
pub(super) fn diff(recorded: &Asked, asked: &Asked) -> Vec<String> {
    let mut lines = Vec::new();
    let value = |text: &str| Value::String(text.to_owned());
    compare("method", Some(&value(&recorded.method)), Some(&value(&asked.method)), &mut lines);
    compare("path", Some(&value(&recorded.path)), Some(&value(&asked.path)), &mut lines);
    compare("body", Some(&recorded.body), Some(&asked.body), &mut lines);
    lines
}

fn compare(path: &str, recorded: Option<&Value>, asked: Option<&Value>, lines: &mut Vec<String>) {
    match (recorded, asked) {
        (recorded, asked) if recorded == asked => {}
        (Some(Value::Object(recorded)), Some(Value::Object(asked))) => {
            let added = asked.keys().filter(|name| !recorded.contains_key(*name));
            for name in recorded.keys().chain(added) {
                compare(&format!("{path}.{name}"), recorded.get(name), asked.get(name), lines);
            }
        }
        (Some(Value::Array(recorded)), Some(Value::Array(asked))) => {
            for at in 0..recorded.len().max(asked.len()) {
                compare(&format!("{path}[{at}]"), recorded.get(at), asked.get(at), lines);
            }
        }
        (recorded, asked) => {
            let shown = |value: Option<&Value>| value.map_or("nothing".into(), |v| bounded(&v.to_string(), LONGEST));
            lines.push(format!("  {path}: recorded {}, asked {}", shown(recorded), shown(asked)));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_is_named_by_its_place() {
        let asked = |body| Asked { method: "POST".into(), path: "/v1".into(), body };
        let recorded = asked(json!({"messages": [{"content": "a"}], "n": 1}));
        let lines = diff(&recorded, &asked(json!({"messages": [{"content": "b"}, {}], "stream": true})));
        assert_eq!(
            lines,
            [
                r#"  body.messages[0].content: recorded "a", asked "b""#,
                "  body.messages[1]: recorded nothing, asked {}",
                "  body.n: recorded 1, asked nothing",
                "  body.stream: recorded nothing, asked true",
            ]
        );
    }
}
