//! What bytes come from and go to.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::TcpStream,
};

/// A socket, or what is around one.
pub(super) enum Stream {
    /// In its place: each box is a place in memory that a call finds cold.
    Tcp(TcpStream),
    Other(Box<dyn Io>),
}

pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

impl Stream {
    /// False if it is known that there is nothing to read. True says nothing.
    pub(super) fn may_have_more(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.try_io(Interest::READABLE, || Ok(())).is_ok(),
            Self::Other(_) => true,
        }
    }

    fn io(self: Pin<&mut Self>) -> Pin<&mut dyn Io> {
        Pin::new(match self.get_mut() {
            Self::Tcp(stream) => stream,
            Self::Other(stream) => stream,
        })
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.io().poll_read(cx, room)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.io().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io().poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Other(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    #[tokio::test]
    async fn a_socket_has_nothing_more_until_the_other_side_speaks_or_closes() {
        let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let near = TcpStream::connect(server.local_addr().expect("an address")).await.expect("connects");
        let (mut far, _) = server.accept().await.expect("accepts");
        let (mut near, mut room) = (Stream::Tcp(near), [0; 8]);
        assert!(!near.may_have_more());
        far.write_all(b"x").await.expect("writes");
        assert_eq!(near.read(&mut room).await.expect("reads"), 1);
        assert!(!near.may_have_more(), "less came than there was room for");
        far.write_all(b"y").await.expect("writes");
        let Stream::Tcp(socket) = &near else { unreachable!() };
        socket.readable().await.expect("something");
        assert!(near.may_have_more());
        assert_eq!(near.read(&mut room).await.expect("reads"), 1);
        drop(far);
        let Stream::Tcp(socket) = &near else { unreachable!() };
        socket.readable().await.expect("the end");
        assert!(near.may_have_more());
    }
}
