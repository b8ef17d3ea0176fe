//! Two concurrent calls, one of which wins.

use std::{future::poll_fn, task::Poll};

use agent_core::{BoxFuture, Result};

use super::gate::{Gate, Side};

/// Runs both calls until one succeeds. As soon as one produces output the other is dropped; a call
/// that fails silently leaves the result to the other. Also returns whether a call was dropped
/// before it ended.
pub(super) async fn race<T>(
    gate: &Gate,
    first: BoxFuture<'_, Result<T>>,
    second: BoxFuture<'_, Result<T>>,
) -> (Result<T>, bool) {
    let mut calls = [Some(first), Some(second)];
    let mut cut_off = false;
    poll_fn(|cx| {
        for side in [Side::First, Side::Second] {
            let (this, other) = (side as usize, 1 - side as usize);
            let Some(call) = &mut calls[this] else { continue };
            let polled = call.as_mut().poll(cx);
            let heard = match &polled {
                Poll::Ready(Ok(_)) => gate.claim(side),
                _ => gate.heard().is_some_and(|(heard, _)| heard == side),
            };
            if heard {
                cut_off |= calls[other].take().is_some();
            }
            if let Poll::Ready(result) = polled {
                calls[this] = None;
                if heard || calls[other].is_none() {
                    return Poll::Ready((result, cut_off));
                }
            }
        }
        Poll::Pending
    })
    .await
}
