//! What a step costs, beside a bare `ctx.run`.

use std::time::{Duration, Instant};

use agent_core::{
    AssistantMessage, Block, Message, Model, ModelInfo, ModelRequest, ModelResponse, Result, RunRequest, async_trait,
    dispatch::{Dispatch, Job},
};
use agent_exec::Agent;
use agent_restate::AgentEndpoint;
use restate_sdk::prelude::*;

use crate::common::{self, Server};

/// Steps of each way.
const STEPS: u64 = 100;

/// The bare way: as many steps as it is told.
struct Bare;

#[restate_sdk::service]
impl Bare {
    #[handler]
    async fn bare(&self, ctx: Context<'_>, steps: u64) -> std::result::Result<u64, HandlerError> {
        for _ in 0..steps {
            ctx.run(|| async { Ok("x".repeat(200)) }).await?;
        }
        Ok(steps)
    }
}

/// Calls a tool that is not there, until that was said often enough: a step of the journal each.
struct Chatty;

#[async_trait]
impl Model for Chatty {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("chatty")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let step = req.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count() as u64;
        Ok(ModelResponse::new(match step + 1 < STEPS {
            true => AssistantMessage::new(vec![Block::tool_call(format!("c{step}"), "nothing", "{}")]),
            false => "done".into(),
        }))
    }
}

/// Prints both, and the ratio.
pub(crate) async fn measure(server: &Server) {
    let restate = server.restate();
    let bare = common::free_address();
    let listener = AgentEndpoint::listen(bare).expect("the address is free");
    let endpoint = Endpoint::builder().bind(Bare).build();
    let serving = HttpServer::new(endpoint).serve_with_cancel(listener, std::future::pending::<()>());
    let bare_process = tokio::spawn(serving);
    restate.register(&format!("http://{bare}")).await.expect("registers");

    let agent = Agent::builder("chatty", Chatty).max_steps(1_000).build().expect("an agent");
    let endpoint = AgentEndpoint::builder().service("Chatty").agent(agent).build().expect("an endpoint");
    let address = common::free_address();
    let listener = AgentEndpoint::listen(address).expect("the address is free");
    let process = tokio::spawn(async move { endpoint.serve(listener, std::future::pending::<()>()).await });
    restate.register(&format!("http://{address}")).await.expect("registers");

    let chatty = server.restate_of("Chatty");
    let (mut bare_time, mut agent_time) = (Duration::MAX, Duration::MAX);
    for round in 0..3 {
        let began = Instant::now();
        common::post(&format!("{}/Bare/bare", server.ingress()), &STEPS.to_string()).await;
        bare_time = bare_time.min(began.elapsed());
        let began = Instant::now();
        let job = Job::new("chatty", &RunRequest::user("go").run_id(format!("chatty{round}"))).expect("is data");
        chatty.dispatch(job.clone()).await.expect("is taken");
        let outcome = chatty.outcome(&job.at).await.expect("ends");
        assert_eq!(outcome.answer.as_deref(), Some("done"), "{outcome:?}");
        agent_time = agent_time.min(began.elapsed());
    }
    let each = |time: Duration| time.as_secs_f64() * 1_000. / STEPS as f64;
    let ratio = agent_time.as_secs_f64() / bare_time.as_secs_f64();
    println!(
        "a step of an agent       {:>8.2} ms, {ratio:.2} times a bare ctx.run ({:.2} ms)",
        each(agent_time),
        each(bare_time)
    );
    process.abort();
    bare_process.abort();
}
