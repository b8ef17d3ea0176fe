//! Arguments of tool calls: lenient parsing, then validation against the tool's schema.

mod alias;
mod check;
mod coerce;
mod mend;
pub(crate) mod numbers;
mod problem;
mod read;
mod shape;
mod types;

use std::{collections::BTreeSet, fmt, sync::Arc};

use agent_core::{Error, ErrorKind, Result, ToolSpec};
use serde_json::Value;

use self::{
    check::{Validator, Violation},
    problem::Problems,
    read::{Read, read},
    types::{Type, Types},
};
pub(crate) use self::{
    read::{DEEPEST, Repairs, decode, json_or_mended},
    shape::Shape,
};

/// Compiled schema of a tool's parameters. Cheap to clone.
///
/// ```
/// use agent_core::ToolSpec;
/// use agent_tools::ArgumentSchema;
/// use serde_json::json;
///
/// let parameters = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
/// let schema = ArgumentSchema::compile(&ToolSpec::new("square", "Squares a number.", parameters))?;
///
/// // A trailing comma and a number in quotes are repaired ..
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
    /// Parameters that the schema names.
    known: BTreeSet<String>,
    /// Parameters that may be text.
    texts: BTreeSet<String>,
    /// True if the schema allows additional parameters.
    open: bool,
    /// Portable keys, offered instead of keys that some providers reject, each with the parameter's
    /// name.
    portable: Vec<(String, String)>,
}

/// Parsed arguments of a call; made by [`ArgumentSchema::parse`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Arguments {
    /// Always a JSON object.
    pub value: Value,
    /// Description of the repairs, for a report; `None` if no repair was needed.
    pub repair: Option<String>,
    /// True if a string or brackets were still open at the end of the text: the model's output was
    /// most likely cut off, and the missing part is unknown.
    pub truncated: bool,
}

impl ArgumentSchema {
    /// Compiles the schema of a tool's parameters.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the name is not 1 to 64 letters, digits, `_` or `-`, or if the
    /// parameters are not a valid JSON Schema of an object. References to other documents are not
    /// fetched, hence invalid. Without the feature `json-schema`, so are schemas with keywords that
    /// [types do not make](crate#what-is-checked).
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
        // Some generators of schemas add null to every type. Arguments are always an object.
        if shape.types(&schema).without(Type::Null) != Types::from(Type::Object) {
            return Err(invalid("the schema must describe an object: add \"type\": \"object\"".to_owned()));
        }
        let (known, open) = shape.parameters();
        let portable = shape.portable_keys();
        let texts = known.iter().filter(|name| shape.takes_text(name)).cloned().collect();
        Ok(Self(Arc::new(Inner { tool: spec.name.clone(), schema, validator, known, texts, open, portable })))
    }

    /// Returns true if this schema was compiled from a tool of the same name with the same
    /// parameters.
    pub fn is_of(&self, spec: &ToolSpec) -> bool {
        self.0.tool == spec.name && self.0.schema == spec.parameters
    }

    /// Parses arguments in the form in which the model wrote them. Never fails: unreadable text
    /// fails in [`check`](Self::check).
    ///
    /// * Empty text, `null` and `[]` become `{}`.
    /// * Syntax errors with one obvious reading are repaired: a code fence around the JSON, missing
    ///   closing quotes and brackets (then [`truncated`](Arguments::truncated) is set), trailing
    ///   commas, single quotes, line breaks in strings, unpaired surrogates (which become U+FFFD),
    ///   JSON inside a JSON string.
    /// * A number that a [`Value`] would round becomes text with the digits that the model wrote: see
    ///   [`exact`](agent_core::exact).
    /// * Text is converted where the schema requires another type: `"5"`, `"yes"`, `"a, b"` for a
    ///   list.
    /// * JSON other than an object becomes `{"_": ..}`; text that is not JSON becomes
    ///   `{"raw_arguments": ".."}`.
    pub fn parse(&self, text: &str) -> Arguments {
        self.parse_with(text, &[])
    }

    /// Like [`parse`](Self::parse), for a tool whose parameters have
    /// [aliases](agent_core::ToolOptions::aliases).
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

    /// Writes arguments as JSON text for another program. Numbers of more than 64 bits, which
    /// [`parse`](Self::parse) yields as text, are numbers again where the schema requires a number.
    ///
    /// ```
    /// use agent_core::ToolSpec;
    /// use agent_tools::ArgumentSchema;
    /// use serde_json::json;
    ///
    /// let parameters = json!({"type": "object", "properties": {"id": {"type": "integer"}}});
    /// let schema = ArgumentSchema::compile(&ToolSpec::new("look_up", "Looks a record up.", parameters))?;
    /// let args = schema.parse(r#"{"id": 12345678901234567890123}"#).value;
    /// schema.check(&args, &[])?;
    /// assert_eq!(schema.to_json(&args), r#"{"id":12345678901234567890123}"#);
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn to_json(&self, args: &Value) -> String {
        let marked = numbers::marked(&self.0.schema, args);
        numbers::to_json(&marked).unwrap_or_else(|_| args.to_string())
    }

    /// Validates arguments. Parameters that the schema does not name are rejected unless it has
    /// `additionalProperties`. Error messages do not show the values of the parameters `hidden`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`]: one message for the model that lists every problem.
    pub fn check(&self, args: &Value, hidden: &[&str]) -> Result<()> {
        let Inner { tool, validator, known, open, .. } = &*self.0;
        let unknown = || args.as_object().into_iter().flatten().map(|(name, _)| name).filter(|n| !known.contains(*n));
        let violations = violations(validator, &self.0.schema, args);
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

/// Compiles a JSON Schema to a check of values, as
/// [`StateField::check`](agent_core::StateField::check) takes it.
///
/// # Errors
/// [`ErrorKind::Config`] if `schema` is not a valid JSON Schema. References to other documents are
/// not fetched, hence invalid. Without the feature `json-schema`, schemas with keywords that [types
/// do not make](crate#what-is-checked) are invalid too.
pub fn check_value(schema: &Value) -> Result<impl Fn(&Value) -> Result<(), String> + Clone + Send + Sync + use<>> {
    let validator = Validator::compile(schema).map_err(|why| Error::config(format!("invalid JSON Schema: {why}")))?;
    let compiled = Arc::new((validator, schema.clone()));
    Ok(move |value: &Value| {
        let (validator, schema) = &*compiled;
        let violations = violations(validator, schema, value);
        if violations.is_empty() {
            return Ok(());
        }
        let mut problems = Problems::of_value();
        violations.iter().for_each(|violation| problems.add(violation));
        Err(problems.to_string())
    })
}

/// Lists the violations of the schema. Text of a long number is a number where the schema requires
/// one.
fn violations(validator: &Validator, schema: &Value, value: &Value) -> Vec<Violation> {
    let violations = validator.violations(value);
    match numbers::rounded(schema, value).filter(|_| !violations.is_empty()) {
        Some(rounded) => validator.violations(&rounded),
        None => violations,
    }
}

impl fmt::Debug for ArgumentSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentSchema")
            .field("tool", &self.0.tool)
            .field("known", &self.0.known)
            .finish_non_exhaustive()
    }
}
