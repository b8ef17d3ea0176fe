//! References: all into `#/$defs/`, the only location that some providers support.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::walk;

const DEFS: &str = "$defs";

/// Moves the targets of other references within the document to `$defs`. A dangling reference is
/// removed.
pub(super) fn gather(schema: &mut Value) {
    let mut pointers = Vec::new();
    walk(schema, &mut |fields| {
        if let Some(Value::String(pointer)) = fields.get("$ref")
            && !is_plain(pointer)
            && !pointers.contains(pointer)
        {
            pointers.push(pointer.clone());
        }
    });
    let is_clean = pointers.is_empty() && schema.get("definitions").is_none();
    if is_clean {
        return;
    }
    let mut defs = schema.get(DEFS).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut moved: BTreeMap<String, Option<String>> = BTreeMap::new();
    for pointer in pointers {
        let target = target(schema, &pointer).map(|target| {
            let name = free_name(&pointer, &defs);
            defs.insert(name.clone(), target);
            name
        });
        moved.insert(pointer, target);
    }
    let rewrite = &mut |fields: &mut Map<String, Value>| {
        let target = match fields.get("$ref") {
            Some(Value::String(pointer)) => moved.get(pointer),
            _ => None,
        };
        match target {
            Some(Some(name)) => drop(fields.insert("$ref".into(), format!("#/{DEFS}/{name}").into())),
            Some(None) => drop(fields.remove("$ref")),
            None => {}
        }
    };
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("definitions");
        if !defs.is_empty() {
            fields.insert(DEFS.into(), defs.into());
        }
    }
    walk(schema, rewrite);
}

/// Returns true for a reference that every provider supports.
fn is_plain(pointer: &str) -> bool {
    let name = pointer.strip_prefix("#/$defs/");
    name.is_some_and(|name| !name.is_empty() && name.chars().all(is_allowed))
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Returns the target of a reference within the document, without its own definitions.
fn target(root: &Value, pointer: &str) -> Option<Value> {
    let path = percent_decoded(pointer.strip_prefix('#')?);
    let mut target = root.pointer(&path).filter(|target| target.is_object() || target.is_boolean())?.clone();
    if path.is_empty()
        && let Some(fields) = target.as_object_mut()
    {
        fields.retain(|keyword, _| !matches!(keyword.as_str(), "$defs" | "definitions" | "$schema"));
    }
    Some(target)
}

fn free_name(pointer: &str, defs: &Map<String, Value>) -> String {
    let last = pointer.rsplit('/').next().map(percent_decoded).unwrap_or_default();
    let plain: String = last.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    let plain = if matches!(plain.as_str(), "" | "_") { "root".to_owned() } else { plain };
    let numbered = (2..).map(|n| format!("{plain}_{n}"));
    std::iter::once(plain.clone()).chain(numbered).find(|name| !defs.contains_key(name)).unwrap_or(plain)
}

fn percent_decoded(text: &str) -> String {
    let (bytes, mut out, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
