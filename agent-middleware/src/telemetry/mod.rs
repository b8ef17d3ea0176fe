//! What others see of a run: events, logs, and OpenTelemetry.
//!
//! [`Events`] and [`Logging`] are middlewares, as is `Telemetry` with the feature `telemetry`. Here are their configurations; and with
//! that feature what carries a trace to another process (`TraceContext`), puts spans around a model that no agent calls
//! (`TracedModel`) and, with the feature `otlp`, sends it all to a collector (`Otlp`).
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
