//! Export and import of sessions as JSON lines.

use std::sync::Arc;

use agent_core::{
    Error, ErrorKind, Journal, Result,
    journal::{Entry, JournalWriter},
};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Number of entries that are read or appended at once.
const PAGE: usize = 200;

/// An entry and its session.
#[derive(Serialize, Deserialize)]
struct Line {
    session: String,
    /// The entry; encoded as a string of JSON if its JSON contains line breaks, as a provider's raw
    /// bytes may.
    entry: Box<RawValue>,
}

impl Line {
    fn new(session: &str, entry: &Entry) -> serde_json::Result<Self> {
        let mut json = serde_json::to_string(entry)?;
        if json.contains(['\n', '\r']) {
            json = serde_json::to_string(&json)?;
        }
        Ok(Self { session: session.to_owned(), entry: RawValue::from_string(json)? })
    }

    fn parse(line: &str) -> serde_json::Result<(String, Entry)> {
        let Self { session, entry } = serde_json::from_str(line)?;
        let entry = match entry.get().starts_with('"') {
            true => serde_json::from_str(&serde_json::from_str::<String>(entry.get())?)?,
            false => serde_json::from_str(entry.get())?,
        };
        Ok((session, entry))
    }
}

/// Exports the entries of `sessions` as JSON lines without line endings, read lazily. Lossless:
/// entries of unknown kinds and a provider's raw bytes are included.
///
/// The lines of a session that is written to concurrently may end at any entry.
///
/// ```
/// use agent_core::{Journal, MemoryJournal, Message, journal::{Entry, EntryBody}};
/// use agent_store::{export, import};
/// use futures::TryStreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (from, to) = (MemoryJournal::default(), MemoryJournal::default());
/// let body = EntryBody::MessageAppended { message: Message::user("hello") };
/// from.open("alice", "assistant").await?.append(vec![Entry::new("run-1".into(), 0, body)]).await?;
///
/// let lines: Vec<String> = export(&from, from.sessions().await?).try_collect().await?;
/// assert_eq!(import(&to, futures::stream::iter(lines.into_iter().map(Ok))).await?, 1);
/// assert_eq!(to.read("alice", 0, 10).await?, from.read("alice", 0, 10).await?);
/// # Ok(())
/// # }
/// ```
pub fn export(
    journal: &dyn Journal,
    sessions: impl IntoIterator<Item = String>,
) -> impl Stream<Item = Result<String>> + '_ {
    let sessions: Vec<_> = sessions.into_iter().collect();
    stream::iter(sessions).flat_map(move |session| lines(journal, session))
}

fn lines(journal: &dyn Journal, session: String) -> impl Stream<Item = Result<String>> + '_ {
    let pages = stream::try_unfold(Some(0), move |after| {
        let session = session.clone();
        async move {
            let Some(after) = after else { return Ok(None) };
            let page = journal.read(&session, after, PAGE).await?;
            let next = page.last().map(|last| last.seq);
            let lines = page.iter().map(|entry| line(&session, entry)).collect::<Vec<_>>();
            Ok::<_, Error>(next.map(|next| (stream::iter(lines), Some(next))))
        }
    });
    pages.try_flatten()
}

fn line(session: &str, entry: &Arc<Entry>) -> Result<String> {
    Line::new(session, entry)
        .and_then(|line| serde_json::to_string(&line))
        .map_err(|e| Error::new(ErrorKind::Store, "an entry cannot be written as JSON").with_source(e))
}

/// Appends the lines of an [`export`] and returns the number of entries. The lines of a session
/// must be contiguous and in their exported order.
///
/// # Errors
/// [`ErrorKind::Store`] for a session that already has entries, which stay unchanged, for a line
/// that [`export`] did not write, and for an entry that does not follow its predecessor; each error
/// names its line, from 1, in its context. Earlier lines stay imported. [`ErrorKind::Busy`] for a
/// session with an active writer, and the errors of `lines` and of the journal.
pub async fn import(journal: &dyn Journal, lines: impl Stream<Item = Result<String>>) -> Result<u64> {
    let mut lines = std::pin::pin!(lines.enumerate());
    let mut import = Import { journal, target: None, count: 0 };
    while let Some((at, line)) = lines.next().await {
        let taken = match line {
            Ok(line) => import.take(&line).await,
            Err(e) => Err(e),
        };
        if let Err(e) = taken {
            import.flush().await?;
            return Err(e.with_context("line", (at + 1).to_string()));
        }
    }
    import.flush().await?;
    Ok(import.count)
}

struct Import<'a> {
    journal: &'a dyn Journal,
    target: Option<Target>,
    count: u64,
}

/// Session that is being imported.
struct Target {
    session: String,
    writer: Arc<dyn JournalWriter>,
    last: u64,
    batch: Vec<Entry>,
}

impl Import<'_> {
    async fn take(&mut self, line: &str) -> Result<()> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let (session, entry) = Line::parse(line).map_err(|e| {
            Error::new(ErrorKind::Store, "a line does not belong to an exported journal").with_source(e)
        })?;
        if self.target.as_ref().is_none_or(|target| target.session != session) {
            self.flush().await?;
            let writer = self.journal.open(&session, "import").await?;
            if !self.journal.read(&session, 0, 1).await?.is_empty() {
                let message =
                    format!("session '{session}' already has entries: delete it, or import into another journal");
                return Err(Error::new(ErrorKind::Store, message));
            }
            self.target = Some(Target { session, writer, last: 0, batch: Vec::new() });
        }
        let Some(target) = &mut self.target else { return Ok(()) };
        if entry.seq != target.last + 1 {
            let (session, missing) = (&target.session, target.last + 1);
            let message = format!("entry {missing} of session '{session}' is missing: export it again");
            return Err(Error::new(ErrorKind::Store, message));
        }
        target.last = entry.seq;
        target.batch.push(entry);
        self.count += 1;
        match target.batch.len() >= PAGE {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    /// Appends the collected entries.
    async fn flush(&mut self) -> Result<()> {
        match &mut self.target {
            Some(target) if !target.batch.is_empty() => {
                target.writer.append(std::mem::take(&mut target.batch)).await.map(drop)
            }
            _ => Ok(()),
        }
    }
}
