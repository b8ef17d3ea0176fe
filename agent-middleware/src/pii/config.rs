//! What is looked for, where, and what becomes of it.

use serde::{Deserialize, Serialize};

/// What is looked for, where, and what becomes of it. By default nothing is looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PiiConfig {
    /// What is looked for, and what becomes of it.
    pub rules: Vec<PiiRule>,
    /// In the messages that a model is sent. Default: true.
    pub input: bool,
    /// In what a model says: its text and its thinking. Default: true.
    pub output: bool,
    /// In the arguments of the tools that it calls. Default: false, since many tools cannot work without.
    pub tool_input: bool,
    /// In what tools give. Default: true.
    pub tool_output: bool,
}

impl Default for PiiConfig {
    fn default() -> Self {
        Self { rules: Vec::new(), input: true, output: true, tool_input: false, tool_output: true }
    }
}

/// What is looked for, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PiiRule {
    /// What is looked for.
    pub find: PiiKind,
    /// What becomes of it. Default: it is redacted.
    #[serde(default)]
    pub strategy: PiiStrategy,
}

impl PiiRule {
    /// This becomes of that.
    pub fn new(find: PiiKind, strategy: PiiStrategy) -> Self {
        Self { find, strategy }
    }
}

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PiiKind {
    /// Mail addresses.
    Email,
    /// Numbers of payment cards: 13 to 19 digits with a right check digit (Luhn).
    CreditCard,
    /// IPv4 and IPv6 addresses.
    Ip,
    /// MAC addresses.
    Mac,
    /// Addresses with a scheme, or that begin with `www.`.
    Url,
    /// Telephone numbers: international ones, North American ones, and those that begin with a zero.
    Phone,
    /// International bank account numbers with right check digits.
    Iban,
    /// Keys of well-known services, and signed tokens.
    Secret,
    /// What fits a regular expression.
    Pattern(PiiPattern),
}

/// A regular expression, and what it finds. Its cost is linear in the text, whatever the expression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PiiPattern {
    /// What is found, in one word: a-z, 0-9 and `_`.
    pub name: String,
    /// The expression, in the syntax of the `regex` crate.
    pub regex: String,
    /// What it is held against. Default: each line.
    #[serde(default)]
    pub scope: Scope,
}

impl PiiPattern {
    /// An expression that is held against each line.
    pub fn new(name: impl Into<String>, regex: impl Into<String>) -> Self {
        Self { name: name.into(), regex: regex.into(), scope: Scope::Line }
    }

    /// Sets what it is held against.
    #[must_use]
    pub fn within(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }
}

/// What an expression is held against. A streamed text is shown as soon as one of these is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scope {
    /// Each word: what it finds has no white space in it.
    Word,
    /// Each line.
    #[default]
    Line,
    /// The whole text, which is then shown at its end.
    Text,
}

/// What becomes of what is found. Ordered: of several that apply, the strictest holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PiiStrategy {
    /// Letters and digits become stars, but for the last quarter of them, at most four: `**** **** **** 1111`.
    Mask,
    /// A keyed hash stands in its place, the same for the same: `[EMAIL:5d41402abc4b2a76]`.
    Hash,
    /// Its name stands in its place: `[EMAIL]`.
    #[default]
    Redact,
    /// It goes no further: see [`Pii`](crate::Pii).
    Block,
}
