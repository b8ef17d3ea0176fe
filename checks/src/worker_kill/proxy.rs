//! Proxy between workers and the database that stalls and cuts connections.

use std::io;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{broadcast, watch},
};

/// Local port that forwards to the database.
pub(crate) struct Proxy {
    port: u16,
    stalls: watch::Sender<bool>,
    cut: broadcast::Sender<()>,
}

impl Proxy {
    pub(crate) async fn start(to: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let (stalls, cut) = (watch::channel(false).0, broadcast::channel(1).0);
        let (watched, cutting) = (stalls.clone(), cut.clone());
        drop(tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (stalled, mut cut) = (watched.subscribe(), cutting.subscribe());
                drop(tokio::spawn(async move {
                    tokio::select! {
                        _ = cut.recv() => {}
                        () = connect(client, to, stalled) => {}
                    }
                }));
            }
        }));
        Ok(Self { port, stalls, cut })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Blocks or unblocks all traffic.
    pub(crate) fn stall(&self, stalls: bool) {
        self.stalls.send_replace(stalls);
    }

    /// Closes all connections.
    pub(crate) fn cut(&self) {
        let _ = self.cut.send(()); // there may be no receiver
    }
}

async fn connect(client: TcpStream, to: u16, stalled: watch::Receiver<bool>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", to)).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    tokio::select! {
        () = pass(from_client, to_server, stalled.clone()) => {}
        () = pass(from_server, to_client, stalled) => {}
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut stalled: watch::Receiver<bool>) {
    let mut bytes = vec![0; 16 << 10];
    while let Ok(read) = from.read(&mut bytes).await {
        let moves = stalled.wait_for(|stalled| !stalled).await.is_ok();
        if read == 0 || !moves || to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}
