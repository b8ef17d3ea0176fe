//! Events of other layers as events of the run's span.

use std::sync::{Arc, Weak};

use agent_core::{
    Event, EventKind, EventSink, RunCx,
    event::{CircuitState, Compaction},
};
use serde_json::Value;
use tracing::Level;

use super::{
    Capture, TARGET,
    attributes::{error_type, number},
    content::Content,
    run::Run,
};

/// Event sink of a run, dropped with it.
pub(super) struct SpanEvents {
    run: Weak<Run>,
    id: Arc<str>,
    content: Content,
}

impl SpanEvents {
    pub(super) fn of(cx: &RunCx, run: &Arc<Run>, content: Content) -> Self {
        Self { run: Arc::downgrade(run), id: cx.ids().run_id.clone(), content }
    }

    /// Emits a judgement, by the conventions' names for evaluations.
    fn judged(&self, judgement: &Value) {
        let label = judgement["verdict"].as_str().unwrap_or_default();
        // The explanation is content.
        let why = judgement["feedback"].as_str().filter(|_| self.content.capture != Capture::Off);
        tracing::event!(
            name: "gen_ai.evaluation.result",
            target: TARGET,
            parent: None,
            Level::INFO,
            gen_ai.evaluation.name = "judgement",
            gen_ai.evaluation.score.label = label,
            gen_ai.evaluation.score.value = if label == "stop" { 1.0 } else { 0.0 },
            gen_ai.evaluation.explanation = why.map(|why| self.content.text(why.to_owned())),
        );
    }
}

impl EventSink for SpanEvents {
    fn emit(&self, event: &Event) {
        // Child runs have their own sink.
        let Some(run) = self.run.upgrade().filter(|_| event.ids.run_id == self.id) else { return };
        run.span.in_scope(|| match &event.kind {
            EventKind::Compaction(done) => compacted(done, event.position.seq),
            EventKind::Retry { kind, .. } => decided("retry", "again", &error_type(*kind)),
            EventKind::Failover { to, kind, .. } => decided("failover", to, &error_type(*kind)),
            EventKind::Hedge { .. } => decided("hedge", "beside", ""),
            EventKind::Circuit { key, state } => decided("circuit_breaker", circuit(*state), key),
            EventKind::Custom { name, value } if name == "judgement" => self.judged(value),
            _ => {}
        });
    }
}

fn circuit(state: CircuitState) -> &'static str {
    match state {
        CircuitState::Closed => "closed",
        CircuitState::Open => "open",
        CircuitState::HalfOpen => "half_open",
    }
}

fn compacted(done: &Compaction, seq: u64) {
    let count = |n: usize| number(n as u64);
    tracing::event!(
        name: "agent.compaction",
        target: TARGET,
        parent: None,
        Level::INFO,
        agent.compaction.strategy = done.strategy,
        agent.compaction.reason = done.mode.reason(),
        agent.compaction.messages.before = count(done.messages_before),
        agent.compaction.messages.after = count(done.messages_after),
        agent.compaction.tokens.before = number(done.tokens_before),
        agent.compaction.tokens.after = number(done.tokens_after),
        agent.compaction.failed = done.failure.is_some(),
        agent.journal.seq = number(seq),
    );
}

fn decided(layer: &str, decision: &str, about: &str) {
    tracing::event!(
        name: "agent.layer.decision",
        target: TARGET,
        parent: None,
        Level::INFO,
        agent.layer.name = layer,
        agent.layer.decision = decision,
        agent.layer.about = about,
    );
}
