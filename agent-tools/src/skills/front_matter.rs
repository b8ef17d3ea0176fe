//! Front matter of a `SKILL.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_yaml_ng::Value;

/// Fields of a skill; other fields are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FrontMatter {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    #[serde(flatten)]
    pub(super) optional: Optional,
}

/// Optional fields. One of another type than it should have is left out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Optional {
    #[serde(deserialize_with = "text")]
    pub(super) license: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) compatibility: Option<String>,
    #[serde(deserialize_with = "texts")]
    pub(super) metadata: BTreeMap<String, String>,
    #[serde(rename = "allowed-tools", deserialize_with = "patterns")]
    pub(super) allowed_tools: Vec<String>,
    /// Names of fields that a skill does not have.
    #[serde(flatten, deserialize_with = "names")]
    pub(super) unknown: Vec<String>,
}

/// Returns a scalar as text.
fn scalar(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        _ => None,
    }
}

fn text<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    Value::deserialize(value).map(scalar)
}

fn texts<'de, D: Deserializer<'de>>(value: D) -> Result<BTreeMap<String, String>, D::Error> {
    let Value::Mapping(pairs) = Value::deserialize(value)? else { return Ok(BTreeMap::new()) };
    Ok(pairs.into_iter().filter_map(|(key, value)| Some((scalar(key)?, scalar(value)?))).collect())
}

/// Splits patterns of tools at blanks outside of parentheses, as in `Bash(git add:*) Read`.
fn patterns<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<String>, D::Error> {
    let text = match Value::deserialize(value)? {
        Value::Sequence(list) => return Ok(list.into_iter().filter_map(scalar).collect()),
        other => scalar(other).unwrap_or_default(),
    };
    let (mut found, mut depth) = (vec![String::new()], 0_usize);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match found.last_mut() {
            Some(last) if !c.is_whitespace() || depth > 0 => last.push(c),
            _ => found.push(String::new()),
        }
    }
    found.retain(|pattern| !pattern.is_empty());
    Ok(found)
}

fn names<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<String>, D::Error> {
    Ok(BTreeMap::<String, IgnoredAny>::deserialize(value)?.into_keys().collect())
}

/// Splits a text into front matter and body.
pub(super) fn split(text: &str) -> Result<(FrontMatter, &str), String> {
    let text = text.trim_start_matches('\u{feff}');
    let rest = text.strip_prefix("---").filter(|rest| rest.starts_with(['\n', '\r']));
    let rest = rest.ok_or("it does not begin with front matter: a line `---`, the fields, and `---` again")?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let yaml = &rest[..at];
            let fields = match yaml.trim().is_empty() {
                true => FrontMatter::default(),
                false => serde_yaml_ng::from_str(yaml).map_err(|e| format!("its front matter is no YAML: {e}"))?,
            };
            return Ok((fields, rest[at + line.len()..].trim()));
        }
        at += line.len();
    }
    Err("its front matter has no end: a line `---`".into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::split;

    #[test]
    fn fields_of_any_yaml_are_read_and_unknown_ones_passed_over() {
        for (yaml, name, description) in [
            ("name: pdf\ndescription: Fills forms: all of them\n", "pdf", None),
            (
                "name: \"pdf\"\ndescription: 'It''s one'\nlicense: MIT\nmetadata:\n  a: [1, 2]\n",
                "pdf",
                Some("It's one"),
            ),
            ("name: pdf\ndescription: >\n  Two\n  lines\n", "pdf", Some("Two lines\n")),
        ] {
            let text = format!("---\n{yaml}---\n\n# Body\n---\n");
            match (split(&text), description) {
                (Ok((fields, body)), Some(description)) => {
                    assert_eq!(
                        (fields.name.as_deref(), fields.description.as_deref()),
                        (Some(name), Some(description))
                    );
                    assert_eq!(body, "# Body\n---");
                }
                (Err(e), None) => assert!(e.starts_with("its front matter is no YAML"), "{e}"),
                (other, _) => panic!("{yaml}: {other:?}"),
            }
        }
    }

    #[test]
    fn text_without_front_matter_is_refused_with_the_reason() {
        for (text, reason) in
            [("# Title", "does not begin"), ("---\nname: x\n", "no end"), ("---name: x", "does not begin")]
        {
            assert!(split(text).expect_err(text).contains(reason), "{text}");
        }
        let (fields, body) = split("---\r\n---\r\nhi").expect("is empty");
        assert_eq!((fields.name, body), (None, "hi"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(---\n)?[a-z: \\-\n>|'\"\\[{&*]{0,60}(\n---\n)?.{0,9}") {
            drop(split(&text));
        }
    }
}
