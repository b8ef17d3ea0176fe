//! `agent serve`.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
    time::Duration,
};

use agent::{Error, Result};
use agent_server::{Key, Keys, Served, Server, ServerBuilder, Studio};
use tokio::net::TcpListener;

use crate::{
    cli::{Global, Serve},
    load::assemble,
    output::{End, cannot, plain, print},
    store,
};

/// Serves agents until somebody ends it; then brings what is under way to a safe point.
pub(crate) async fn serve(wanted: Serve, global: &Global) -> Result<End> {
    if let (Some(name), Some(file)) = (&wanted.new_key, &wanted.keys) {
        return new_key(name, &wanted.tenant, file);
    }
    let server = guarded(with_agents(&wanted, global).await?, &wanted)?.studio(Studio::new()).build()?;
    let at = |e| cannot(wanted.listen, e);
    let listener = TcpListener::bind(wanted.listen).await.map_err(at)?;
    let address = listener.local_addr().map_err(at)?;
    let who = if server.is_open() { "without keys, for this machine alone" } else { "for those who have a key" };
    eprintln!(
        "{}",
        plain(&format!("agent: serving at http://{address}, {who}, with a page at /studio/; Ctrl-C ends it"))
    );
    let stopped = async {
        if agent::shutdown_signal().await.is_err() {
            std::future::pending::<()>().await; // no signal can be heard here
        }
        eprintln!("agent: ending; runs are brought to a safe point");
    };
    server.serve(listener, stopped, Duration::from_secs(wanted.drain)).await.map_err(at)?;
    Ok(End::Finished)
}

/// The agents that are meant, on one store.
async fn with_agents(wanted: &Serve, global: &Global) -> Result<ServerBuilder> {
    let files: Vec<_> = match wanted.files.as_slice() {
        [] => vec![global.file.clone()],
        files => files.iter().cloned().map(Some).collect(),
    };
    let (mut server, mut stores) = (Server::builder(), Vec::new());
    for file in files {
        let (builder, description, store) = assemble(&Global { file, ..global.clone() })?;
        server = server.agent(Served::new(builder.build()?).description(description.unwrap_or_default()));
        stores.extend(store.filter(|store| !stores.contains(store)));
    }
    if stores.len() > 1 && global.store.is_none() {
        let stores = stores.iter().map(ToString::to_string).collect::<Vec<_>>().join("', '");
        return Err(Error::config(format!("the files name different stores ('{stores}'): say which with --store")));
    }
    let address = store::address(global, stores.first())?;
    Ok(server.store(address.open_leased(Duration::from_secs(wanted.lease)).await?))
}

/// Who may ask, and from where.
fn guarded(mut server: ServerBuilder, wanted: &Serve) -> Result<ServerBuilder> {
    server = wanted.host.iter().fold(server, ServerBuilder::host);
    server = wanted.origin.iter().fold(server, ServerBuilder::origin);
    if let Some(file) = &wanted.keys {
        return Ok(server.keys(Keys::read(file)?));
    }
    if wanted.listen.ip().is_loopback() {
        return Ok(server);
    }
    let (secret, key) = Key::generate("generated", "local")?;
    eprintln!("agent: others reach this address, so they need a key, which is new each time: {secret}");
    Ok(server.keys(Keys::new([key])?))
}

/// Adds a key to a file.
fn new_key(name: &str, tenant: &str, file: &Path) -> Result<End> {
    let mut keys = if file.exists() { Keys::read(file)? } else { Keys::default() };
    let (secret, key) = Key::generate(name, tenant)?;
    keys.add(key)?;
    let text = serde_json::to_string_pretty(&keys).map_err(|e| Error::config(e.to_string()))?;
    // Beside it first: a file that is half written would shut everybody out.
    let beside = file.with_extension("new");
    let written = private().open(&beside).and_then(|mut new| new.write_all(text.as_bytes()));
    written.and_then(|()| fs::rename(&beside, file)).map_err(|e| cannot(file.display(), e))?;
    print(&format!("{secret}\n"))?;
    Ok(End::Finished)
}

/// A file that only its owner reads.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
