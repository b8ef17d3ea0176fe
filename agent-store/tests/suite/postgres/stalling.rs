//! Network that fails at a chosen moment.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp},
    sync::watch,
};

use super::server::{Place, Server};

/// Proxy that forwards data until it stalls: then both sides stay connected, but receive nothing.
pub(crate) struct Stalling {
    port: u16,
    is_stalled: watch::Sender<bool>,
}

impl Stalling {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let (is_stalled, seen) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(Server::get().expect("it runs").address()).await.expect("connects");
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                tokio::spawn(pass(from_client, to_server, seen.clone()));
                tokio::spawn(pass(from_server, to_client, seen.clone()));
            }
        });
        Self { port, is_stalled }
    }

    /// Returns the same place, reached through this proxy.
    pub(crate) fn place(&self, place: &Place) -> Place {
        let url = format!("postgres://tests:secret@127.0.0.1:{}/postgres?sslmode=disable", self.port);
        Place { url, schema: place.schema.clone() }
    }

    pub(crate) fn stall(&self) {
        self.is_stalled.send_replace(true);
    }
}

async fn pass(mut from: tcp::OwnedReadHalf, mut to: tcp::OwnedWriteHalf, is_stalled: watch::Receiver<bool>) {
    let mut bytes = vec![0; 8192];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if *is_stalled.borrow() {
            std::future::pending::<()>().await;
        }
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}
