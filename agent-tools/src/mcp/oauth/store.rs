//! Token stores.

use std::{
    collections::HashMap,
    fmt, fs, io,
    io::Write,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use agent_core::{Error, ErrorKind, Result, async_trait, tool::Secret};
use sha2::{Digest, Sha256};

/// Stores the tokens of servers: a key chain, a database, a [file](FileTokens) or
/// [memory](MemoryTokens).
#[async_trait]
pub trait TokenStore: Send + Sync + 'static {
    /// Loads the text stored for the server at this URL.
    ///
    /// # Errors
    /// If it cannot be read.
    async fn load(&self, server: &str) -> Result<Option<Secret>>;

    /// Stores this text for the server, and replaces the previous one.
    ///
    /// # Errors
    /// If it cannot be stored.
    async fn save(&self, server: &str, tokens: Secret) -> Result<()>;

    /// Removes the text stored for the server.
    ///
    /// # Errors
    /// If it cannot be removed.
    async fn remove(&self, server: &str) -> Result<()>;
}

/// Stores tokens for the lifetime of the process.
#[derive(Debug, Default)]
pub struct MemoryTokens(Mutex<HashMap<String, Secret>>);

impl MemoryTokens {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Secret>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl TokenStore for MemoryTokens {
    async fn load(&self, server: &str) -> Result<Option<Secret>> {
        Ok(self.lock().get(server).cloned())
    }

    async fn save(&self, server: &str, tokens: Secret) -> Result<()> {
        self.lock().insert(server.to_owned(), tokens);
        Ok(())
    }

    async fn remove(&self, server: &str) -> Result<()> {
        self.lock().remove(server);
        Ok(())
    }
}

/// Stores tokens in files of a directory, one per server, which only this user may read.
#[derive(Clone)]
pub struct FileTokens(PathBuf);

impl FileTokens {
    /// Uses this directory, and creates it if it is missing.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Runs an operation on the server's file on a thread for blocking work.
    async fn with<T: Send + 'static>(
        &self,
        server: &str,
        run: impl FnOnce(PathBuf) -> io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let name: String = Sha256::digest(server).iter().map(|byte| format!("{byte:02x}")).collect();
        let path = self.0.join(name + ".json");
        let done =
            tokio::task::spawn_blocking(move || run(path)).await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
        done.map_err(|e| {
            let message = format!("the tokens in {} cannot be kept or read", self.0.display());
            Error::new(ErrorKind::Store, message).with_source(e)
        })
    }
}

impl fmt::Debug for FileTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileTokens").field(&self.0).finish()
    }
}

#[async_trait]
impl TokenStore for FileTokens {
    async fn load(&self, server: &str) -> Result<Option<Secret>> {
        let read = |path: PathBuf| match fs::read_to_string(path) {
            Ok(text) => Ok(Some(Secret::from(text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        self.with(server, read).await
    }

    async fn save(&self, server: &str, tokens: Secret) -> Result<()> {
        let write = move |path: PathBuf| {
            private_directory(&path)?;
            let new = path.with_extension(format!("{}.new", std::process::id()));
            let mut file = private_file(&new)?;
            file.write_all(tokens.expose().as_bytes())?;
            file.sync_all()?;
            fs::rename(new, path)
        };
        self.with(server, write).await
    }

    async fn remove(&self, server: &str) -> Result<()> {
        let remove = |path: PathBuf| match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        self.with(server, remove).await
    }
}

/// Creates the file's directory, accessible to this user only.
fn private_directory(path: &std::path::Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path.parent().unwrap_or(path))
}

/// Creates a file that only this user may read.
fn private_file(path: &std::path::Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.write(true).create_new(true).open(path) {
        // A process died while it wrote the file.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            options.open(path)
        }
        opened => opened,
    }
}
