//! [`Events`]: callbacks and sinks on a run's event stream.

use std::{fmt, sync::Arc};

use agent_core::{Event, EventKind, EventSink, Middleware, Result, RunCx, engine::SubRuns};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

type Filter = dyn Fn(&Event) -> bool + Send + Sync;

/// Filter settings of `Events`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct EventsConfig {
    /// Passes on message chunks. Default: true.
    pub chunks: bool,
    /// Passes on events of the run's descendants. Default: true.
    pub sub_agents: bool,
}

impl Default for EventsConfig {
    fn default() -> Self {
        Self { chunks: true, sub_agents: true }
    }
}

/// Sends the events of a run and its descendants to callbacks and sinks.
///
/// Every sink receives every event, in order, on the run's own task, so it must not block. Without
/// sinks nothing is attached and events cost nothing. Slow consumers should use the run's event
/// stream instead, which never delays the run.
///
/// It is an observer: it changes nothing and cannot fail the run.
///
/// # Sub-agents
///
/// A sink at the root receives the events of the whole tree, so one registration there is enough. A
/// middleware that covers sub-agents is attached only once: it detects that a parent run already
/// has it.
///
/// # Order
///
/// Anywhere: events reflect the result of all hooks.
///
/// ```text
/// // right: once, at the root
/// root.middleware(Events::new().sink(sink.clone()))
/// // wrong: the events of the helper arrive twice, once from each registration
/// root.middleware(Events::new().sink(sink.clone())); helper.middleware(Events::new().sink(sink))
/// ```
///
/// # Example
///
/// ```
/// use std::sync::mpsc;
///
/// use agent_core::EventKind;
/// use agent_middleware::Events;
///
/// let (to_log, log) = mpsc::channel();
/// let events = Events::new()
///     .on(move |event| drop(to_log.send(event.kind.clone())))
///     .only(|event| matches!(event.kind, EventKind::ToolStarted { .. } | EventKind::ToolAnswered { .. }));
/// # drop((events, log));
/// ```
#[derive(Clone, Default)]
pub struct Events {
    config: EventsConfig,
    sinks: Vec<Arc<dyn EventSink>>,
    filter: Option<Arc<Filter>>,
}

impl Events {
    /// Creates the middleware without sinks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a sink.
    #[must_use]
    pub fn sink(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.sinks.push(sink);
        self
    }

    /// Adds a callback.
    #[must_use]
    pub fn on(self, callback: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.sink(Arc::new(callback))
    }

    /// Passes on only events for which `filter` returns true, to all sinks. A second filter narrows
    /// the first.
    #[must_use]
    pub fn only(mut self, filter: impl Fn(&Event) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(match self.filter {
            Some(first) => Arc::new(move |event| first(event) && filter(event)),
            None => Arc::new(filter),
        });
        self
    }

    /// Sets whether message chunks are passed on. Default: true.
    #[must_use]
    pub fn chunks(mut self, chunks: bool) -> Self {
        self.config.chunks = chunks;
        self
    }

    /// Sets whether events of descendants are passed on. Default: true.
    #[must_use]
    pub fn sub_agents(mut self, sub_agents: bool) -> Self {
        self.config.sub_agents = sub_agents;
        self
    }

    /// True if a parent run already has this middleware and its sinks.
    fn is_inherited(&self, cx: &RunCx) -> bool {
        SubRuns::of(cx).inherited().iter().any(|m| std::ptr::addr_eq(Arc::as_ptr(m), self))
    }
}

impl From<EventsConfig> for Events {
    fn from(config: EventsConfig) -> Self {
        Self { config, ..Self::default() }
    }
}

#[async_trait]
impl Middleware for Events {
    fn name(&self) -> &str {
        "events"
    }

    fn observer(&self) -> bool {
        true
    }

    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        if !self.sinks.is_empty() && !self.is_inherited(cx) {
            cx.attach(Arc::new(Tap { events: self.clone(), run: cx.ids().run_id.clone() }));
        }
        Ok(())
    }
}

/// All sinks of one middleware, attached to one run and dropped with it.
struct Tap {
    events: Events,
    run: Arc<str>,
}

impl EventSink for Tap {
    fn emit(&self, event: &Event) {
        let Events { config, sinks, filter } = &self.events;
        let wanted = (config.chunks || !matches!(event.kind, EventKind::Chunk(_)))
            && (config.sub_agents || event.ids.run_id == self.run)
            && filter.as_ref().is_none_or(|filter| filter(event));
        if wanted {
            sinks.iter().for_each(|sink| sink.emit(event));
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("config", &self.config)
            .field("sinks", &self.sinks.len())
            .field("filtered", &self.filter.is_some())
            .finish()
    }
}
