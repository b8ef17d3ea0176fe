//! Durations in configurations as a number of seconds, for
//! `#[serde(with = "agent_core::seconds")]`.
//!
//! ```
//! use std::time::Duration;
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Config {
//!     #[serde(with = "agent_core::seconds")]
//!     delay: Duration,
//!     #[serde(default, with = "agent_core::seconds")]
//!     most: Option<Duration>,
//! }
//!
//! let config: Config = serde_json::from_str(r#"{"delay": 1.5}"#)?;
//! assert_eq!((config.delay, config.most), (Duration::from_millis(1500), None));
//! assert!(serde_json::from_str::<Config>(r#"{"delay": -1}"#).is_err());
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! The JSON Schema of such a field is that of [`Seconds`]:
//! `#[schemars(with = "Option<agent_core::seconds::Seconds>")]`.

use std::{collections::BTreeMap, time::Duration};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error},
};

/// Serialises a duration, an optional one, or a map of them.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<T: InSeconds, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.written().serialize(serializer)
}

/// Deserialises a duration, an optional one, or a map of them.
///
/// # Errors
/// Those of the deserializer; a number that is negative, or too large for a duration.
pub fn deserialize<'de, T: InSeconds, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::Written::deserialize(deserializer).map(T::read)
}

/// A duration that is serialised as a non-negative number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct Seconds(#[cfg_attr(feature = "schema", schemars(with = "f64", range(min = 0.0)))] pub Duration);

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_secs_f64().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map(Self).map_err(D::Error::custom)
    }
}

/// Types that can be serialised as numbers of seconds.
pub trait InSeconds: Sized {
    /// Serialised form.
    type Written: Serialize + DeserializeOwned;

    /// Converts to the serialised form.
    fn written(&self) -> Self::Written;

    /// Converts from the serialised form.
    fn read(written: Self::Written) -> Self;
}

impl InSeconds for Duration {
    type Written = Seconds;

    fn written(&self) -> Seconds {
        Seconds(*self)
    }

    fn read(written: Seconds) -> Self {
        written.0
    }
}

impl InSeconds for Option<Duration> {
    type Written = Option<Seconds>;

    fn written(&self) -> Self::Written {
        self.map(Seconds)
    }

    fn read(written: Self::Written) -> Self {
        written.map(|seconds| seconds.0)
    }
}

impl InSeconds for BTreeMap<String, Duration> {
    type Written = BTreeMap<String, Seconds>;

    fn written(&self) -> Self::Written {
        self.iter().map(|(name, duration)| (name.clone(), Seconds(*duration))).collect()
    }

    fn read(written: Self::Written) -> Self {
        written.into_iter().map(|(name, seconds)| (name, seconds.0)).collect()
    }
}
