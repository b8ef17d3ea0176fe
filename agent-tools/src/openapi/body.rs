//! Request bodies.

use agent_core::{Error, Result};
use serde_json::{Map, Value, json};

use super::{
    document::{fields, is_set},
    operation::{Arguments, Site},
    schema::Schemas,
};

/// Encoding of a body, and the arguments that it consists of.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) form: Form,
    /// Arguments that are fields of the body, each with the field's name; `None` if the argument
    /// `body` is the whole body.
    pub(super) fields: Option<Vec<(String, String)>>,
    pub(super) required: bool,
}

/// Encoding of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json(String),
    Urlencoded,
    Text(String),
}

/// Returns the body: its fields as arguments beside the parameters if that is unambiguous,
/// otherwise the argument `body`.
pub(super) fn body(site: &Site<'_>, schemas: &mut Schemas<'_>, arguments: &mut Arguments) -> Result<Option<Body>> {
    let Some(declared) = site.operation.get("requestBody") else { return Ok(None) };
    let declared = site.document.resolve(declared)?;
    let required = is_set(declared, "required");
    let forms: Vec<_> = fields(declared, "content").collect();
    let rank = |mime: &str| match Form::of(mime) {
        Some(Form::Json(_)) => 0,
        Some(Form::Urlencoded) => 1,
        Some(Form::Text(_)) => 2,
        None => 3,
    };
    let Some((mime, content)) = forms.into_iter().min_by_key(|(mime, _)| rank(mime)) else { return Ok(None) };
    let Some(form) = Form::of(mime) else {
        if !required {
            return Ok(None);
        }
        return Err(Error::config(format!("its body is '{mime}', and JSON, forms and text are written")));
    };
    let written = content.get("schema").map_or_else(|| Ok(json!({})), |schema| schemas.write(schema))?;
    let apart =
        |properties: &Map<String, Value>| properties.keys().all(|name| !arguments.properties.contains_key(name));
    if let Some((properties, needed)) =
        Schemas::plain_object(&written).filter(|(properties, _)| apart(properties) && !matches!(form, Form::Text(_)))
    {
        let mut argument = |(name, schema): (&String, &Value)| {
            (arguments.name(name, "body", schema.clone(), required && needed.contains(name)), name.clone())
        };
        let fields = properties.iter().map(&mut argument).collect();
        return Ok(Some(Body { form, fields: Some(fields), required }));
    }
    if arguments.properties.contains_key("body") {
        return Err(Error::config("it has both a body and a parameter of that name"));
    }
    let written = if matches!(form, Form::Text(_)) { json!({"type": "string"}) } else { written };
    arguments.add("body", written, required);
    Ok(Some(Body { form, fields: None, required }))
}

impl Form {
    fn of(mime: &str) -> Option<Self> {
        let bare = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match bare.as_str() {
            "application/x-www-form-urlencoded" => Some(Self::Urlencoded),
            "*/*" | "application/*" => Some(Self::Json("application/json".to_owned())),
            _ if bare == "application/json" || bare.ends_with("+json") => Some(Self::Json(bare)),
            _ if bare.starts_with("text/") && !bare.contains('*') => Some(Self::Text(bare)),
            _ => None,
        }
    }
}
