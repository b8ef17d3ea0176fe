//! Queries of a solver.

use agent_core::{Message, Part, UserMessage};
use serde::{Deserialize, Serialize};

/// A query to solve: a question, with images and files.
///
/// ```
/// use agent_flow::Query;
///
/// let query = Query::new("How many rows are there?").file("data.csv");
/// assert_eq!(query.files[0].description, "A CSV file: rows of comma-separated values.");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Query {
    /// The question.
    pub text: String,
    /// Images and documents that the planner and the generator see.
    pub attachments: Vec<Part>,
    /// Files that tools can open; prompts contain their names and descriptions.
    pub files: Vec<QueryFile>,
}

/// A file that belongs to a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueryFile {
    /// Name with which tools open the file.
    pub file_name: String,
    /// Description of the content, for the prompts.
    pub description: String,
}

impl Query {
    /// Creates a query from a question.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Adds an image or a document.
    #[must_use]
    pub fn attach(mut self, part: Part) -> Self {
        self.attachments.push(part);
        self
    }

    /// Adds a file, described by its extension.
    #[must_use]
    pub fn file(self, name: impl Into<String>) -> Self {
        let name = name.into();
        let description = describe(&name);
        self.described_file(name, description)
    }

    /// Adds a file with a description.
    #[must_use]
    pub fn described_file(mut self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.files.push(QueryFile { file_name: name.into(), description: description.into() });
        self
    }

    /// The first message of the run.
    pub(crate) fn message(&self) -> Message {
        let text = std::iter::once(Part::text(self.text.as_str()));
        Message::User(UserMessage::new(text.chain(self.attachments.iter().cloned()).collect()))
    }

    /// Restores the query from its message.
    pub(crate) fn from_message(message: &UserMessage, files: Vec<QueryFile>) -> Self {
        let attachments = message.parts().iter().filter(|part| part.as_text().is_none()).cloned().collect();
        Self { text: message.text(), attachments, files }
    }
}

impl<T: Into<String>> From<T> for Query {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

fn describe(name: &str) -> String {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
    let what = match extension.as_str() {
        "jpg" | "jpeg" | "png" | "gif" | "bmp" | "webp" | "tiff" => "An image.",
        "txt" | "md" | "log" => "A text file.",
        "csv" => "A CSV file: rows of comma-separated values.",
        "tsv" => "A TSV file: rows of tab-separated values.",
        "xls" | "xlsx" | "ods" => "A spreadsheet.",
        "json" | "jsonl" => "A JSON file.",
        "xml" | "html" | "htm" => "A file of markup.",
        "pdf" => "A PDF document.",
        "doc" | "docx" | "odt" => "A word processor's document.",
        "ppt" | "pptx" => "A presentation.",
        "mp3" | "wav" | "flac" | "ogg" => "An audio file.",
        "mp4" | "mov" | "mkv" | "webm" => "A video.",
        "zip" | "tar" | "gz" | "7z" => "An archive.",
        "py" | "rs" | "js" | "ts" | "java" | "c" | "cpp" | "go" => "A file of source code.",
        _ => "A file.",
    };
    what.to_owned()
}
