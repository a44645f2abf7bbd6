//! Bodies of which the rest is not wanted: the answer was given before they ended, and they go on coming. They are read away
//! slowly for a while: closing the connection at once could cost the client the answer that it has not read yet, and reading as
//! fast as they come would let whoever is refused keep the threads busy that others wait for. Of many on one thread each has its turn
//! at that pace, and one look at least.
use actix_web::{
    HttpMessage, HttpResponse,
    body::{BodySize, BoxBody, MessageBody},
    dev::{Payload, ServiceRequest},
    error::PayloadError,
    http::ConnectionType,
    web::Bytes,
};
use futures_util::{Stream, StreamExt, stream::LocalBoxStream};
use std::{
    cell::{Cell, RefCell},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};
use tokio::time::{Interval, interval};

/// Between two looks at what has come.
const EVERY: Duration = Duration::from_millis(50);
/// So often; then the connection is closed.
const LOOKS: usize = 40;
/// Bytes that a look takes at most.
const PER_LOOK: usize = 64 * 1024;

thread_local! {
    /// Answers of this thread that wait for the rest of a body: they take turns.
    static WAITING: Cell<usize> = const { Cell::new(0) };
}

/// The body of a request, of which the handler has only a reader: what that leaves is still here after the answer.
#[derive(Clone)]
pub struct Unread(Rc<RefCell<Source>>);

struct Source {
    bytes: LocalBoxStream<'static, Result<Bytes, PayloadError>>,
    ended: bool,
}

impl Unread {
    /// `None`: the request has no body.
    pub fn watch(request: &mut ServiceRequest) -> Option<Self> {
        match request.take_payload() {
            Payload::None => None,
            payload => {
                let unread = Unread::new(payload);
                let payload = unread.clone().boxed_local();
                request.set_payload(Payload::Stream { payload });
                Some(unread)
            }
        }
    }

    fn new(bytes: impl Stream<Item = Result<Bytes, PayloadError>> + 'static) -> Self {
        let bytes = bytes.boxed_local();
        Unread(Rc::new(RefCell::new(Source { bytes, ended: false })))
    }

    /// What is sent while the rest is read away. The connection is closed after it, unless the body has ended.
    pub fn answer(self, response: HttpResponse<BoxBody>) -> HttpResponse<BoxBody> {
        // 101: what comes now is not a body any more.
        if response.status().is_informational() || self.look() {
            return response;
        }
        let mut response = response.map_body(|_, answer| BoxBody::new(Answer::new(answer, self, EVERY, LOOKS)));
        response.head_mut().set_connection_type(ConnectionType::Close);
        response
    }

    /// Takes what has come. Has the body ended?
    fn look(&self) -> bool {
        let (mut source, mut taken) = (self.0.borrow_mut(), 0);
        // Nobody waits for more: the next look is at its time.
        let mut context = Context::from_waker(Waker::noop());
        while !source.ended && taken < PER_LOOK {
            match source.bytes.poll_next_unpin(&mut context) {
                Poll::Ready(Some(Ok(bytes))) => taken += bytes.len(),
                Poll::Ready(Some(Err(_)) | None) => source.ended = true,
                Poll::Pending => break,
            }
        }
        source.ended
    }
}

/// For the handler.
impl Stream for Unread {
    type Item = Result<Bytes, PayloadError>;
    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut source = self.0.borrow_mut();
        if source.ended {
            return Poll::Ready(None);
        }
        let next = ready!(source.bytes.poll_next_unpin(context));
        source.ended = !matches!(next, Some(Ok(_)));
        Poll::Ready(next)
    }
}

/// The answer, and then a wait in which its client may read it.
struct Answer {
    answer: BoxBody,
    unread: Unread,
    every: Duration,
    /// Begins when all of the answer was handed over.
    looks: Option<Interval>,
    left: usize,
}

