//! A statement, and how it is sent.

use tokio_postgres::{
    Client, Error, Row, Statement,
    types::{ToSql, Type},
};

/// A value that a statement is given.
pub(super) type Parameter<'a> = &'a (dyn ToSql + Sync);

/// A statement with the types of its parameters.
///
/// A prepared one has a name in the server's session and is planned once, which makes an append four times as fast. Another
/// one is parsed and planned whenever it is sent, and can be sent over whichever session a pooler picks.
pub(super) struct Query {
    sql: String,
    types: &'static [Type],
    prepared: Option<Statement>,
}

impl Query {
    pub(super) fn new(sql: String, types: &'static [Type]) -> Self {
        Self { sql, types, prepared: None }
    }

    pub(super) async fn prepare(&mut self, client: &Client) -> Result<(), Error> {
        self.prepared = Some(client.prepare_typed(&self.sql, self.types).await?);
        Ok(())
    }

    /// The rows that it gives. It is sent when this is first polled.
    pub(super) async fn rows(&self, client: &Client, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Error> {
        match &self.prepared {
            Some(statement) => client.query(statement, parameters).await,
            None => {
                let typed: Vec<_> = parameters.iter().copied().zip(self.types.iter().cloned()).collect();
                client.query_typed(&self.sql, &typed).await
            }
        }
    }

    /// The number in the first row, if there is one.
    pub(super) async fn number(&self, client: &Client, parameters: &[Parameter<'_>]) -> Result<Option<i64>, Error> {
        Ok(self.rows(client, parameters).await?.first().map(|row| row.get(0)))
    }
}
