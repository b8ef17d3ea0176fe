//! Servers that are programs in a sandbox.

use std::{io, sync::Arc};

use agent_core::Result;
use futures::stream;
use tokio::io::{AsyncReadExt, DuplexStream};
use tokio_util::io::StreamReader;

use crate::{
    program::{Reader, Writer},
    sandbox::{Command, Input, Sandbox},
};

/// Maximum of bytes buffered for a program that reads slowly.
const WAITING: usize = 64 * 1024;

/// Runs the command without its standard error: a sandbox merges both outputs, and a log line would
/// corrupt a message.
const QUIETLY: &str = r#"exec "$@" 2>/dev/null"#;

/// Starts the program. It is killed when its reader is dropped.
pub(super) async fn start(sandbox: Arc<dyn Sandbox>, mut command: Command) -> Result<(Reader, Writer)> {
    let arguments = std::mem::take(&mut command.args);
    let program = std::mem::replace(&mut command.program, "sh".to_owned());
    command.args = ["-c", QUIETLY, "sh", &program].map(str::to_owned).into_iter().chain(arguments).collect();
    let mut process = sandbox.start(command).await?;
    let (near, far) = tokio::io::duplex(WAITING);
    if let Some(input) = process.take_input() {
        tokio::spawn(pass(far, input));
    }
    let output = stream::unfold(process, async |mut process| {
        let piece = process.output().await?;
        Some((Ok::<_, io::Error>(piece), process))
    });
    Ok((Box::new(StreamReader::new(Box::pin(output))), Box::new(near)))
}

/// Forwards the written bytes to the program's input, and closes the input with the writer.
async fn pass(mut written: DuplexStream, input: Input) {
    let mut piece = vec![0; WAITING];
    while let Ok(length @ 1..) = written.read(&mut piece).await {
        if input.write(piece[..length].to_vec()).await.is_err() {
            return;
        }
    }
}
