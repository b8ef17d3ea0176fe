//! Kinds of APIs: models on a wire, embeddings, reranking.

use std::fmt;

use agent_core::Result;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Provider, reach::Wanted};
use crate::{Auth, wire::json::lay};

/// Kind of API at a provider.
pub(super) trait Way: Copy + fmt::Display {
    /// Returns the field of a [`Provider`] with the profile for this API.
    fn profile(self) -> &'static str;

    /// Returns the base URL of this API at `provider`.
    fn base_url(self, provider: &Provider) -> Option<&str>;

    /// Sets the base URL of this API at `provider`.
    fn set_base_url(self, provider: &mut Provider, url: &str);

    /// Returns true if base URLs omit the API version, as for Google's own clients.
    fn lacks_version(self) -> bool {
        false
    }
}

/// Profile of an API.
pub(super) trait Spoken: Sized {
    type Way: Way;

    /// Splits the name into the model's own name and the kind of API.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the provider does not have this API, or the
    /// name is invalid.
    fn chosen<'a>(name: &'a str, wanted: &Wanted, provider: &Provider) -> Result<(&'a str, Self::Way)>;

    /// Returns the provider's profile; `None` if it has none.
    fn of(provider: &Provider, way: Self::Way) -> Option<Self>;

    fn auth(&self) -> &Auth;

    /// Returns the feature that is required to decode answers.
    fn feature(&self) -> Option<&'static str> {
        None
    }

    /// Sets a field of the profile. The inner error lists the fields, or describes the invalid
    /// value.
    fn set(&mut self, name: &str, value: &Value) -> Result<(), String>;
}

/// The URL is not an option, because it determines who receives the key.
const NO_OPTION: &str = "base_url";

/// Sets a field of a profile.
pub(super) fn set<P: Serialize + DeserializeOwned>(profile: &mut P, name: &str, value: &Value) -> Result<(), String> {
    let mut json = serde_json::to_value(&*profile).map_err(|e| e.to_string())?;
    let Some(fields) = json.as_object_mut() else { return Err(String::new()) };
    match fields.get_mut(name).filter(|_| name != NO_OPTION) {
        Some(field) => lay(field, value),
        None => {
            let there: Vec<_> = fields.keys().filter(|field| *field != NO_OPTION).map(String::as_str).collect();
            return Err(format!("there are {}", there.join(", ")));
        }
    }
    *profile = serde_json::from_value(json).map_err(|e| e.to_string())?;
    Ok(())
}
