//! [`KeyVariable`]: environment variable with an API key.

use serde::{Deserialize, Serialize};

use crate::Auth;

/// Environment variable that may contain a key. In JSON it is the bare name unless other fields are
/// set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "Form", into = "Form")]
#[non_exhaustive]
pub struct KeyVariable {
    /// Name of the variable.
    pub variable: String,
    /// Placement of the key. Default: as in the wire's profile.
    pub auth: Option<Auth>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum Form {
    Name(String),
    Whole { variable: String, auth: Auth },
}

impl From<&str> for KeyVariable {
    fn from(variable: &str) -> Self {
        Self { variable: variable.to_owned(), auth: None }
    }
}

impl From<Form> for KeyVariable {
    fn from(form: Form) -> Self {
        match form {
            Form::Name(variable) => Self { variable, auth: None },
            Form::Whole { variable, auth } => Self { variable, auth: Some(auth) },
        }
    }
}

impl From<KeyVariable> for Form {
    fn from(key: KeyVariable) -> Self {
        match key.auth {
            None => Self::Name(key.variable),
            Some(auth) => Self::Whole { variable: key.variable, auth },
        }
    }
}
