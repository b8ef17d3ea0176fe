//! Return types of a tool's function.

use std::{any::Any, fmt::Display};

use agent_core::{BoxError, Error, Part, Result, ToolOutput, exact};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::schema;

/// Return type of a tool's function.
///
/// | returned | shown to the model |
/// |---|---|
/// | `String`, `&str` | text |
/// | `()` | `done` |
/// | numbers, `bool`, `Value`, [`Json`], [`Typed`] | the [text of the value](agent_core::tool::value_to_text) |
/// | `Vec<Part>`, [`ToolOutput`] | content |
/// | `Option` | the contained value, or `null` |
/// | `Result` | the contained value, or the error's text |
///
/// An error of this framework keeps its kind, so that `ask(..)?` suspends the run; any other
/// becomes an [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) with its text.
///
/// ```
/// use agent_core::ErrorKind;
/// use agent_tools::IntoToolOutput;
///
/// assert_eq!(42.into_tool_output()?.to_text(), "42");
/// let failed: Result<i32, String> = Err("no such city".into());
/// let error = failed.into_tool_output().expect_err("failed");
/// assert_eq!((error.kind(), error.message()), (ErrorKind::Tool, "no such city"));
/// # Ok::<(), agent_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "not something that a model can be shown",
    note = "return a text, a number, `Json(..)` around anything that serde can serialise, or a `Result` of these"
)]
pub trait IntoToolOutput {
    /// Converts the value to the output.
    ///
    /// # Errors
    /// The tool's own errors, or an error if the value cannot be serialised to JSON.
    fn into_tool_output(self) -> Result<ToolOutput>;

    /// Returns the JSON Schema of the output's [value](ToolOutput::as_value), if the output always
    /// has a value of a known type. Default: `None`.
    fn output_schema() -> Option<Value>
    where
        Self: Sized,
    {
        None
    }
}

/// Return type for anything that serde can serialise.
///
/// ```
/// use agent_tools::{IntoToolOutput, Json};
///
/// let output = Json(vec!["a", "b"]).into_tool_output()?;
/// assert_eq!(output.to_text(), r#"["a","b"]"#);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// Return type for anything that serde can serialise, with a JSON Schema: programs that call the
/// tool, and clients of a server that offers it, receive the schema.
///
/// ```
/// use agent_tools::{IntoToolOutput, Typed};
///
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Weather {
///     degrees: f64,
/// }
///
/// let schema = Typed::<Weather>::output_schema().expect("it has a type");
/// assert_eq!(schema["properties"]["degrees"]["type"], "number");
/// assert_eq!(Typed(Weather { degrees: 21.5 }).into_tool_output()?.to_text(), r#"{"degrees":21.5}"#);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Typed<T>(pub T);

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> Result<ToolOutput> {
        Ok(self)
    }
}

impl IntoToolOutput for Vec<Part> {
    fn into_tool_output(self) -> Result<ToolOutput> {
        Ok(ToolOutput::parts(self))
    }
}

impl IntoToolOutput for () {
    fn into_tool_output(self) -> Result<ToolOutput> {
        Ok(ToolOutput::text("done")) // some providers reject a result without text
    }
}

impl<T: Serialize> IntoToolOutput for Json<T> {
    fn into_tool_output(self) -> Result<ToolOutput> {
        let not_json = |e| Error::tool("the result cannot be written as JSON").with_source(Box::new(e) as BoxError);
        exact::to_value(&self.0).map(ToolOutput::value).map_err(not_json)
    }
}

impl<T: Serialize + JsonSchema> IntoToolOutput for Typed<T> {
    fn into_tool_output(self) -> Result<ToolOutput> {
        Json(self.0).into_tool_output()
    }

    fn output_schema() -> Option<Value> {
        Some(schema::of_output::<T>())
    }
}

impl<T: IntoToolOutput> IntoToolOutput for Option<T> {
    fn into_tool_output(self) -> Result<ToolOutput> {
        self.map_or_else(|| Ok(ToolOutput::value(Value::Null)), T::into_tool_output)
    }
}

impl<T: IntoToolOutput, E: Display + 'static> IntoToolOutput for Result<T, E> {
    fn into_tool_output(self) -> Result<ToolOutput> {
        self.map_err(tool_error)?.into_tool_output()
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }
}

