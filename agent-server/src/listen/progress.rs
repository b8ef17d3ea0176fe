//! Time limit of writes.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

/// Connection whose writes fail after a time without progress.
pub(super) struct Progressing<S> {
    stream: S,
    limit: Duration,
    /// Timer of the write that waits; reset when it begins to wait.
    timer: Pin<Box<Sleep>>,
    waits: bool,
}

impl<S> Progressing<S> {
    pub(super) fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, timer: Box::pin(sleep(limit)), waits: false }
    }

    /// Passes on the result of a write, or fails one that has waited for too long.
    fn limited<T>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.waits = false;
            return done;
        }
        if !self.waits {
            self.waits = true;
            self.timer.as_mut().reset(Instant::now() + self.limit);
        }
        ready!(self.timer.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read the response")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Progressing<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Progressing<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.limited(cx, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.limited(cx, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(cx);
        self.limited(cx, done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.limited(cx, done)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_loses_its_connection() {
        let (ours, theirs) = duplex(16);
        let mut ours = Progressing::new(ours, LIMIT);
        let begun = Instant::now();
        let error = ours.write_all(&[0; 17]).await.expect_err("nobody reads");
        assert_eq!((error.kind(), begun.elapsed()), (io::ErrorKind::TimedOut, LIMIT));
        drop(theirs);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_and_an_idle_one_keep_theirs() {
        let (ours, mut theirs) = duplex(16);
        let mut ours = Progressing::new(ours, LIMIT);
        let reading = async {
            for _ in 0..10 {
                sleep(LIMIT / 2).await;
                theirs.read_exact(&mut [0; 16]).await.expect("it reads");
            }
            theirs
        };
        let (written, theirs) = tokio::join!(ours.write_all(&[0; 160]), reading);
        written.expect("each write makes progress in time");
        sleep(LIMIT * 10).await;
        ours.write_all(b"later").await.expect("nothing was waited for meanwhile");
        drop(theirs);
    }
}
