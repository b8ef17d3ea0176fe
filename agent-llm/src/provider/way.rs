//! What a provider may be asked for: models on a wire, vectors, ranks.

use std::fmt;

use agent_core::Result;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Provider, reach::Wanted};
use crate::{Auth, wire::json::lay};

/// What a provider is asked for, and how.
pub(super) trait Way: Copy + fmt::Display {
    /// The field of a [`Provider`] that says how it is asked so.
    fn profile(self) -> &'static str;

    /// Where `provider` is asked so.
    fn base_url(self, provider: &Provider) -> Option<&str>;

    /// Has `provider` be asked so at another address.
    fn set_base_url(self, provider: &mut Provider, url: &str);

    /// A server of one's own that is asked so, as `like` is.
    fn own(self, name: &str, url: &str, like: &Provider) -> Provider;

    /// True if addresses are said without the version of the API, as Google's own clients take them.
    fn lacks_version(self) -> bool {
        false
    }
}

/// How a provider is asked: its profile.
pub(super) trait Spoken: Sized {
    type Way: Way;

    /// The model's own name, and the way to it.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the provider cannot be asked so, or the name is none.
    fn chosen<'a>(name: &'a str, wanted: &Wanted, provider: &Provider) -> Result<(&'a str, Self::Way)>;

    /// None if the provider has no such profile.
    fn of(provider: &Provider, way: Self::Way) -> Option<Self>;

    fn auth(&self) -> &Auth;

    /// The feature without which answers cannot be read.
    fn feature(&self) -> Option<&'static str> {
        None
    }

    /// Sets a field of the profile. The inner error is what fields there are, or what is wrong with the value.
    fn set(&mut self, name: &str, value: &Value) -> Result<(), String>;
}

/// The address is no option: with it goes who may see the key.
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
