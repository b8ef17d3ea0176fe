//! From data to a text.

use serde::Serialize;

/// The value as YAML.
///
/// # Errors
/// A value that is no data.
pub(in crate::config) fn to_yaml(value: &impl Serialize) -> Result<String, String> {
    let value = serde_json::to_value(value).map_err(|e| e.to_string())?;
    serde_saphyr::to_string(&value).map_err(|e| e.to_string())
}
