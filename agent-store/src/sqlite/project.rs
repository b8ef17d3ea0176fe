//! The projection: how entries change it, and its rebuilding.

use rusqlite::{OptionalExtension, params_from_iter, types::ToSql};

use super::{
    queue::Outcome,
    read::{blobs, encoded},
    tables::Tables,
};
use crate::{
    encode::{Summary, Told},
    project::{Change, Over, Tracked, USAGE, label, space, usage_values},
};

/// Position of an entry that changes the projection.
pub(super) struct At<'a> {
    pub(super) session: i64,
    /// Name of the session.
    pub(super) name: &'a str,
    pub(super) run: i64,
    pub(super) seq: i64,
    pub(super) time: i64,
}

impl Tables<'_> {
    /// Applies a change of the projection.
    pub(super) fn project(&self, at: &At<'_>, change: &Change) -> rusqlite::Result<()> {
        match change {
            Change::Began { agent, is_root, user } => {
                if *is_root {
                    let sql = "UPDATE run SET superseded = 1
                               WHERE session = ?1 AND agent = ?2 AND is_root = 1 AND superseded = 0 AND id <> ?3";
                    self.execute(sql, &[&at.session, agent, &at.run])?;
                }
                let usage = USAGE.map(|column| format!("{column} = 0")).join(", ");
                let sql = format!(
                    "UPDATE run SET seq = ?2, space = ?3, agent = ?4, is_root = ?5, user = ?6, started = ?7, status = NULL,
                         outcome = NULL, ended = NULL, error = NULL, steps = 0, undone = 0, superseded = 0, is_edit = 0,
                         {usage}
                     WHERE id = ?1"
                );
                self.execute(&sql, &[&at.run, &at.seq, &space(at.name), agent, is_root, user, &at.time])?;
                self.execute("DELETE FROM question WHERE run = ?1", &[&at.run])
            }
            Change::Resumed => {
                let sql = "UPDATE run SET status = NULL, outcome = NULL, ended = NULL, error = NULL, is_edit = 0 WHERE id = ?1";
                self.execute(sql, &[&at.run])
            }
            Change::Ended { status, outcome, is_edit, usage, steps, error } => {
                let columns =
                    (8..).zip(USAGE).map(|(n, column)| format!("{column} = ?{n}")).collect::<Vec<_>>().join(", ");
                let sql = format!(
                    "UPDATE run SET status = ?2, outcome = ?3, is_edit = ?4, ended = ?5, error = ?6, steps = coalesce(?7, steps),
                         {columns} WHERE id = ?1"
                );
                let usage = usage_values(usage);
                let values: [&dyn ToSql; 7] = [&at.run, status, outcome, is_edit, &at.time, error, steps];
                let usage = usage.iter().map(|value| value as &dyn ToSql);
                self.execute(&sql, &values.into_iter().chain(usage).collect::<Vec<_>>())
            }
            Change::Asked { id, digest, body } => {
                self.execute("DELETE FROM question WHERE run = ?1 AND name = ?2", &[&at.run, id])?;
                let sql = "INSERT INTO question (session, run, name, digest, body) VALUES (?1, ?2, ?3, ?4, ?5)";
                self.execute(sql, &[&at.session, &at.run, id, digest, body])
            }
            Change::Over(over) => {
                let (one, within) = match over {
                    Over::All => (None, None),
                    Over::One(id) => (Some(id), None),
                    Over::Within(place) => (None, Some(place)),
                };
                let sql = "DELETE FROM question WHERE id IN (
                               WITH over AS (
                                   SELECT id, digest FROM question
                                   WHERE run = ?1 AND (?2 IS NULL OR name = ?2)
                                     AND (?3 IS NULL OR substr(name, 1, length(?3)) = ?3)
                               )
                               SELECT id FROM over
                               UNION ALL SELECT question.id FROM question JOIN over USING (digest)
                               WHERE question.session = ?4 AND digest <> ''
                           )";
                self.execute(sql, &[&at.run, &one, &within, &at.session])
            }
            Change::Undone { run } => {
                let sql = "UPDATE run SET undone = 1 FROM (SELECT seq, agent FROM run WHERE session = ?1 AND name = ?2) AS first
                           WHERE run.session = ?1 AND run.agent = first.agent AND run.seq >= first.seq";
                self.execute(sql, &[&at.session, run])
            }
            Change::Labelled(labels) => {
                self.execute("DELETE FROM label WHERE session = ?1", &[&at.session])?;
                for pair in labels {
                    self.execute("INSERT INTO label (hash, session) VALUES (?1, ?2)", &[&label(pair), &at.session])?;
                }
                let text = serde_json::to_string(labels).expect("texts serialize to JSON");
                self.execute("UPDATE session SET metadata = ?2 WHERE id = ?1", &[&at.session, &text])
            }
        }
    }

    fn execute(&self, sql: &str, values: &[&dyn ToSql]) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute(params_from_iter(values)).map(drop)
    }

    /// Rebuilds the projection of a session from its entries, if it still exists. An entry that
    /// cannot be read is skipped.
    pub(super) fn rebuild(&self, name: &str) -> Outcome<()> {
        let find = "SELECT id FROM session WHERE name = ?1";
        let found = self.connection.prepare_cached(find)?.query_row([name], |row| row.get::<_, i64>(0)).optional()?;
        let Some(session) = found else { return Ok(Ok(())) };
        for table in ["question", "label"] {
            self.execute(&format!("DELETE FROM {table} WHERE session = ?1"), &[&session])?;
        }
        self.execute("UPDATE run SET seq = NULL, is_root = 0, superseded = 0 WHERE session = ?1", &[&session])?;
        self.execute(
            "UPDATE session SET active = 0, metadata = NULL, space = ?2 WHERE id = ?1",
            &[&session, &space(name)],
        )?;
        let sql = "SELECT entry.seq, run.name, entry.time, entry.version, entry.body, entry.parts, entry.id, entry.run
                   FROM entry JOIN run ON run.id = entry.run WHERE entry.session = ?1 ORDER BY entry.seq";
        let mut entries = self.connection.prepare_cached(sql)?;
        let mut rows = entries.query([session])?;
        let (mut last_run, mut tracked, mut active) = (None, Tracked::default(), 0);
        while let Some(row) = rows.next()? {
            let (seq, mut entry) = encoded(row, &mut last_run)?;
            if entry.parts > 0 {
                entry.blobs = blobs(self.connection, row.get(6)?)?;
            }
            let (run, time) = (entry.run.clone(), entry.time);
            let Ok(entry) = entry.decode(seq).inspect_err(|error| skipped(name, error)) else { continue };
            let changes = Change::of(&run, &entry.body, &mut tracked);
            if changes.iter().any(Change::is_activity) || matches!(Told::of(&entry.body), Some(Told::Title(_))) {
                active = active.max(time);
            }
            let at = At { session, name, run: row.get(7)?, seq: seq.cast_signed(), time: time.cast_signed() };
            changes.iter().try_for_each(|change| self.project(&at, change))?;
        }
        self.describe(session, 0, &Summary { active, ..Summary::default() })?;
        self.execute("UPDATE session SET projected = head WHERE id = ?1", &[&session]).map(Ok)
    }

    /// Makes every session's projection be rebuilt.
    pub(super) fn invalidate(&self) -> rusqlite::Result<()> {
        self.execute("UPDATE session SET projected = -1", &[])
    }
}

fn skipped(session: &str, error: &agent_core::Error) {
    tracing::warn!(session, %error, "an entry cannot be read, so that the summary of its session may be incomplete");
}
