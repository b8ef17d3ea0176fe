//! Parsing of one call written by a model.

use agent_core::ToolSpec;
use serde_json::{Map, Value};

use super::markup::{Tag, close, next_tag, read_text, unescape};

/// Tags of calls.
pub(super) const CALLS: [&str; 2] = ["tool_use", "parallel_tool"];
const NAME: &str = "tool_name";
/// Tags around all parameters; models mix them up.
const ALL: [&str; 2] = ["parameter", "parameters"];

/// Maximum depth to which elements are parsed as lists and objects.
const DEEPEST: usize = 32;
/// Maximum number of elements without an end tag per call: each costs a search.
const MOST_UNCLOSED: usize = 16;

/// A parsed call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    /// JSON arguments; the original text if it cannot be parsed.
    pub(super) arguments: String,
    /// End of the call, if its end tag was missing and another call began.
    pub(super) end: usize,
}

/// Returns the name of the called tool, once it is certain.
pub(super) fn name_of(body: &str) -> Option<&str> {
    let (start, tag) = next_tag(body)?;
    let after = body.get(start + tag.length..).filter(|_| tag.opens(NAME))?;
    let (name, _) = after.split_once('<')?;
    let name = name.trim().lines().next()?.trim_end();
    (!name.is_empty()).then_some(name)
}

/// Parses a call. The schemas in `tools` determine the types of its parameters. If `cut`, the
/// arguments are left as invalid JSON, so that a truncated call is not mistaken for a complete one.
pub(super) fn read(body: &str, name: Option<&str>, tools: &[ToolSpec], cut: bool) -> Call {
    let name = name.or_else(|| name_of(body)).or_else(|| name_anywhere(body)).unwrap_or("unknown");
    let schema = tools.iter().find(|tool| tool.name == name).map(|tool| &tool.parameters);
    let mut reader = Reader { schema, fields: Map::new(), unclosed: 0 };
    let (end, all_read) = reader.parameters(body);
    let arguments = if all_read && !cut { Value::Object(reader.fields).to_string() } else { body.trim().to_owned() };
    Call { name: name.to_owned(), arguments, end }
}

fn name_anywhere(body: &str) -> Option<&str> {
    let mut at = 0;
    while let Some((start, tag)) = next_tag(&body[at..]) {
        if tag.opens(NAME) {
            return name_of(&body[at + start..]);
        }
        at += start + tag.length;
    }
    None
}

struct Reader<'a> {
    schema: Option<&'a Value>,
    fields: Map<String, Value>,
    unclosed: usize,
}

impl Reader<'_> {
    /// Parses all parameters. Returns the end of the call, and whether it could be parsed.
    fn parameters(&mut self, body: &str) -> (usize, bool) {
        let (mut at, mut inside, mut stray) = (0, false, false);
        loop {
            let rest = &body[at..];
            let next = next_tag(rest);
            let between = rest[..next.map_or(rest.len(), |(start, _)| start)].trim_start();
            if between.starts_with('{')
                && let Some(length) = self.json(rest.trim_start())
            {
                at += rest.len() - rest.trim_start().len() + length;
                continue;
            }
            stray |= !between.is_empty();
            // Text without any parameter is not a parameter list.
            let readable = !stray || !self.fields.is_empty();
            let Some((start, tag)) = next else { return (body.len(), readable) };
            let after = at + start + tag.length;
            match tag {
                _ if CALLS.iter().any(|call| tag.opens(call)) => return (at + start, readable),
                Tag { closes: true, .. } => at = after,
                Tag { label: None, name, .. } if !inside && ALL.contains(&name) => (at, inside) = (after, true),
                _ if !inside && tag.opens(NAME) => at = body[after..].find('<').map_or(body.len(), |end| after + end),
                _ if self.unclosed > MOST_UNCLOSED => return (body.len(), false),
                _ => at = after + self.parameter(tag, &body[after..]),
            }
        }
    }

    /// Parses parameters written as JSON; returns their length.
    fn json(&mut self, text: &str) -> Option<usize> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter();
        let fields: Map<String, Value> = values.next()?.ok()?;
        self.fields.extend(fields);
        Some(values.byte_offset())
    }

    /// Parses the parameter that `tag` opens, before `text`; returns its length.
    fn parameter(&mut self, tag: Tag<'_>, text: &str) -> usize {
        let (raw, length) = match close(text, tag.name) {
            Some((end, after)) => (&text[..end], after),
            None => {
                self.unclosed += 1;
                let end = self.end_of_unclosed(text);
                (&text[..end], end)
            }
        };
        let name = &*tag.label.map_or(tag.name.into(), unescape);
        let schema = self.schema.and_then(|schema| schema["properties"].get(name));
        let value = value(raw, schema, DEEPEST);
        match self.fields.get_mut(name) {
            Some(Value::Array(items)) if wants(schema, "array") && !value.is_array() => items.push(value),
            Some(first) if wants(schema, "array") && !value.is_array() => {
                *first = Value::Array(vec![first.take(), value]);
            }
            _ => {
                self.fields.insert(name.to_owned(), value);
            }
        }
        length
    }

    /// An element without an end tag extends to the next parameter, or to the end of an enclosing
    /// element.
    fn end_of_unclosed(&self, text: &str) -> usize {
        let known = |name: &str| self.schema.is_none_or(|schema| schema["properties"].get(name).is_some());
        let mut at = 0;
        while let Some((start, tag)) = next_tag(&text[at..]) {
            if CALLS.contains(&tag.name) || if tag.closes { ALL.contains(&tag.name) } else { known(tag.name) } {
                return at + start;
            }
            at += start + tag.length;
        }
        text.len()
    }
}

