//! The two tools of the model.

use std::{
    fs,
    path::{Path, PathBuf},
};

use agent::{Json, Resource, prelude::*};

use crate::{
    chart::{self, Chart, Kind},
    database::{Database, Table},
};

/// Folder of the charts.
#[derive(Debug)]
pub(crate) struct Charts(PathBuf);

impl Charts {
    /// Creates the folder, if it does not exist.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|e| {
            let message = format!("the folder {} cannot be created: name another one with --out", folder.display());
            Error::config(message).with_source(e)
        })?;
        Ok(Self(folder.to_owned()))
    }

    /// Writes a file, named after the title.
    fn write(&self, title: &str, svg: &str) -> Result<PathBuf> {
        let letter = |c: char| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let words: String = title.chars().take(60).map(letter).collect();
        let name = words.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
        let path = self.0.join(if name.is_empty() { "chart".to_owned() } else { name }).with_extension("svg");
        fs::write(&path, svg).map_err(|e| Error::tool("the chart cannot be written").with_source(e))?;
        Ok(path)
    }
}

/// Runs a query and returns at most 200 rows.
#[tool(effect = "pure")]
pub(crate) async fn query(
    database: Resource<Database>,
    /// One SELECT statement for SQLite.
    sql: String,
) -> Result<Json<Table>> {
    database.query(&sql).await.map(Json)
}

/// Draws a chart of the result of a query and writes it to a file. The figures are read from the
/// database, not from the conversation.
#[tool(effect = "idempotent")]
pub(crate) async fn draw_chart(
    database: Resource<Database>,
    charts: Resource<Charts>,
    /// Title of the chart, with the unit of its values. The file is named after it.
    title: String,
    /// `bar` compares values, `line` shows a development.
    kind: Kind,
    /// One SELECT statement for SQLite: its first column has the labels, its second the values.
    sql: String,
) -> Result<String> {
    let points = chart::points(&database.query(&sql).await?)?;
    let svg = Chart { title: &title, kind, points: &points }.to_svg();
    let path = charts.write(&title, &svg)?;
    Ok(format!("{} has {} points.", path.display(), points.len()))
}
