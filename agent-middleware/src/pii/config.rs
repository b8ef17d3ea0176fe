//! Configuration of [`Pii`](super::Pii).

use serde::{Deserialize, Serialize};

/// Configuration of [`Pii`](crate::Pii).
///
/// By default it redacts every [kind](PiiKind) except URLs and patterns: mail addresses, payment
/// cards, IP and MAC addresses, telephone numbers, bank accounts and secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PiiConfig {
    /// Kinds of data to find, with their strategies. Default: redact every kind except URLs and
    /// patterns.
    pub rules: Vec<PiiRule>,
    /// Scans the messages sent to a model. Default: true.
    pub input: bool,
    /// Scans model responses: text and reasoning. Default: true.
    pub output: bool,
    /// Scans the arguments of tool calls. Default: false, since many tools need the data.
    pub tool_input: bool,
    /// Scans tool outputs. Default: true.
    pub tool_output: bool,
}

impl Default for PiiConfig {
    fn default() -> Self {
        let rules = PiiKind::DEFAULT.map(|find| PiiRule::new(find, PiiStrategy::Redact)).into();
        Self { rules, input: true, output: true, tool_input: false, tool_output: true }
    }
}

impl PiiKind {
    /// Kinds that are redacted without rules. URLs are excluded because most agents need them.
    const DEFAULT: [Self; 7] =
        [Self::Email, Self::CreditCard, Self::Ip, Self::Mac, Self::Phone, Self::Iban, Self::Secret];
}

/// A rule: a kind of data to find, and the strategy for findings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PiiRule {
    /// Kind of data to find.
    pub find: PiiKind,
    /// Strategy for findings. Default: redact.
    #[serde(default)]
    pub strategy: PiiStrategy,
}

impl PiiRule {
    /// Creates a rule.
    pub fn new(find: PiiKind, strategy: PiiStrategy) -> Self {
        Self { find, strategy }
    }
}

/// Kind of data to find.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PiiKind {
    /// E-mail addresses.
    Email,
    /// Payment card numbers: 13 to 19 digits with a valid check digit (Luhn).
    CreditCard,
    /// IPv4 and IPv6 addresses.
    Ip,
    /// MAC addresses.
    Mac,
    /// URLs with a scheme, or that begin with `www.`.
    Url,
    /// Telephone numbers: international ones, North American ones, and national ones that begin
    /// with a zero.
    Phone,
    /// International bank account numbers with valid check digits.
    Iban,
    /// API keys of well-known services, and signed tokens.
    Secret,
    /// Matches of a regular expression.
    Pattern(PiiPattern),
}

/// A named regular expression. Its cost is linear in the text, whatever the expression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PiiPattern {
    /// Name of the findings: a-z, 0-9 and `_`.
    pub name: String,
    /// The expression, in the syntax of the `regex` crate.
    pub regex: String,
    /// Part of the text that it is matched against. Default: each line.
    #[serde(default)]
    pub scope: Scope,
}

impl PiiPattern {
    /// Creates an expression that is matched against each line.
    pub fn new(name: impl Into<String>, regex: impl Into<String>) -> Self {
        Self { name: name.into(), regex: regex.into(), scope: Scope::Line }
    }

    /// Sets the part of the text that it is matched against.
    #[must_use]
    pub fn within(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }
}

/// Part of the text that an expression is matched against. A streamed text is released as soon as
/// such a part is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scope {
    /// Each word: matches contain no white space.
    Word,
    /// Each line.
    #[default]
    Line,
    /// The whole text, which is then released only at its end.
    Text,
}

/// Strategy for findings. Ordered: of several that apply, the strictest wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PiiStrategy {
    /// Replaces letters and digits by stars, except for the last quarter of them, at most four:
    /// `**** **** **** 1111`.
    Mask,
    /// Replaces findings by a keyed hash, equal for equal findings: `[EMAIL:5d41402abc4b2a76]`.
    Hash,
    /// Replaces findings by their name: `[EMAIL]`.
    #[default]
    Redact,
    /// Blocks the text: see [`Pii`](crate::Pii).
    Block,
}
