//! Callbacks and sinks on the event stream.

use crate::common;

use std::sync::{Arc, Mutex};

use agent_core::{
    Chunk, Event, EventKind, EventSink, Message, engine::RunDriver, journal::EntryBody, middleware::Middlewares,
};
use agent_middleware::{Events, telemetry::EventsConfig};
use common::{alone, begin, below, root};

/// A sink that records its events, as `depth:kind`.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl EventSink for Seen {
    fn emit(&self, event: &Event) {
        let what = match &event.kind {
            EventKind::Custom { name, .. } => name.clone(),
            EventKind::Message(message) => message.text(),
            EventKind::Chunk(_) => "chunk".into(),
            EventKind::SubAgentStarted { .. } => return,
            other => format!("{other:?}"),
        };
        self.0.lock().expect("lock").push(format!("{}:{what}", event.ids.depth));
    }
}

impl Seen {
    fn all(&self) -> Vec<String> {
        self.0.lock().expect("lock").clone()
    }
}

fn say(run: &RunDriver, name: &str) {
    run.cx().emit(EventKind::Custom { name: name.into(), value: serde_json::Value::Null });
}

#[tokio::test]
async fn two_sinks_both_get_every_event_in_order() {
    let (first, second) = (Seen::default(), Seen::default());
    let list = alone(Events::new().sink(Arc::new(first.clone())).sink(Arc::new(second.clone())));
    let run = root(|_| {});
    begin(&list, run.cx()).await;
    say(&run, "a");
    run.engine().log().record(EntryBody::MessageAppended { message: Message::user("b") });
    run.engine().log().commit().await.expect("commits");
    say(&run, "c");
    assert_eq!(first.all(), ["0:a", "0:b", "0:c"]);
    assert_eq!(second.all(), first.all());
}

#[tokio::test]
async fn a_middleware_that_covers_sub_agents_sends_each_event_once() {
    let seen = Seen::default();
    let covers: Middlewares = alone(Events::new().sink(Arc::new(seen.clone())));
    let run = root(|_| {});
    begin(&covers, run.cx()).await;
    let child = below(run.cx(), |parts| parts.inherited = covers.clone());
    begin(&covers, child.cx()).await;
    let grandchild = below(child.cx(), |parts| parts.inherited = covers.clone());
    begin(&covers, grandchild.cx()).await;
    say(&run, "root");
    say(&child, "child");
    say(&grandchild, "grandchild");
    assert_eq!(seen.all(), ["0:root", "1:child", "2:grandchild"]);
}

#[tokio::test]
async fn a_sink_at_the_root_gets_the_tree_and_one_at_a_sub_agent_its_own_part() {
    let (at_root, at_child) = (Seen::default(), Seen::default());
    let run = root(|_| {});
    begin(&alone(Events::new().sink(Arc::new(at_root.clone()))), run.cx()).await;
    let child = below(run.cx(), |_| {});
    begin(&alone(Events::new().sink(Arc::new(at_child.clone()))), child.cx()).await;
    let sibling = below(run.cx(), |_| {});
    for (run, name) in [(&run, "root"), (&child, "child"), (&sibling, "sibling")] {
        say(run, name);
    }
    assert_eq!(at_root.all(), ["0:root", "1:child", "1:sibling"]);
    assert_eq!(at_child.all(), ["1:child"]);
}

#[tokio::test]
async fn filters_chunks_and_sub_agents_can_be_left_out() {
    let (words, quiet) = (Seen::default(), Seen::default());
    let filtered = Events::new()
        .sink(Arc::new(words.clone()))
        .only(|e| matches!(e.kind, EventKind::Custom { .. }))
        .only(|e| !matches!(&e.kind, EventKind::Custom { name, .. } if name == "secret"));
    let config: EventsConfig = serde_json::from_str(r#"{"chunks": false, "sub_agents": false}"#).expect("parses");
    let own = Events::from(config).sink(Arc::new(quiet.clone()));
    let run = root(|_| {});
    begin(&alone(filtered), run.cx()).await;
    begin(&alone(own), run.cx()).await;
    let child = below(run.cx(), |_| {});
    say(&run, "secret");
    say(&run, "word");
    say(&child, "below");
    run.cx().emit(EventKind::Chunk(Chunk::Restart));
    assert_eq!(words.all(), ["0:word", "1:below"]);
    assert_eq!(quiet.all(), ["0:secret", "0:word"]);
}

#[tokio::test]
async fn without_sinks_nobody_watches_and_events_cost_nothing() {
    let run = root(|_| {});
    begin(&alone(Events::new()), run.cx()).await;
    assert!(!run.cx().is_observed());
}
