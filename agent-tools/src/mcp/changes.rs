//! Change notifications of a server, as streams for programs.

use futures::{Stream, StreamExt, stream};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::Client;

/// List of a server that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ListChange {
    /// The tools. A client lists them again automatically, before the next model call.
    Tools,
    /// The [resources](Client::resources), or their [templates](Client::resource_templates).
    Resources,
    /// The [prompts](Client::prompts).
    Prompts,
}

impl Client {
    /// Returns a stream of the lists that change from now on, for programs that show them. A slow
    /// reader misses the oldest notifications.
    pub fn list_changes(&self) -> impl Stream<Item = ListChange> + Send + use<> {
        told(self.link.news.lists.subscribe())
    }

    /// Returns a stream of the URIs of changed resources, of those that were
    /// [subscribed](Self::subscribe). Subscriptions survive a reconnect. A slow reader misses the
    /// oldest notifications.
    pub fn resource_updates(&self) -> impl Stream<Item = String> + Send + use<> {
        told(self.link.news.resources.subscribe())
    }
}

fn told<T: Clone + Send + 'static>(news: Receiver<T>) -> impl Stream<Item = T> + Send + use<T> {
    let next = async |mut news: Receiver<T>| loop {
        match news.recv().await {
            Ok(one) => return Some((one, news)),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    };
    stream::unfold(news, next).boxed()
}
