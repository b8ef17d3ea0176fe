//! `agent worker`.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use agent::{
    Agent, AgentBuilder, Error, Result, RunRequest, config::StoreAddress, dispatch::Job, llm::Catalogue,
    store::QueueLimits,
};
use agent_restate::{AgentEndpoint, AgentEndpointBuilder};
use agent_server::{DiskFiles, Files, Spending, WorkerAdmin, shape};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinSet};

use crate::{
    cli::{Global, Worker},
    engine::{Engine, LEASE, RestateAddress, queue_at, relay_at},
    load::assemble_all,
    output::{End, announce, cannot, plain, print_json},
    telemetry,
};

/// Runs jobs until a shutdown signal, and then drains active runs.
pub(crate) async fn worker(wanted: Worker, global: &Global) -> Result<End> {
    telemetry::will_write(wanted.logs.log.clone());
    let (agents, teams, address) = assemble_all(&wanted.files, global)?;
    if let Some(found) = teams.first() {
        wanted.engine.refuse_team(found.name())?;
    }
    telemetry::write();
    let files = wanted.uploads.as_ref().map(|folder| DiskFiles::open(folder).map(Files::new)).transpose()?;
    let with_files = |agent: AgentBuilder| files.iter().fold(agent, |agent, files| files.attach(agent));
    let agents = agents.into_iter().map(|agent| with_files(agent.builder)).collect();
    let of_restate = [("--listen", wanted.listen.is_some()), ("--advertise", wanted.advertise.is_some())];
    let of_workers = [
        ("--concurrency", wanted.at_once.is_some()),
        ("--per-tenant", wanted.per_tenant.is_some()),
        ("--lease", wanted.lease.is_some()),
        ("--admin", wanted.admin.is_some()),
    ];
    match &wanted.engine {
        Engine::Restate(restate) => {
            wanted.engine.refuse(&of_workers)?;
            serve_restate(restate, agents, &wanted, global).await
        }
        Engine::Workers => {
            wanted.engine.refuse(&of_restate)?;
            work(agents, &address, wanted, global).await
        }
        Engine::Here => {
            Err(Error::config("a worker runs what others send: its engine is 'workers' or restate://HOST:PORT"))
        }
    }
}

/// A worker of the queue beside the store.
async fn work(agents: Vec<AgentBuilder>, address: &StoreAddress, wanted: Worker, global: &Global) -> Result<End> {
    let limits = wanted.per_tenant.into_iter().fold(QueueLimits::default(), QueueLimits::running_per_tenant);
    let queue = queue_at(address)?.limits(limits).connect().await?;
    let lease = Duration::from_secs(wanted.lease.unwrap_or(LEASE));
    let journal = address.open_leased(lease).await?;
    let mut worker = agent::Worker::builder(Arc::new(queue)).at_once(wanted.at_once.unwrap_or(16)).lease(lease);
    worker = worker.drain_within(wanted.drain());
    worker = relay_at(address).await?.into_iter().fold(worker, agent::WorkerBuilder::relay);
    worker = wanted.worker.into_iter().fold(worker, agent::WorkerBuilder::name);
    let agents = agents.into_iter().map(|builder| builder.store(journal.clone()).build());
    let agents: Vec<Agent> = agents.collect::<Result<_>>()?;
    worker = agents.iter().cloned().fold(worker, agent::WorkerBuilder::agent);
    let spending = Spending::new(address.open_ledger().await?, Catalogue::builtin());
    worker = worker.shape(move |job, request| match of_server(&agents, job) {
        Some(agent) => spending.charge(shape(job, agent, request)?),
        None => Ok(request),
    });
    let admin = WorkerAdmin::new(journal);
    let worker = worker.hooks(Arc::new(admin.clone())).build()?;
    let (mut serving, mut at) = (JoinSet::new(), None); // ends with this function
    if let Some(address) = wanted.admin {
        let listener = TcpListener::bind(address).await.map_err(|e| cannot(address, e))?;
        at = listener.local_addr().ok();
        drop(serving.spawn(async move { admin.serve(listener, std::future::pending()).await }));
    }
    match global.json {
        true => print_json(&json!({"worker": worker.name(), "admin": at}))?,
        false => eprintln!("{}", plain(&format!("agent: worker '{}' is at work; Ctrl-C ends it", worker.name()))),
    }
    if let Some(at) = at.filter(|_| !global.json) {
        eprintln!("{}", plain(&format!("agent: health and metrics are at http://{at}/ready and /metrics")));
    }
    worker.run_until(stopped("put back")).await;
    Ok(End::Finished)
}

/// A service of Restate, which is registered with the server.
async fn serve_restate(
    restate: &RestateAddress,
    agents: Vec<AgentBuilder>,
    wanted: &Worker,
    global: &Global,
) -> Result<End> {
    let listen = wanted.listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 9080)));
    if listen.ip().is_unspecified() && wanted.advertise.is_none() {
        return Err(Error::config(format!(
            "{listen} cannot be reached by Restate: set the URL with --advertise http://HOST:{}",
            listen.port()
        )));
    }
    let agents: Vec<Agent> = agents.into_iter().map(AgentBuilder::build).collect::<Result<_>>()?;
    let mut endpoint = AgentEndpoint::builder().request({
        let agents = agents.clone();
        move |job| shaped(&agents, job)
    });
    endpoint = agents.into_iter().fold(endpoint, AgentEndpointBuilder::agent);
    endpoint = endpoint.drain_within(wanted.drain());
    endpoint = wanted.worker.iter().fold(endpoint, AgentEndpointBuilder::name);
    endpoint = restate.service().into_iter().fold(endpoint, AgentEndpointBuilder::service);
    endpoint = restate.blobs()?.into_iter().fold(endpoint, AgentEndpointBuilder::blobs);
    let endpoint = endpoint.build()?;
    let at = |e| cannot(listen, e);
    let listener = AgentEndpoint::listen(listen).map_err(at)?;
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

/// The agent of a job that a server sent.
fn of_server<'a>(agents: &'a [Agent], job: &Job) -> Option<&'a Agent> {
    agents.iter().find(|agent| *agent.name() == *job.at.agent && !job.extra.is_null())
}

/// The request that a job is, as its agent takes it: with what a server sent along.
fn shaped(agents: &[Agent], job: &Job) -> Result<RunRequest> {
    of_server(agents, job).map_or_else(|| Ok(job.request()), |agent| shape(job, agent, job.request()))
}

/// Waits until somebody ends the program, and says what becomes of runs.
async fn stopped(fate: &str) {
    if agent::shutdown_signal().await.is_err() {
        std::future::pending::<()>().await; // no signal can be heard here
    }
    eprintln!("agent: ending; runs are brought to a safe point, and {fate}");
}
