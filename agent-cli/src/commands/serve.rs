//! `agent serve`.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use agent::{Error, Result, llm::Catalogue, store::QueueLimits};
use agent_server::{DiskFiles, Files, Key, Keys, Oidc, Server, ServerBuilder, Spending, Studio, Webhooks};
use serde_json::json;
use tokio::net::TcpListener;

use crate::{
    cli::{Global, Serve},
    engine::{Engine, LEASE, RestateNotes, queue_at, relay_at},
    follow::Following,
    load::assemble_all,
    output::{End, announce, cannot, print, print_json},
    team, telemetry,
};

/// Serves agents until a shutdown signal, and then drains active runs.
pub(crate) async fn serve(wanted: Serve, global: &Global) -> Result<End> {
    if let (Some(name), Some(file)) = (&wanted.new_key, &wanted.keys) {
        return add_key(new_key(name, &wanted)?, file, global);
    }
    telemetry::will_write(wanted.logs.log.clone());
    let mut following = Following::default();
    let server = guarded(with_agents(&wanted, global, &mut following).await?, &wanted)?;
    let server = with_files_and_webhooks(server, &wanted)?.studio(Studio::new()).build()?;
    telemetry::write();
    let at = |e| cannot(wanted.listen, e);
    let listener = TcpListener::bind(wanted.listen).await.map_err(at)?;
    let address = listener.local_addr().map_err(at)?;
    let who = if server.is_open() { "without keys, for this machine alone" } else { "for those who have a key" };
    let words = format!("serving at http://{address}, {who}, with a page at /studio/; Ctrl-C ends it");
    announce(global, &format!("http://{address}"), &words)?;
    let stopped = async {
        if agent::shutdown_signal().await.is_err() {
            std::future::pending::<()>().await; // no signal can be heard here
        }
        eprintln!("agent: ending; runs are brought to a safe point");
    };
    let serving = server.serve(listener, stopped, Duration::from_secs(wanted.drain));
    following.during(&server, global, serving).await.map_err(at)?;
    Ok(End::Finished)
}

/// Adds the agents, on one store. Remote workers have the agents as of their start, so their files are not
/// followed here either.
async fn with_agents(wanted: &Serve, global: &Global, following: &mut Following) -> Result<ServerBuilder> {
    let follows = !wanted.no_watch && wanted.engine == Engine::Here;
    let (agents, teams, address) = assemble_all(&wanted.files, global)?;
    let mut server = Server::builder();
    for found in teams {
        wanted.engine.refuse_team(found.name())?;
        server = server.team(team::served(found, global)?);
    }
    for agent in agents {
        server = server.agent(following.served(agent, follows)?);
    }
    let lease = Duration::from_secs(wanted.lease.unwrap_or(LEASE));
    if wanted.keys.is_some() && !matches!(wanted.engine, Engine::Restate(_)) {
        server = server.spending(Spending::new(address.open_ledger().await?, Catalogue::builtin()));
    }
    let of_queue = [("--queued", wanted.queued.is_some()), ("--queued-per-tenant", wanted.queued_per_tenant.is_some())];
    Ok(match &wanted.engine {
        Engine::Here => {
            wanted.engine.refuse(&of_queue)?;
            server = server.store(address.open_leased(lease).await?);
            relay_at(&address).await?.into_iter().fold(server, ServerBuilder::relay)
        }
        Engine::Workers => {
            let limits = wanted.queued.into_iter().fold(QueueLimits::default(), QueueLimits::queued);
            let limits = wanted.queued_per_tenant.into_iter().fold(limits, QueueLimits::queued_per_tenant);
            let queue = queue_at(&address)?.limits(limits).connect().await?;
            server = server.store(address.open_leased(lease).await?).queue(Arc::new(queue));
            relay_at(&address).await?.into_iter().fold(server, ServerBuilder::relay)
        }
        Engine::Restate(restate) => {
            wanted.engine.refuse(&of_queue)?;
            wanted.engine.refuse(&[("--lease", wanted.lease.is_some())])?;
            let journal = restate.journal()?;
            let restate = journal.restate().clone();
            server.notes(RestateNotes(restate.clone())).store(journal).dispatch(Arc::new(restate))
        }
    })
}

