//! One connection.

use std::{
    future::poll_fn,
    io::{self, Cursor},
    mem::{self, MaybeUninit},
    pin::{Pin, pin},
    task::{Context, Poll, Waker, ready},
};

use agent_core::Result;
use bytes::{Buf, Bytes, BytesMut};
use http::Method;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::{
    broken,
    head::{self, Head},
    stream::Stream,
};

/// Bytes that are read at once, at first.
const ROOM: usize = 8 << 10;
/// And when all that room was filled again and again.
const MOST_ROOM: usize = 256 << 10;

/// An open connection. Nothing runs beside the calls: the one that has the connection moves its bytes whenever it is
/// polled, and dropping the connection closes it.
pub(super) struct Connection {
    io: Stream,
    /// What was read and belongs to nothing yet.
    pub(super) read: BytesMut,
    room: usize,
}

impl Connection {
    pub(super) fn new(io: Stream) -> Self {
        Self { io, read: BytesMut::new(), room: ROOM }
    }

    /// False if the server closed it while it waited, or said what nobody asked for.
    pub(super) fn is_free(&mut self) -> bool {
        !self.io.may_have_more() || self.poll_read(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// It is to wait for the next request: gives back the room that the answer took. False if the server already said what
    /// nobody asked for.
    pub(super) fn rest(&mut self) -> bool {
        let over = mem::take(&mut self.read);
        self.room = ROOM;
        over.is_empty()
    }

    /// Reads more, and gives how much; nothing at the end.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let count = match self.room {
            ..=ROOM => {
                // Read here first, so that a connection that waits has no room of its own.
                let mut room = [MaybeUninit::uninit(); ROOM];
                let mut room = ReadBuf::uninit(&mut room);
                ready!(Pin::new(&mut self.io).poll_read(cx, &mut room))?;
                self.read.extend_from_slice(room.filled());
                room.filled().len()
            }
            large => {
                self.read.reserve(large);
                ready!(pin!(self.io.read_buf(&mut self.read)).poll(cx))?
            }
        };
        if count >= self.room {
            self.room = (self.room * 2).min(MOST_ROOM);
        }
        Poll::Ready(Ok(count))
    }

    /// Sends a request and waits for the head of its answer, which may come before all of the request is sent.
    ///
    /// # Errors
    /// [`Transport`](agent_core::ErrorKind::Transport) if there is none.
    pub(super) async fn exchange(&mut self, head: Vec<u8>, body: Bytes, method: &Method) -> Result<Head> {
        let mut sending = Sending { unsent: Some(Buf::chain(Cursor::new(head), body)), failed: None };
        poll_fn(|cx| {
            let sent = sending.poll(&mut self.io, cx);
            loop {
                if !self.read.is_empty()
                    && let Some(mut head) = head::take(&mut self.read, method)?
                {
                    head.stays_open &= sent.is_ready() && sending.failed.is_none();
                    return Poll::Ready(Ok(head));
                }
                let read = match ready!(self.poll_read(cx)) {
                    Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed before there was an answer")),
                    read => read,
                };
                if let Err(e) = read {
                    return Poll::Ready(Err(
                        broken("the connection broke").with_source(sending.failed.take().unwrap_or(e))
                    ));
                }
            }
        })
        .await
    }
}

/// A request on its way.
struct Sending<B> {
    /// None when there is nothing more to do. What is sent is let go: others may want its room.
    unsent: Option<B>,
    /// Why no more of it can be sent. There may be an answer all the same.
    failed: Option<io::Error>,
}

impl<B: Buf + Unpin> Sending<B> {
    /// Ready when there is nothing more to do.
    fn poll(&mut self, io: &mut Stream, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(unsent) = &mut self.unsent {
            let step = match unsent.has_remaining() {
                true => ready!(pin!(io.write_buf(unsent)).poll(cx)).and_then(some),
                false => ready!(Pin::new(&mut *io).poll_flush(cx)).map(|()| self.unsent = None),
            };
            if let Err(e) = step {
                (self.unsent, self.failed) = (None, Some(e));
            }
        }
        Poll::Ready(())
    }
}

