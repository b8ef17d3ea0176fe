//! [`KeyVariable`].

use serde::{Deserialize, Serialize};

use crate::Auth;

/// An environment variable that may hold a key. In JSON it is its name alone, if nothing else is to be said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "Form", into = "Form")]
#[non_exhaustive]
pub struct KeyVariable {
    /// Its name.
    pub variable: String,
    /// How what it holds is shown. Default: as the profile of the wire says.
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
