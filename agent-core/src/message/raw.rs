//! Provider-specific JSON, preserved byte for byte.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Wire, provider and model that produced some content.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin(Arc<OriginInner>);

#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct OriginInner {
    wire: String,
    provider: String,
    model: Arc<str>,
}

impl Origin {
    /// Creates an origin; `wire` is the protocol's name, such as `openai-chat`.
    pub fn new(wire: impl Into<String>, provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self(Arc::new(OriginInner { wire: wire.into(), provider: provider.into(), model: model.into().into() }))
    }

    /// Name of the protocol.
    pub fn wire(&self) -> &str {
        &self.0.wire
    }

    /// Provider that serves the model.
    pub fn provider(&self) -> &str {
        &self.0.provider
    }

    /// Name of the requested model.
    pub fn model(&self) -> &str {
        &self.0.model
    }

    /// Returns the name of the answering model. If it equals the requested model, as it mostly
    /// does, the allocation is shared.
    pub fn answered_by(&self, model: &str) -> Arc<str> {
        if *self.0.model == *model { self.0.model.clone() } else { model.into() }
    }
}

/// JSON exactly as a provider sent it, with its origin. Cheap to clone.
#[derive(Clone)]
pub struct Raw(Arc<RawInner>);

#[derive(Serialize, Deserialize)]
struct RawInner {
    origin: Origin,
    json: Box<RawValue>,
}

impl Raw {
    /// Stores `json`, which must be one valid JSON value.
    ///
    /// # Errors
    /// If `json` is not valid JSON.
    pub fn parse(origin: Origin, json: impl Into<String>) -> serde_json::Result<Self> {
        Ok(Self(Arc::new(RawInner { origin, json: RawValue::from_string(json.into())? })))
    }

    /// Stores a value; its bytes are serde_json's serialisation.
    pub fn from_value(origin: Origin, value: &serde_json::Value) -> Self {
        // A `Value` always serialises: its keys are strings and its numbers are finite.
        let json = RawValue::from_string(value.to_string()).unwrap_or_default();
        Self(Arc::new(RawInner { origin, json }))
    }

    /// Stores JSON that is already parsed.
    pub fn new(origin: Origin, json: Box<RawValue>) -> Self {
        Self(Arc::new(RawInner { origin, json }))
    }

    /// Origin of the JSON.
    pub fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// The JSON text, byte for byte.
    pub fn json(&self) -> &str {
        self.0.json.get()
    }

    /// The JSON as serde_json's raw value, which serialises without parsing.
    pub fn raw_value(&self) -> &RawValue {
        &self.0.json
    }

    /// Parses the JSON.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(self.json()).unwrap_or_default()
    }
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.origin == other.0.origin && self.json() == other.json())
    }
}

impl Eq for Raw {}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Raw({}: {})", self.0.origin.wire(), self.json())
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawInner::deserialize(deserializer).map(|inner| Self(Arc::new(inner)))
    }
}