/// Parses the value of an element. The schema determines its type; without one, only lists and
/// objects are parsed as JSON.
pub(super) fn value(raw: &str, schema: Option<&Value>, depth: usize) -> Value {
    if depth > 0
        && raw.trim_start().starts_with('<')
        && (wants(schema, "array") || wants(schema, "object"))
        && let Some(value) = elements(raw, schema, depth - 1)
    {
        return value;
    }
    let (text, is_verbatim) = read_text(raw);
    let typed = match schema.and_then(|schema| schema.get("type")) {
        _ if is_verbatim => false,
        Some(_) => !wants(schema, "string"),
        None => text.starts_with(['{', '[']),
    };
    let json = typed.then(|| serde_json::from_str(text.trim()).ok()).flatten();
    json.unwrap_or(Value::String(text))
}

/// Parses elements as a list or an object, according to the schema; `None` if there are no
/// elements.
fn elements(raw: &str, schema: Option<&Value>, depth: usize) -> Option<Value> {
    let (mut items, mut fields, mut at) = (Vec::new(), Map::new(), 0);
    while let Some((start, tag)) = next_tag(&raw[at..]) {
        let inside = at + start + tag.length;
        let (end, after) = close(&raw[inside..], tag.name).filter(|_| !tag.closes)?;
        let raw = &raw[inside..inside + end];
        if wants(schema, "array") {
            items.push(value(raw, schema.and_then(|s| s.get("items")), depth));
        } else {
            let schema = schema.and_then(|s| s["properties"].get(tag.name));
            fields.insert(tag.name.to_owned(), value(raw, schema, depth));
        }
        at = inside + after;
    }
    if wants(schema, "array") {
        (!items.is_empty()).then_some(Value::Array(items))
    } else {
        (!fields.is_empty()).then_some(Value::Object(fields))
    }
}

