//! Rules of the Agent Skills specification.

/// Maximum lengths, in characters.
const NAME: usize = 64;
pub(super) const DESCRIPTION: usize = 1024;
pub(super) const COMPATIBILITY: usize = 500;

/// Returns the violations of a name.
pub(super) fn of_name(name: &str) -> Vec<String> {
    let mut found = of_length("name", name, NAME);
    if name.chars().any(|c| (c.is_uppercase() || !c.is_alphanumeric()) && c != '-') {
        found.push(format!("the name '{name}' must consist of lower-case letters, digits and hyphens"));
    }
    if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        found.push(format!("the name '{name}' must not begin or end with a hyphen, or have two in a row"));
    }
    found
}

/// Returns the violation of a length.
pub(super) fn of_length(field: &str, text: &str, most: usize) -> Vec<String> {
    let length = text.chars().count();
    if length > most {
        vec![format!("the field '{field}' has {length} characters, and the limit is {most}")]
    } else {
        Vec::new()
    }
}
