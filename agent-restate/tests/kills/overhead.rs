//! Cost of a step, beside a bare `ctx.run`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use agent_core::{
    AssistantMessage, Block, Message, Model, ModelInfo, ModelRequest, ModelResponse, Result, RunRequest, async_trait,
    testing::ByteEngine,
};
use agent_dispatch::{Dispatch, Job};
use agent_exec::Agent;
use agent_restate::{AgentEndpoint, Restate};
use restate_sdk::prelude::*;

use crate::common::{self, Server};

/// Number of steps per variant.
const STEPS: u64 = 100;

/// Bare variant: as many steps as requested.
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

/// Model that calls a missing tool as often as the user requests: one journal step each.
struct Chatty;

#[async_trait]
impl Model for Chatty {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("chatty")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let step = req.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count() as u64;
        let steps = req.messages.iter().next().and_then(|message| message.text().parse().ok()).unwrap_or(STEPS);
        Ok(ModelResponse::new(match step + 1 < steps {
            true => AssistantMessage::new(vec![Block::tool_call(format!("c{step}"), "nothing", "{}")]),
            false => "done".into(),
        }))
    }
}

/// Prints both costs and their ratio.
pub(crate) async fn measure(server: &Server) {
    let restate = server.restate();
    let bare = common::free_address();
    let listener = AgentEndpoint::listen(bare).expect("the address is free");
    let endpoint = Endpoint::builder().bind(Bare).build();
    let serving = HttpServer::new(endpoint).serve_with_cancel(listener, std::future::pending::<()>());
    let bare_process = tokio::spawn(serving);
    restate.register(&format!("http://{bare}")).await.expect("registers");

    let agent = Agent::builder("chatty", Chatty).max_steps(1_000_000).build().expect("an agent");
    let endpoint = AgentEndpoint::builder().service("Chatty").agent(agent.clone()).build().expect("an endpoint");
    let address = common::free_address();
    let listener = AgentEndpoint::listen(address).expect("the address is free");
    let process = tokio::spawn(async move { endpoint.serve(listener, std::future::pending::<()>()).await });
    restate.register(&format!("http://{address}")).await.expect("registers");

    let chatty = server.restate_of("Chatty");
    let (mut bare_time, mut agent_time, mut own_time) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for round in 0..3 {
        let began = Instant::now();
        let alone = RunRequest::user("go").run_id("alone").durable(Arc::new(ByteEngine::default().attempt()));
        agent.start(alone).await.expect("ends");
        own_time = own_time.min(began.elapsed());
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
        "a step of an agent       {:>8.2} ms, {ratio:.2} times a bare ctx.run ({:.2} ms); {:.2} ms are the agent's own, without Restate",
        each(agent_time),
        each(bare_time),
        each(own_time)
    );
    journal(server, &chatty).await;
    process.abort();
    bare_process.abort();
}

/// Prints the growth of the journal of a run of `RESTATE_TURNS` steps, in its first and second
/// half.
async fn journal(server: &Server, chatty: &Restate) {
    let turns = std::env::var("RESTATE_TURNS").ok().and_then(|turns| turns.parse().ok()).unwrap_or(300_u64);
    let job = Job::new("chatty", &RunRequest::user(turns.to_string()).run_id("long")).expect("is data");
    let mut samples = vec![size(server).await];
    chatty.dispatch(job.clone()).await.expect("is taken");
    let began = Instant::now();
    let mut end = std::pin::pin!(chatty.outcome(&job.at));
    while tokio::time::timeout(Duration::from_millis(50), &mut end).await.is_err() {
        samples.push(size(server).await);
    }
    let took = began.elapsed().as_secs_f64() * 1_000. / turns as f64;
    samples.push(size(server).await);
    let (first, half, last) = (samples[0], samples[samples.len() / 2], samples[samples.len() - 1]);
    let bytes = |from: (f64, f64), to: (f64, f64)| (to.1 - from.1) / (to.0 - from.0);
    println!(
        "a run of {turns:>5} steps      {took:>8.2} ms and {:.1} entries a step, of {:.0} bytes in its first half and {:.0} in its second",
        (last.0 - first.0) / turns as f64,
        bytes(first, half),
        bytes(half, last)
    );
}

/// Returns the number of entries of all journals, and their bytes.
async fn size(server: &Server) -> (f64, f64) {
    let sql = "SELECT count(*) AS entries, coalesce(sum(raw_length), 0) AS bytes FROM sys_journal";
    let row = server.query(sql).await["rows"][0].take();
    (row["entries"].as_f64().unwrap_or_default(), row["bytes"].as_f64().unwrap_or_default())
}