impl Answer {
    fn new(answer: BoxBody, unread: Unread, every: Duration, left: usize) -> Self {
        WAITING.set(WAITING.get() + 1);
        Answer {
            answer,
            unread,
            every,
            looks: None,
            left,
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        WAITING.set(WAITING.get() - 1);
    }
}

impl MessageBody for Answer {
    type Error = <BoxBody as MessageBody>::Error;
    fn size(&self) -> BodySize {
        self.answer.size()
    }
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let this = &mut *self;
        if this.looks.is_none()
            && let Some(more) = ready!(this.answer.as_pin_mut().poll_next(context))
        {
            return Poll::Ready(Some(more));
        }
        let every = this.every;
        let looks = this.looks.get_or_insert_with(|| interval(every));
        while this.left > 0 {
            ready!(looks.poll_tick(context));
            this.left -= 1;
            let is_its_turn = this.left.is_multiple_of(WAITING.get());
            if is_its_turn && this.unread.look() {
                break;
            }
        }
        Poll::Ready(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use std::future::poll_fn;

    /// Of an answer whose request's body is that; the texts of the answer.
    async fn sent(unread: &Unread, looks: usize) -> Vec<Bytes> {
        let mut answer = Answer::new(BoxBody::new("refused"), unread.clone(), Duration::from_millis(1), looks);
        assert_eq!(answer.size(), BodySize::Sized(7));
        let mut texts = Vec::new();
        while let Some(next) = poll_fn(|context| Pin::new(&mut answer).poll_next(context)).await {
            texts.push(next.unwrap());
        }
        texts
    }

    /// A body without end, and what was taken of it.
    fn endless() -> (Unread, Rc<Cell<usize>>) {
        let taken = Rc::new(Cell::new(0));
        let counted = taken.clone();
        let body = stream::repeat_with(move || {
            counted.set(counted.get() + 1024);
            Ok(Bytes::from_static(&[b'x'; 1024]))
        });
        (Unread::new(body), taken)
    }

    #[actix_web::test]
    async fn a_body_without_end_is_read_away_slowly_and_not_for_ever() {
        let (unread, taken) = endless();
        assert!(!unread.look());
        assert_eq!(taken.get(), PER_LOOK);
        assert_eq!(sent(&unread, 5).await, ["refused"]);
        assert_eq!(taken.get(), 6 * PER_LOOK);
    }

    #[actix_web::test]
    async fn of_many_bodies_no_more_is_taken_than_of_one() {
        let answer = || Answer::new(BoxBody::new(""), endless().0, Duration::from_millis(1), 0);
        let others: Vec<Answer> = std::iter::repeat_with(answer).take(9).collect();
        let (one, taken) = endless();
        assert_eq!(sent(&one, 40).await, ["refused"]);
        assert_eq!(taken.get(), 4 * PER_LOOK, "a tenth of forty");
        drop(others);
        assert_eq!(sent(&one, 5).await, ["refused"]);
        assert_eq!(taken.get(), 9 * PER_LOOK);
    }

    #[actix_web::test]
    async fn a_body_that_stops_coming_is_waited_for_no_longer_than_that() {
        let unread = Unread::new(stream::pending());
        assert_eq!(sent(&unread, 3).await, ["refused"]);
    }

    #[actix_web::test]
    async fn a_body_that_has_ended_keeps_nobody() {
        let parts = ["a", "b"].map(|part| Ok(Bytes::from_static(part.as_bytes())));
        let mut unread = Unread::new(stream::iter(parts));
        assert_eq!(unread.next().await.unwrap().unwrap(), "a");
        // More looks than anybody could wait for.
        assert_eq!(sent(&unread, usize::MAX).await, ["refused"]);
        assert!(unread.next().await.is_none());
        let failed = stream::once(std::future::ready(Err(PayloadError::Incomplete(None)))).chain(stream::pending());
        assert!(Unread::new(failed).look(), "its sender is gone");
    }
}
