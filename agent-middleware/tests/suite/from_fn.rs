//! Closures as layers and as hooks.

use crate::common;

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use agent_core::{
    Error, ErrorKind, Flow, Message, Middleware, ModelRequest, ModelResponse, ModelService, Result, Retry, ToolOutput,
    ToolRequest, ToolService, engine::RunDriver,
};
use agent_middleware::{after_model_fn, after_tool_fn, before_model_fn, before_tool_fn, from_fn};
use common::{alone, call, model_stack, root, tool_stack};
use serde_json::json;
use tower::{Layer, Service, ServiceExt, limit::ConcurrencyLimitLayer, load_shed::LoadShedLayer, service_fn};

fn request(run: &RunDriver) -> ModelRequest {
    ModelRequest::new(run.cx().clone())
}

/// Returns a model that first fails `failures` times.
fn shaky(failures: u32) -> (ModelService, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let counter = calls.clone();
    let model = service_fn(move |_: ModelRequest| {
        let failed = counter.fetch_add(1, Ordering::SeqCst) < failures;
        async move {
            let e = || Error::new(ErrorKind::Transport, "cut off").with_retry(Retry::Temporary(None));
            if failed { Err(e()) } else { Ok(ModelResponse::new("fine")) }
        }
    });
    (ModelService::new(model), calls)
}

#[tokio::test]
async fn a_closure_may_answer_without_the_rest_of_the_stack() {
    let (model, calls) = shaky(0);
    let canned = from_fn(|_: ModelRequest, _: ModelService| async { Ok(ModelResponse::new("canned")) });
    let run = root(|_| {});
    let res = canned.layer(model).oneshot(request(&run)).await.expect("answers");
    assert_eq!((res.message.text().as_str(), calls.load(Ordering::SeqCst)), ("canned", 0));
}

#[tokio::test]
async fn a_closure_may_run_the_rest_of_the_stack_again() {
    let (model, calls) = shaky(3);
    let stubborn = from_fn(|req: ModelRequest, next: ModelService| async move {
        loop {
            match next.clone().oneshot(req.clone()).await {
                Err(e) if e.is_retryable() => {}
                answered => return answered,
            }
        }
    });
    let run = root(|_| {});
    stubborn.layer(model).oneshot(request(&run)).await.expect("answers");
    assert_eq!(calls.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn the_same_function_makes_tool_layers() {
    let loud = from_fn(|req: ToolRequest, next: ToolService| async move {
        let out = next.oneshot(req).await?;
        Ok(ToolOutput::text(out.to_text().to_uppercase()))
    });
    let tool = ToolService::new(service_fn(|_: ToolRequest| async { Ok::<_, Error>(ToolOutput::text("quiet")) }));
    let run = root(|_| {});
    let out = loud.layer(tool).oneshot(call(run.cx(), "c", "f", json!({}))).await.expect("answers");
    assert_eq!(out.to_text(), "QUIET");
}

#[tokio::test]
async fn readiness_goes_through_so_that_stock_layers_outside_work() {
    let model = service_fn(|_: ModelRequest| std::future::pending::<Result<ModelResponse>>());
    let limited = ModelService::new(ConcurrencyLimitLayer::new(1).layer(model));
    let passing = from_fn(|req: ModelRequest, mut next: ModelService| async move { next.call(req).await });
    let shed = ModelService::new(LoadShedLayer::new().layer(passing.layer(limited)));
    let run = root(|_| {});
    let first = tokio::spawn(shed.clone().oneshot(request(&run)));
    tokio::task::yield_now().await;
    let e = shed.oneshot(request(&run)).await.expect_err("the one place is taken");
    assert_eq!(e.kind(), ErrorKind::Overloaded);
    first.abort();
}

#[test]
fn debug_names_the_closure() {
    let layer = from_fn(|req: ModelRequest, next: ModelService| next.oneshot(req));
    assert!(format!("{layer:?}").contains("from_fn::debug_names_the_closure"));
    assert!(format!("{:?}", layer.layer(shaky(0).0)).contains("SharedService"));
}

#[tokio::test]
async fn hooks_of_closures_run_where_their_names_say() {
    let run = root(|_| {});
    let model = |hook| {
        model_stack(&hook, |req: ModelRequest| async move {
            Ok(ModelResponse::new(&*req.messages.iter().map(Message::text).collect::<String>()))
        })
    };
    let said = async |hook| model(hook).oneshot(request(&run)).await.expect("answers").message.text();
    let before = before_model_fn("today", |_, req| {
        req.messages.push(Message::user("It is Monday."))?;
        Ok(Flow::Continue)
    });
    assert_eq!(said(alone(before)).await, "It is Monday.");
    let after = after_model_fn("shout", |_, res| {
        res.message = "HA".into();
        Ok(())
    });
    assert_eq!(said(alone(after)).await, "HA");

    let tool = |hook| tool_stack(&hook, |req: ToolRequest| async move { Ok(ToolOutput::text(req.args.to_string())) });
    let does = async |hook| tool(hook).oneshot(call(run.cx(), "c", "f", json!({}))).await.expect("answers").to_text();
    let dry =
        before_tool_fn("dry", |_, req| Ok(Flow::Answer(ToolOutput::text(format!("would run {}", req.call.name)))));
    assert_eq!(does(alone(dry)).await, "would run f");
    let tag = after_tool_fn("tag", |_, req, out| {
        out.content_mut().push((&*req.call.id).into());
        Ok(())
    });
    assert_eq!(does(alone(tag)).await, "{}\nc");
}

#[tokio::test]
async fn a_hook_that_fails_is_named() {
    let failing = before_model_fn("guard", |_, _| Err(Error::new(ErrorKind::Middleware, "no")));
    assert_eq!(failing.name(), "guard");
    let run = root(|_| {});
    let model = model_stack(&alone(failing), |_| async { Ok(ModelResponse::new("fine")) });
    let e = model.oneshot(request(&run)).await.expect_err("fails");
    assert_eq!(e.context("middleware"), Some("guard"));
}
