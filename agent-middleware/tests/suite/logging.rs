//! Log lines of a run, and content that is not logged.

use crate::common;

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_core::{Error, ErrorKind, ModelRequest, ModelResponse, ToolOutput, Usage};
use agent_middleware::{
    Logging,
    telemetry::{LogLevel, LoggingConfig},
};
use common::{alone, begin, below, call, end, finished, model_stack, root, tool_stack};
use serde_json::json;
use tower::ServiceExt;
use tracing_subscriber::fmt::format::FmtSpan;

/// Log output of this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("lock").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn start() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .without_time()
            .with_max_level(tracing::Level::TRACE)
            .with_span_events(FmtSpan::NONE)
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().expect("lock").clone()).expect("UTF-8");
        text.lines().filter(|line| line.contains("agent:")).map(|line| line.trim().to_owned()).collect()
    }
}

/// Runs one model call, a tool call that succeeds and one that fails.
async fn run_under(logging: Logging) -> Vec<String> {
    let (log, _guard) = Log::start();
    let list = alone(logging);
    let run = root(|_| {});
    begin(&list, run.cx()).await;
    run.next_step();
    let model = model_stack(&list, |_| async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        Ok(ModelResponse::new("the password is swordfish").with_usage(Usage::new(50, 10)))
    });
    model.oneshot(ModelRequest::new(run.cx().clone())).await.expect("answers");
    let tool = tool_stack(&list, |req| async move {
        match &*req.call.name {
            "works" => Ok(ToolOutput::text("opened the door")),
            _ => Err(Error::tool("no door named swordfish")),
        }
    });
    for name in ["works", "fails"] {
        let req = call(run.cx(), "c1", name, json!({"word": "swordfish"}));
        tool.clone().oneshot(req).await.expect("is told");
    }
    end(&list, run.cx(), finished(run.cx())).await;
    log.lines()
}

#[tokio::test(start_paused = true)]
async fn a_run_its_calls_and_their_outcomes_are_written_without_any_content() {
    let lines = run_under(Logging::new()).await;
    let [started, model, works, fails, ended] = &lines[..] else { panic!("{lines:#?}") };
    assert!(started.starts_with("INFO run{agent=main run=") && started.ends_with("run started"), "{started}");
    assert!(model.contains("model_call{step=1}") && model.contains("model answered"), "{model}");
    assert!(model.contains("input=50 cached=0 output=10 ms=1500"), "{model}");
    assert!(works.contains(r#"tool_call{tool="works" call="c1"}"#) && works.contains("error=false"), "{works}");
    assert!(fails.starts_with("WARN") && fails.contains("error=tool"), "{fails}");
    assert!(ended.contains(r#"outcome="finished" reason="text" steps=1"#) && ended.contains("ms=1500"), "{ended}");
    let all = lines.concat();
    assert!(!all.contains("swordfish") && !all.contains("door"), "{all}");
}

#[tokio::test(start_paused = true)]
async fn content_and_arguments_are_shown_as_far_as_asked_for() {
    let all = run_under(Logging::new().content(12).arguments(9)).await.concat();
    for shown in [r#"content="the password""#, r#"content="opened the d""#, r#"arguments="{\"word\":\"""#] {
        assert!(all.contains(shown), "{shown} in {all}");
    }
    assert!(!all.contains("swordfish"), "{all}");
}

#[tokio::test(start_paused = true)]
async fn the_level_can_be_chosen_and_failures_are_warnings_at_every_level() {
    let config: LoggingConfig = serde_json::from_str(r#"{"level": "debug"}"#).expect("parses");
    let lines = run_under(Logging::from(config)).await;
    assert_eq!(lines.iter().filter(|l| l.starts_with("DEBUG")).count(), 4, "{lines:#?}");
    let lines = run_under(Logging::new().level(LogLevel::Error)).await;
    assert_eq!(lines.iter().filter(|l| l.starts_with("WARN")).count(), 1, "{lines:#?}");
}

#[tokio::test]
async fn failed_calls_and_failed_runs_are_written_with_their_error() {
    let (log, _guard) = Log::start();
    let list = alone(Logging::new());
    let run = root(|_| {});
    begin(&list, run.cx()).await;
    let model = model_stack(&list, |_| async { Err(Error::new(ErrorKind::RateLimited, "slow down")) });
    let e = model.oneshot(ModelRequest::new(run.cx().clone())).await.expect_err("fails");
    end(&list, run.cx(), Err(e)).await;
    let lines = log.lines();
    assert!(lines[1].contains("model call failed") && lines[1].contains("error=rate limited: slow down"), "{lines:#?}");
    assert!(lines[2].starts_with("WARN") && lines[2].contains("run failed"), "{lines:#?}");
}

#[tokio::test]
async fn the_span_of_a_sub_agent_lies_in_that_of_the_run_above() {
    let (log, _guard) = Log::start();
    let list = alone(Logging::new());
    let run = root(|_| {});
    begin(&list, run.cx()).await;
    let child = below(run.cx(), |_| {});
    begin(&list, child.cx()).await;
    end(&list, child.cx(), finished(child.cx())).await;
    let ended = log.lines().pop().expect("a line");
    assert!(ended.contains("run{agent=main ") && ended.contains(":run{agent=main/helper "), "{ended}");
}
