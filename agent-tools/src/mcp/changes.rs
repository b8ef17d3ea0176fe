//! What a server tells of its own accord, for programs.

use futures::{Stream, StreamExt, stream};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::Client;

/// A list of a server that is another one now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ListChange {
    /// Its tools. A client lists them anew by itself, before the next model call.
    Tools,
    /// Its [resources](Client::resources), or the [templates](Client::resource_templates) of them.
    Resources,
    /// Its [prompts](Client::prompts).
    Prompts,
}

impl Client {
    /// The lists that changed, as the server tells of them from now on, for programs that show them. Whoever reads too slowly misses the oldest.
    pub fn list_changes(&self) -> impl Stream<Item = ListChange> + Send + use<> {
        told(self.link.news.lists.subscribe())
    }

    /// The URIs of resources that changed, as the server tells of them. It tells of those that were
    /// [subscribed](Self::subscribe), also after it was away. Whoever reads too slowly misses the oldest.
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
