//! Sinks of events: they run with no lock held, so they may use the run whose events they get.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
    mpsc,
};

use agent_core::{
    Event, EventKind, Message, Middleware, Result, RunCx, async_trait,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_middleware::Delegation;
use serde_json::json;

/// Sends the events of its run to a sink that does this with each.
struct Sink<F>(Arc<F>);

#[async_trait]
impl<F: Fn(&RunCx, &Event) + Send + Sync + 'static> Middleware for Sink<F> {
    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        let (look, run) = (self.0.clone(), cx.clone());
        cx.attach(Arc::new(move |event: &Event| look(&run, event)));
        Ok(())
    }
}

/// A sink that does something with the first event that it is for.
fn once(is_it: fn(&EventKind) -> bool, act: impl Fn(&RunCx) + Send + Sync + 'static) -> impl Middleware {
    let first = AtomicBool::new(true);
    Sink(Arc::new(move |cx: &RunCx, event: &Event| {
        if is_it(&event.kind) && first.swap(false, Ordering::SeqCst) {
            act(cx);
        }
    }))
}

/// The answer of a run that may block its thread for ever.
fn on_a_thread(agent: impl FnOnce() -> Agent + Send + 'static) -> Option<String> {
    let (told, hears) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let end = runtime.block_on(async { agent().run("go").await });
        let _ = told.send(end.map_or_else(|e| e.to_string(), |end| end.finished().expect("finishes").answer));
    });
    hears.recv_timeout(std::time::Duration::from_secs(10)).ok()
}

fn says_done(name: &str) -> agent_exec::AgentBuilder {
    Agent::builder(name, ScriptedModel::new([Turn::text("done")]))
}

#[test]
fn a_sink_can_steer_when_a_sub_agent_is_reported() {
    let agent = || {
        let boss = ScriptedModel::new([
            Turn::call("d", "delegate", json!({"agent": "helper", "message": "help", "background": true})),
            Turn::text("I wait."),
            Turn::text("done"),
            Turn::text("done"),
        ]);
        let steers = once(
            |kind| matches!(kind, EventKind::SubAgentReported { .. }),
            |cx| cx.steer(Message::user("noted")).expect("accepted"),
        );
        let delegation =
            Delegation::new().background().to("helper", "Helps.", says_done("helper").build().expect("builds"));
        Agent::builder("boss", boss).middleware(steers).middleware(delegation).build().expect("builds")
    };
    assert_eq!(on_a_thread(agent).as_deref(), Some("done"), "none: the thread hangs");
}

#[test]
fn a_sink_can_attach_another_one_which_gets_what_comes_then() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = seen.clone();
    let agent = move || {
        let attaches = once(
            |_| true,
            move |cx| {
                let notes = notes.clone();
                cx.attach(Arc::new(move |event: &Event| notes.lock().expect("free").push(event.kind.clone())));
            },
        );
        says_done("a").middleware(attaches).build().expect("builds")
    };
    assert_eq!(on_a_thread(agent).as_deref(), Some("done"), "none: the thread hangs");
    let seen = seen.lock().expect("free");
    assert!(matches!(seen.last(), Some(EventKind::RunEnded { .. })), "{seen:?}");
}

#[test]
fn a_sink_can_emit_spawn_stop_and_read_the_run() {
    let agent = || {
        let uses = once(
            |kind| matches!(kind, EventKind::StepStarted { .. }),
            |cx| {
                cx.emit(EventKind::Custom { name: "seen".into(), value: json!(cx.history().len()) });
                cx.spawn(async {}).expect("the run is in progress");
                cx.stop("seen");
            },
        );
        says_done("a").middleware(uses).build().expect("builds")
    };
    assert!(on_a_thread(agent).is_some(), "the thread hangs");
}