/// Adds uploads and webhooks.
fn with_files_and_webhooks(mut server: ServerBuilder, wanted: &Serve) -> Result<ServerBuilder> {
    if let Some(days) = wanted.retain {
        server = server.retention(Duration::from_secs(u64::from(days) * 86_400));
    }
    if let Some(folder) = &wanted.uploads {
        server = server.files(Files::new(DiskFiles::open(folder)?));
    }
    match std::env::var("AGENT_WEBHOOK_SECRET") {
        Ok(secret) => {
            let webhooks = wanted.webhook.iter().fold(Webhooks::new(secret), Webhooks::url);
            Ok(server.webhooks(wanted.webhook_allow.iter().fold(webhooks, Webhooks::allow)))
        }
        Err(_) if wanted.webhook.is_empty() => Ok(server),
        Err(_) => {
            Err(Error::config("webhooks are signed: set AGENT_WEBHOOK_SECRET, to 16 bytes or more that nobody guesses"))
        }
    }
}

/// Adds authentication and allowed origins.
fn guarded(mut server: ServerBuilder, wanted: &Serve) -> Result<ServerBuilder> {
    server = wanted.host.iter().fold(server, ServerBuilder::host);
    server = wanted.origin.iter().fold(server, ServerBuilder::origin);
    server = server.public_cards(wanted.public_cards);
    if let (Some(issuer), Some(audience)) = (&wanted.issuer, &wanted.audience) {
        server = server.oidc(Oidc::builder(issuer, audience).build()?);
    }
    if let Some(file) = &wanted.keys {
        return Ok(server.keys(Keys::read(file)?));
    }
    if wanted.issuer.is_some() || wanted.listen.ip().is_loopback() {
        return Ok(server);
    }
    let (secret, key) = Key::generate("generated", "local")?;
    eprintln!("agent: others reach this address, so they need a key, which is new each time: {secret}");
    Ok(server.keys(Keys::new([key])?))
}

/// A key as the options describe it: the key itself, and its row.
fn new_key(name: &str, wanted: &Serve) -> Result<(String, Key)> {
    let (secret, mut key) = Key::generate(name, &wanted.tenant)?;
    if !wanted.scope.is_empty() {
        key = key.scopes(wanted.scope.iter().copied());
    }
    if let Some(days) = wanted.expires {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = now + Duration::from_secs(u64::from(days) * 86_400);
        key = key.expires(u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
    }
    let limits = serde_json::Value::Object(wanted.limit.iter().cloned().collect());
    let limits = serde_json::from_value(limits).map_err(|e| Error::config(format!("--limit: {e}")))?;
    Ok((secret, key.limits(limits)))
}

/// Adds a key to a file. Concurrent calls take turns, by a lock beside the file.
fn add_key((secret, key): (String, Key), file: &Path, global: &Global) -> Result<End> {
    let failed = |e| cannot(file.display(), e);
    let turn = private().open(file.with_extension("lock")).map_err(failed)?;
    turn.lock().map_err(failed)?;
    let mut keys = if file.exists() { Keys::read(file)? } else { Keys::default() };
    let shown = json!({"name": key.name, "tenant": key.tenant, "key": secret});
    keys.add(key)?;
    let text = serde_json::to_string_pretty(&keys).map_err(|e| Error::config(e.to_string()))?;
    replace(file, text.as_bytes()).map_err(failed)?;
    match global.json {
        true => print_json(&shown)?,
        false => print(&format!("{secret}\n"))?,
    }
    Ok(End::Finished)
}

/// Replaces a file by one with this content, which is on disk before it takes the name: a file that
/// is half written would shut everybody out.
fn replace(file: &Path, content: &[u8]) -> std::io::Result<()> {
    let beside = file.with_extension("new");
    let mut new = private().open(&beside)?;
    new.write_all(content)?;
    as_readable_as(file, &beside)?;
    new.sync_all()?;
    fs::rename(&beside, file)?;
    // The directory holds the name. Platforms that cannot open a directory need no such step.
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(folder).map_or(Ok(()), |folder| folder.sync_all())
}

/// Lets those read a new file who may read the old one, if there is one.
fn as_readable_as(old: &Path, new: &Path) -> std::io::Result<()> {
    if old.exists() { fs::set_permissions(new, fs::metadata(old)?.permissions()) } else { Ok(()) }
}

/// A file that only its owner reads.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
