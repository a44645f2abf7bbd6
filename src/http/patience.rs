//! How long a request may take: one deadline over all that it waits for, whatever that is. What its body takes to arrive is the
//! client's time, and has a limit of its own.
//!
//! A request that is given up is dropped where it stands, as when its client goes away. What it had handed to the writer by then
//! may still be written: its claim of an `Idempotency-Key` stays open, and a repeat finds what stands.
use super::{
    caller::Access,
    error::{ApiError, Code},
    middleware,
};
use actix_web::{
    Error as ActixError, HttpMessage, ResponseError,
    body::{BoxBody, MessageBody},
    dev::{Payload, ServiceRequest, ServiceResponse},
    error::PayloadError,
    middleware::Next,
    web::Bytes,
};
use futures_util::Stream;
use std::{
    cell::Cell,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

/// A request is answered by then. A stream has begun by then.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Behind its gate, in time. `lasts`: why the route has no deadline but that of its work.
pub async fn answered(
    lasts: Option<&'static str>,
    access: Access,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, ActixError> {
    if lasts.is_some() {
        return middleware::admit(access, request, next).await;
    }
    let (http, body) = (request.request().clone(), OnTheWay::of(&mut request));
    match in_time(PATIENCE, &body, middleware::admit(access, request, next)).await {
        Some(answer) => answer,
        None => Ok(ServiceResponse::new(http, too_late().error_response())),
    }
}

fn too_late() -> ApiError {
    let message = format!(
        "no answer within {} seconds, and the outcome of the request is not known: repeat it with the same \
         Idempotency-Key, or look before you repeat it",
        PATIENCE.as_secs()
    );
    ApiError::Frame(Code::Unavailable, message, None)
}

/// Gives the work up when it has taken longer than that, what it waited for the body not counted.
async fn in_time<T>(patience: Duration, body: &OnTheWay, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let mut limit = patience;
    loop {
        let before = body.awaited();
        if let Ok(done) = tokio::time::timeout(limit, work.as_mut()).await {
            return Some(done);
        }
        limit = body.awaited() - before;
        if limit.is_zero() {
            return None;
        }
    }
}

/// How long has a body been waited for?
#[derive(Default)]
struct OnTheWay {
    before: Cell<Duration>,
    /// It is being waited for now.
    since: Cell<Option<Instant>>,
}

impl OnTheWay {
    /// Of that request's body, from now on.
    fn of(request: &mut ServiceRequest) -> Rc<Self> {
        let it = Rc::new(OnTheWay::default());
        let payload = request.take_payload();
        // Most have none.
        request.set_payload(match payload {
            Payload::None => Payload::None,
            payload => Payload::Stream {
                payload: Box::pin(Watched {
                    payload,
                    watch: it.clone(),
                }),
            },
        });
        it
    }

    fn awaited(&self) -> Duration {
        self.before.get() + self.since.get().map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn arrived(&self) {
        self.before.set(self.awaited());
        self.since.set(None);
    }
}

struct Watched<S> {
    payload: S,
    watch: Rc<OnTheWay>,
}

impl<S: Stream<Item = Result<Bytes, PayloadError>> + Unpin> Stream for Watched<S> {
    type Item = Result<Bytes, PayloadError>;
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = Pin::new(&mut self.payload).poll_next(context);
        match (&polled, self.watch.since.get()) {
            (Poll::Pending, None) => self.watch.since.set(Some(Instant::now())),
            (Poll::Pending, Some(_)) => {}
            (Poll::Ready(_), _) => self.watch.arrived(),
        }
        polled
    }
}

impl<S> Drop for Watched<S> {
    /// Nobody waits for a body that is not read any more.
    fn drop(&mut self) {
        self.watch.arrived();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{StreamExt, stream};

    const SHORT: Duration = Duration::from_millis(20);

    async fn pass(times: u32) {
        let _ = tokio::time::timeout(SHORT * times, std::future::pending::<()>()).await;
    }

    /// A body of one piece that comes so late.
    fn body(watch: &Rc<OnTheWay>, times: u32) -> impl Stream<Item = Result<Bytes, PayloadError>> {
        Watched {
            payload: Box::pin(stream::once(async move {
                pass(times).await;
                Ok(Bytes::from_static(b"{}"))
            })),
            watch: watch.clone(),
        }
    }

    #[actix_web::test]
    async fn what_never_ends_is_given_up() {
        let watch = Rc::new(OnTheWay::default());
        assert_eq!(in_time(SHORT, &watch, std::future::pending::<()>()).await, None);
        assert_eq!(in_time(SHORT, &watch, async { 7 }).await, Some(7));
    }

    #[actix_web::test]
    async fn a_body_takes_its_own_time_and_lends_it_to_nothing_else() {
        let watch = Rc::new(OnTheWay::default());
        let mut late = body(&watch, 5);
        let read = in_time(SHORT, &watch, async { late.next().await.is_some() }).await;
        assert_eq!(read, Some(true), "five times the patience");

        let watch = Rc::new(OnTheWay::default());
        let mut late = body(&watch, 2);
        let stuck = in_time(SHORT, &watch, async {
            late.next().await;
            std::future::pending::<()>().await
        });
        assert_eq!(stuck.await, None, "and then nothing more");

        // One that is let go is not waited for.
        let watch = Rc::new(OnTheWay::default());
        let dropped = in_time(SHORT, &watch, async {
            let mut late = body(&watch, 1000);
            let _ = tokio::time::timeout(SHORT / 4, late.next()).await;
            drop(late);
            std::future::pending::<()>().await
        });
        assert_eq!(dropped.await, None);
    }
}
