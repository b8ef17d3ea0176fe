//! Arguments of tool calls: read as the model meant them, then checked against the tool's schema.

mod alias;
mod check;
mod coerce;
mod integers;
mod mend;
mod problem;
mod read;
mod shape;
mod types;

use std::{collections::BTreeSet, fmt, sync::Arc};

use agent_core::{Error, ErrorKind, Result, ToolSpec};
use serde_json::Value;

use self::{
    check::Validator,
    problem::Problems,
    read::{Read, read},
    types::{Type, Types},
};
pub(crate) use self::{
    read::{DEEPEST, Repairs, decode, json_or_mended},
    shape::Shape,
};

/// A tool's parameters, compiled once. Cheap to clone.
///
/// ```
/// use agent_core::ToolSpec;
/// use agent_tools::ArgumentSchema;
/// use serde_json::json;
///
/// let parameters = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
/// let schema = ArgumentSchema::compile(&ToolSpec::new("square", "Squares a number.", parameters))?;
///
/// // A trailing comma and a number in quotes are mended ..
/// let args = schema.parse(r#"{"n": "5",}"#);
/// assert_eq!(args.value, json!({"n": 5}));
/// assert!(!args.truncated);
/// assert!(schema.check(&args.value, &[]).is_ok());
///
/// // .. and what cannot be is reported so that the model can correct it.
/// let error = schema.check(&json!({"n": "five"}), &[]).expect_err("not a number");
/// assert_eq!(error.message(), "Invalid arguments for tool 'square': 'n' must be an integer, got \"five\".");
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone)]
pub struct ArgumentSchema(Arc<Inner>);

struct Inner {
    tool: String,
    schema: Value,
    validator: Validator,
    /// The parameters that the schema names.
    known: BTreeSet<String>,
    /// Those that may be text.
    texts: BTreeSet<String>,
    /// True if the schema allows others.
    open: bool,
    /// Keys that are offered in the place of those that some providers refuse, each with the parameter's own.
    portable: Vec<(String, String)>,
}

/// What [`ArgumentSchema::parse`] made of a call's arguments.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Arguments {
    /// Always a JSON object.
    pub value: Value,
    /// What was mended, in words for a report; `None` if nothing had to be.
    pub repair: Option<String>,
    /// True if a string or brackets were still open at the end of the text: the model's output was most likely cut off, and what
    /// is missing is not known.
    pub truncated: bool,
}

impl ArgumentSchema {
    /// Compiles the parameters of a tool.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the name is not 1 to 64 letters, digits, `_` or `-`, or if the parameters are not a valid
    /// JSON Schema of an object. References to other documents are not fetched, hence invalid. Without the feature
    /// `json-schema`, so are schemas with keywords that [types do not make](crate#what-is-checked).
    pub fn compile(spec: &ToolSpec) -> Result<Self> {
        let named = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-');
        if !(1..=64).contains(&spec.name.len()) || !spec.name.bytes().all(named) {
            let name = &spec.name;
            return Err(Error::config(format!("invalid tool name '{name}': use 1 to 64 letters, digits, '_' and '-'")));
        }
        let invalid = |why: String| Error::config(format!("invalid parameters of tool '{}': {why}", spec.name));
        let schema = spec.parameters.clone();
        let validator = Validator::compile(&schema).map_err(invalid)?;
        let shape = Shape::new(&schema);
        if shape.types(&schema) != Types::from(Type::Object) {
            return Err(invalid("the schema must describe an object: add \"type\": \"object\"".to_owned()));
        }
        let (known, open) = shape.parameters();
        let portable = shape.portable_keys();
        let texts = known.iter().filter(|name| shape.takes_text(name)).cloned().collect();
        Ok(Self(Arc::new(Inner { tool: spec.name.clone(), schema, validator, known, texts, open, portable })))
    }

    /// True if it is that of a tool of this name with these parameters.
    pub fn is_of(&self, spec: &ToolSpec) -> bool {
        self.0.tool == spec.name && self.0.schema == spec.parameters
    }