/// Returns true if the schema allows the type.
fn wants(schema: Option<&Value>, wanted: &str) -> bool {
    match schema.and_then(|schema| schema.get("type")) {
        Some(Value::String(one)) => one == wanted,
        Some(Value::Array(many)) => many.iter().any(|one| one == wanted),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools() -> Vec<ToolSpec> {
        let properties = json!({
            "text": {"type": "string"}, "n": {"type": "integer"}, "maybe": {"type": ["number", "null"]},
            "list": {"type": "array", "items": {"type": "integer"}},
            "at": {"type": "object", "properties": {"x": {"type": "number"}, "name": {"type": "string"}}},
            "any": {},
        });
        vec![ToolSpec::new("t", "", json!({"type": "object", "properties": properties}))]
    }

    fn arguments(parameters: &str) -> Value {
        let call = read(&format!("<tool_name>t</tool_name>{parameters}"), None, &tools(), false);
        assert_eq!(call.name, "t");
        serde_json::from_str(&call.arguments).unwrap_or(Value::String(call.arguments))
    }

    #[test]
    fn every_way_to_write_parameters_is_read() {
        let expected = json!({"text": "a b", "n": 5});
        for written in [
            "<parameter><text>a b</text><n>5</n></parameter>",
            "\n<parameter>\n  <text>\n  a b\n  </text>\n  <n> 5 </n>\n</parameter>\n",
            "<parameters><text>a b</text><n>5</n></parameters>",
            "<text>a b</text><n>5</n>",
            r#"<parameter name="text">a b</parameter><parameter name="n">5</parameter>"#,
            r#"<parameter>{"text": "a b", "n": 5}</parameter>"#,
            r#"{"text": "a b", "n": 5}"#,
            r#"<parameter><text type="string">a b</text><n>5</n>"#,
            "<parameter><text>a b</text><n>5",
            "<parameter><text>a b\n<n>5</n></parameter>",
            "<parameter></closing><text>a b</text><n>5</parameter>",
        ] {
            assert_eq!(arguments(written), expected, "{written}");
        }
        assert_eq!(arguments("<parameter>\n</parameter>"), json!({}));
        assert_eq!(arguments(""), json!({}));
    }

    #[test]
    fn values_have_the_type_that_the_schema_wants() {
        assert_eq!(arguments("<text>5</text>"), json!({"text": "5"}));
        assert_eq!(arguments("<text>{\"a\": 1}</text>"), json!({"text": "{\"a\": 1}"}));
        assert_eq!(arguments("<any>{\"a\": 1}</any>"), json!({"any": {"a": 1}}));
        assert_eq!(arguments("<any>5</any>"), json!({"any": "5"}), "the executor may convert it");
        assert_eq!(arguments("<n>five</n>"), json!({"n": "five"}), "what does not fit is left to the check");
        assert_eq!(arguments("<maybe>null</maybe>"), json!({"maybe": null}));
        assert_eq!(arguments("<list>[1, 2]</list>"), json!({"list": [1, 2]}));
        assert_eq!(arguments("<list><item>1</item><item>2</item></list>"), json!({"list": [1, 2]}));
        assert_eq!(arguments("<list>1</list><list>2</list>"), json!({"list": [1, 2]}));
        assert_eq!(arguments("<at><x>1.5</x><name>7</name></at>"), json!({"at": {"x": 1.5, "name": "7"}}));
        assert_eq!(arguments("<text><b>bold</b> &amp; more</text>"), json!({"text": "<b>bold</b> &amp; more"}));
        assert_eq!(arguments("<text>a &amp; b</text>"), json!({"text": "a & b"}));
        assert_eq!(arguments("<text>a<text>b</text></text>"), json!({"text": "a<text>b</text>"}));
        assert_eq!(arguments("<any><![CDATA[[1]]]></any>"), json!({"any": "[1]"}));
    }

    #[test]
    fn what_cannot_be_read_is_kept_as_it_was_written() {
        assert_eq!(arguments("just do it"), json!("<tool_name>t</tool_name>just do it"));
        let parameter = "<parameter>just do it</parameter>";
        assert_eq!(arguments(parameter), json!(format!("<tool_name>t</tool_name>{parameter}")));
        let cut = read("<tool_name>t</tool_name><parameter><text>half a", None, &tools(), true);
        assert_eq!(cut.arguments, "<tool_name>t</tool_name><parameter><text>half a");
    }

    #[test]
    fn the_name_is_found_though_it_is_not_where_it_should_be() {
        let name = |body| read(body, None, &[], false).name;
        assert_eq!(name("<tool_name>  a  </tool_name>"), "a");
        assert_eq!(name("<tool_name>a\n<parameter>\n<x>1</x>"), "a");
        assert_eq!(name("<TOOL_NAME>a</TOOL_NAME>"), "a");
        assert_eq!(name("<parameter><x>1</x></parameter><tool_name>a</tool_name>"), "a");
        assert_eq!(name("<parameter><x>1</x></parameter>"), "unknown");
        assert_eq!(name_of("<tool_name>a"), None, "there may be more of it");
    }

    #[test]
    fn a_call_whose_end_is_missing_ends_where_the_next_begins() {
        let body = "<tool_name>t</tool_name><parameter><n>1</n></parameter>\n<tool_use><tool_name>u</tool_name>";
        let call = read(body, None, &tools(), false);
        assert_eq!((call.arguments.as_str(), &body[call.end..][..10]), (r#"{"n":1}"#, "<tool_use>"));
    }

    #[test]
    fn a_flood_of_tags_is_read_no_longer_than_it_is_worth() {
        let flood = "<a>".repeat(10_000);
        assert!(read(&flood, Some("t"), &[], false).arguments.starts_with("<a><a>"));
    }
}