fn some(written: usize) -> io::Result<()> {
    if written == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use tokio::io::{BufWriter, DuplexStream, duplex};

    use super::{super::stream::Io, *};

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";

    fn over(io: impl Io + 'static) -> Connection {
        Connection::new(Stream::Other(Box::new(io)))
    }

    /// Sends a request over `near`; gives what `far` got of it, and whether the connection stays open.
    async fn exchanged(near: impl Io + 'static, mut far: DuplexStream, body: usize) -> (usize, bool) {
        let server = tokio::spawn(async move {
            let mut got = vec![0; 6 + body];
            far.read_exact(&mut got).await.expect("the request");
            far.write_all(ANSWER).await.expect("writes");
            got.len()
        });
        let mut connection = over(near);
        let head =
            connection.exchange(b"head\r\n".to_vec(), vec![b'x'; body].into(), &Method::POST).await.expect("a head");
        while connection.read.len() < 2 {
            poll_fn(|cx| connection.poll_read(cx)).await.expect("the rest");
        }
        assert_eq!((head.answer.status(), &*connection.read), (StatusCode::OK, &b"hi"[..]));
        (server.await.expect("serves"), head.stays_open)
    }

    #[tokio::test]
    async fn a_request_is_sent_whole_however_little_fits_at_a_time() {
        for most in [1, 7, 1 << 20] {
            let (near, far) = duplex(most);
            assert_eq!(exchanged(near, far, 10_000).await, (10_006, true));
        }
    }

    #[tokio::test]
    async fn what_a_stream_holds_back_is_flushed() {
        let (near, far) = duplex(1 << 20);
        assert_eq!(exchanged(BufWriter::with_capacity(1 << 20, near), far, 10_000).await, (10_006, true));
    }

    #[tokio::test]
    async fn a_connection_that_was_not_sent_all_is_not_used_again() {
        let (near, mut far) = duplex(1_000);
        far.write_all(ANSWER).await.expect("writes");
        let mut connection = over(near);
        let head = connection.exchange(Vec::new(), vec![b'x'; 10_000].into(), &Method::POST).await.expect("a head");
        assert!(!head.stays_open);
    }

    #[tokio::test]
    async fn what_is_sent_is_let_go_before_the_answer_comes() {
        let (near, mut far) = duplex(1 << 20);
        let mut connection = over(near);
        let body = Bytes::from(vec![b'x'; 10_000]);
        {
            let mut exchange = pin!(connection.exchange(b"head\r\n".to_vec(), body.clone(), &Method::POST));
            assert!(futures::poll!(exchange.as_mut()).is_pending(), "there is no answer");
            assert!(body.is_unique(), "all of it is sent");
            far.write_all(ANSWER).await.expect("writes");
            exchange.await.expect("a head");
        }
        assert_eq!(&*connection.read, b"hi");
    }

    #[tokio::test]
    async fn the_room_that_a_long_answer_took_is_given_back() {
        let (near, mut far) = duplex(1 << 20);
        let mut connection = over(near);
        far.write_all(&[b'x'; 100_000]).await.expect("writes");
        let mut counts = Vec::new();
        while counts.iter().sum::<usize>() < 100_000 {
            counts.push(poll_fn(|cx| connection.poll_read(cx)).await.expect("reads"));
        }
        assert!(counts[0] <= 2 * ROOM && counts.len() < 8, "{counts:?}");
        assert!(!connection.rest(), "nobody asked for it");
        assert_eq!((connection.room, connection.read.capacity()), (ROOM, 0));
    }

    #[tokio::test]
    async fn a_connection_is_free_while_the_server_is_silent() {
        let (near, mut far) = duplex(1_000);
        let mut connection = over(near);
        assert!(connection.is_free());
        assert_eq!(connection.read.capacity(), 0, "nor has it room for what nobody says");
        far.write_all(b"x").await.expect("writes");
        assert!(!connection.is_free(), "it said what nobody asked for");
        let (near, far) = duplex(1_000);
        let mut connection = over(near);
        drop(far);
        assert!(!connection.is_free(), "it is closed");
    }
}