    /// Reads the arguments as the model wrote them. Never fails: what cannot be read fails the [`check`](Self::check).
    ///
    /// * Nothing at all, `null` and `[]` are `{}`.
    /// * Slips with one obvious reading are mended: a code fence around the JSON, missing closing quotes and brackets
    ///   ([`truncated`](Arguments::truncated) then), trailing commas, single quotes, line breaks in strings, unpaired surrogates
    ///   (which become U+FFFD), JSON inside a JSON string.
    /// * An integer of more than 64 bits becomes text with the digits that the model wrote.
    /// * Text where the schema wants another type is converted: `"5"`, `"yes"`, `"a, b"` for a list.
    /// * Other JSON than an object becomes `{"_": ..}`, and what is not JSON `{"raw_arguments": ".."}`.
    pub fn parse(&self, text: &str) -> Arguments {
        self.parse_with(text, &[])
    }

    /// As [`parse`](Self::parse), for a tool whose parameters are known by other names too: its [aliases](agent_core::ToolOptions::aliases).
    pub fn parse_with(&self, text: &str, aliases: &[(String, String)]) -> Arguments {
        let Read { mut value, repairs: Repairs { mut notes, is_truncated }, is_object } = read(text);
        Shape::new(&self.0.schema).rename(&mut value, &self.0.portable);
        let renamed = Shape::new(&self.0.schema).rename(&mut value, aliases);
        if !renamed.is_empty() {
            notes.push(format!("renamed {}", renamed.join(", ")));
        }
        let converted = match is_object {
            true => Shape::new(&self.0.schema).coerce_arguments(&mut value, &self.0.texts),
            false => Vec::new(),
        };
        if !converted.is_empty() {
            notes.push(format!("converted {}", converted.join(", ")));
        }
        Arguments { value, repair: (!notes.is_empty()).then(|| notes.join("; ")), truncated: is_truncated }
    }

    /// Checks arguments. Parameters that the schema does not name are refused unless it has `additionalProperties`.
    /// The values of the parameters `hidden` are not shown.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`]: one message for the model with every problem.
    pub fn check(&self, args: &Value, hidden: &[&str]) -> Result<()> {
        let Inner { tool, validator, known, open, .. } = &*self.0;
        let unknown = || args.as_object().into_iter().flatten().map(|(name, _)| name).filter(|n| !known.contains(*n));
        let violations = validator.violations(args);
        if violations.is_empty() && (*open || unknown().next().is_none()) {
            return Ok(());
        }
        let mut problems = Problems::new(known, hidden);
        violations.iter().for_each(|violation| problems.add(violation));
        if !open {
            unknown().for_each(|name| problems.add_unknown(name));
        }
        Err(Error::new(ErrorKind::InvalidArguments, format!("Invalid arguments for tool '{tool}': {problems}.")))
    }
}

/// Makes a check of values from a JSON Schema, such as [`StateField::check`](agent_core::StateField::check) takes.
///
/// # Errors
/// [`ErrorKind::Config`] if it is not a valid JSON Schema. References to other documents are not fetched, hence invalid. Without
/// the feature `json-schema`, so are schemas with keywords that [types do not make](crate#what-is-checked).
pub fn check_value(schema: &Value) -> Result<impl Fn(&Value) -> Result<(), String> + Clone + Send + Sync + use<>> {
    let validator = Validator::compile(schema).map_err(|why| Error::config(format!("invalid JSON Schema: {why}")))?;
    let validator = Arc::new(validator);
    Ok(move |value: &Value| {
        let violations = validator.violations(value);
        if violations.is_empty() {
            return Ok(());
        }
        let mut problems = Problems::of_value();
        violations.iter().for_each(|violation| problems.add(violation));
        Err(problems.to_string())
    })
}

impl fmt::Debug for ArgumentSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentSchema")
            .field("tool", &self.0.tool)
            .field("known", &self.0.known)
            .finish_non_exhaustive()
    }
}
