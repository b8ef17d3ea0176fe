//! `agent worker`.

use std::{sync::Arc, time::Duration};

use agent::{Agent, AgentBuilder, Error, Result, RunRequest, config::StoreAddress, dispatch::Job, store::QueueLimits};
use agent_restate::{AgentEndpoint, AgentEndpointBuilder, FileBlobs};
use agent_server::request_of;
use serde_json::json;

use crate::{
    cli::{Global, Worker},
    engine::{Engine, RestateAddress, queue_at},
    load::assemble_all,
    output::{End, announce, cannot, plain, print_json},
};

/// Runs what others send, until somebody ends it; then brings what is under way to a safe point.
pub(crate) async fn worker(wanted: Worker, global: &Global) -> Result<End> {
    let (agents, address) = assemble_all(&wanted.files, global)?;
    let agents = agents.into_iter().map(|agent| agent.builder).collect();
    match &wanted.engine {
        Engine::Restate(restate) => of_restate(restate, agents, &wanted, global).await,
        _ => of_queue(agents, &address, wanted, global).await,
    }
}

/// A worker of the queue beside the store.
async fn of_queue(agents: Vec<AgentBuilder>, address: &StoreAddress, wanted: Worker, global: &Global) -> Result<End> {
    let limits = wanted.per_tenant.into_iter().fold(QueueLimits::default(), QueueLimits::running_per_tenant);
    let queue = queue_at(address)?.limits(limits).listen(!wanted.pooled).connect().await?;
    let lease = Duration::from_secs(wanted.lease);
    let journal = address.open_leased(lease).await?;
    let mut worker = agent::Worker::builder(Arc::new(queue)).at_once(wanted.at_once).lease(lease);
    worker = worker.drain_within(Duration::from_secs(wanted.drain));
    worker = wanted.worker.into_iter().fold(worker, agent::WorkerBuilder::name);
    for builder in agents {
        worker = worker.agent(builder.store(journal.clone()).build()?);
    }
    let worker = worker.build()?;
    match global.json {
        true => print_json(&json!({"worker": worker.name()}))?,
        false => eprintln!("{}", plain(&format!("agent: worker '{}' is at work; Ctrl-C ends it", worker.name()))),
    }
    worker.run_until(stopped("put back")).await;
    Ok(End::Finished)
}

/// A service of Restate, which the server is told of.
async fn of_restate(
    restate: &RestateAddress,
    agents: Vec<AgentBuilder>,
    wanted: &Worker,
    global: &Global,
) -> Result<End> {
    let agents: Vec<Agent> = agents.into_iter().map(AgentBuilder::build).collect::<Result<_>>()?;
    let mut endpoint = AgentEndpoint::builder().request({
        let agents = agents.clone();
        move |job| shaped(&agents, job)
    });
    endpoint = agents.into_iter().fold(endpoint, AgentEndpointBuilder::agent);
    if let Some(folder) = &wanted.blobs {
        endpoint = endpoint.blobs(FileBlobs::new(folder));
    }
    let endpoint = endpoint.build()?;
    let at = |e| cannot(wanted.listen, e);
    let listener = AgentEndpoint::listen(wanted.listen).map_err(at)?;
    let address = format!("http://{}", listener.local_addr().map_err(at)?);
    let public = wanted.advertise.clone().unwrap_or_else(|| address.clone());
    let (server, stop) = (restate.open()?, tokio_util::sync::CancellationToken::new());
    let serving = endpoint.serve(listener, stop.clone().cancelled_owned());
    // The server asks the endpoint what it serves.
    let registered = async {
        let registered = server.register(&public).await;
        if registered.is_err() {
            stop.cancel();
        }
        registered?;
        announce(global, &public, &format!("a service of Restate at {public}; Ctrl-C ends it"))?;
        stopped("gone on with elsewhere").await;
        stop.cancel();
        Ok::<_, Error>(())
    };
    let (served, registered) = tokio::join!(serving, registered);
    registered.and(served).map(|()| End::Finished)
}

/// The request that a job is, as its agent takes it.
fn shaped(agents: &[Agent], job: &Job) -> Result<RunRequest> {
    match agents.iter().find(|agent| *agent.name() == *job.at.agent) {
        Some(agent) if !job.extra.is_null() => request_of(job, agent),
        _ => Ok(job.request()),
    }
}

/// Waits until somebody ends the program, and says what becomes of runs.
async fn stopped(fate: &str) {
    if agent::shutdown_signal().await.is_err() {
        std::future::pending::<()>().await; // no signal can be heard here
    }
    eprintln!("agent: ending; runs are brought to a safe point, and {fate}");
}