macro_rules! texts {
    ($($text:ty),*) => {$(
        impl IntoToolOutput for $text {
            fn into_tool_output(self) -> Result<ToolOutput> {
                Ok(ToolOutput::text(self))
            }
        }
    )*};
}

macro_rules! values {
    ($type:literal: $($value:ty),*) => {$(
        impl IntoToolOutput for $value {
            fn into_tool_output(self) -> Result<ToolOutput> {
                Ok(ToolOutput::value(self.into()))
            }

            fn output_schema() -> Option<Value> {
                Some(json!({"type": $type}))
            }
        }
    )*};
}

texts!(String, &str, std::borrow::Cow<'_, str>);
values!("boolean": bool);
values!("integer": i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);
values!("number": f32, f64);

macro_rules! long_integers {
    ($($value:ty),*) => {$(
        impl IntoToolOutput for $value {
            /// A number of more than 64 bits becomes text with its digits: see
            /// [`exact`](agent_core::exact).
            fn into_tool_output(self) -> Result<ToolOutput> {
                Json(self).into_tool_output()
            }

            fn output_schema() -> Option<Value> {
                Some(json!({"type": "integer"}))
            }
        }
    )*};
}

long_integers!(i128, u128);

impl IntoToolOutput for Value {
    fn into_tool_output(self) -> Result<ToolOutput> {
        Ok(ToolOutput::value(self))
    }
}

/// Returns an error of this framework unchanged, boxed or not; converts any other error to its
/// text.
fn tool_error<E: Display + 'static>(error: E) -> Error {
    let mut error = Some(error);
    let any: &mut dyn Any = &mut error;
    if let Some(own) = any.downcast_mut::<Option<Error>>().and_then(Option::take) {
        return own;
    }
    if let Some(boxed) = any.downcast_mut::<Option<BoxError>>().and_then(Option::take) {
        return match boxed.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => Error::tool(other.to_string()).with_source(other),
        };
    }
    Error::tool(error.map(|e| e.to_string()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use agent_core::{ErrorKind, Question};

    use super::*;

    fn text(output: impl IntoToolOutput) -> String {
        output.into_tool_output().expect("an output").to_text()
    }

    #[test]
    fn every_return_type_shows_the_model_what_the_table_says() {
        assert_eq!(text("a"), "a");
        assert_eq!(text(String::from("a")), "a");
        assert_eq!(text(()), "done");
        assert_eq!(text(true), "true");
        assert_eq!(text(1.5), "1.5");
        assert_eq!(text(json!({"a": 1})), r#"{"a":1}"#);
        assert_eq!(text(u128::MAX), u128::MAX.to_string());
        assert_eq!(text(Json([i128::MIN])), format!("[\"{}\"]", i128::MIN));
        assert_eq!(text(Json(Some("a"))), "a");
        assert_eq!(text(None::<i32>), "null");
        assert_eq!(text(Some(Ok::<_, String>(1))), "1");
        assert_eq!(text(vec![Part::text("a"), Part::text("b")]), "a\nb");
    }

    #[test]
    fn an_error_of_the_framework_keeps_its_kind_boxed_or_not() {
        let question = || Error::interrupted(Question::new("call/approval", "approval", json!(null)));
        let plain: Result<(), Error> = Err(question());
        let boxed: Result<(), BoxError> = Err(Box::new(question()));
        for error in [plain.into_tool_output(), boxed.into_tool_output()].map(|r| r.expect_err("asked")) {
            assert_eq!(error.kind(), ErrorKind::Interrupted);
            assert_eq!(error.questions().len(), 1);
        }
    }

    #[test]
    fn another_error_is_a_tool_error_with_its_text() {
        let boxed: Result<(), BoxError> = Err("no disk".into());
        let io: Result<(), std::io::Error> = Err(std::io::Error::other("no disk"));
        for error in [boxed.into_tool_output(), io.into_tool_output()].map(|r| r.expect_err("failed")) {
            assert_eq!((error.kind(), error.message()), (ErrorKind::Tool, "no disk"));
        }
    }
}
