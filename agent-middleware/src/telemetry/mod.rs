//! Observability of a run: events, logs, and OpenTelemetry.
//!
//! [`Events`] and [`Logging`] are middlewares, as is `Telemetry` with the feature `telemetry`. This
//! module contains their configurations; and with that feature, the propagation of a trace to
//! another process (`TraceContext`), spans around models outside of any agent (`TracedModel`) and,
//! with the feature `otlp`, the export to a collector (`Otlp`).
//!
//! ```
//! use agent_middleware::{Logging, telemetry::LogLevel};
//!
//! let logging = Logging::new().level(LogLevel::Debug);
//! # drop(logging);
//! ```

mod events;
mod logging;
#[cfg(feature = "telemetry")]
mod otel;

#[cfg(feature = "telemetry")]
pub use self::otel::{Capture, Telemetry, TelemetryConfig, TokenMetrics, TraceContext, TracedModel};
#[cfg(feature = "otlp")]
pub use self::otel::{Otlp, OtlpBuilder};
pub use self::{
    events::{Events, EventsConfig},
    logging::{LogLevel, Logging, LoggingConfig},
};
